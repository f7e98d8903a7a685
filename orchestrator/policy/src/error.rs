//! One error shape everywhere: code, message, cause, remediation.

use serde::Serialize;

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal;)+) => {
        /// A stable name for one kind of failure. Names are never reused or renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the catalogue.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The stable name, as it stands in JSON and in messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)+ }
            }

            /// What the code means, for the catalogue in `docs/errors.md`.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

catalogue! {
    /// The command line does not make sense.
    Usage = "usage";
    /// No profile of that name is shipped, and no file of that name exists.
    ProfileUnknown = "profile_unknown";
    /// The profile file is not valid YAML, or a value has the wrong type.
    ProfileSyntax = "profile_syntax";
    /// The profile has a key that the schema does not know.
    ProfileUnknownKey = "profile_unknown_key";
    /// A value of the profile is outside its range or contradicts another one.
    ProfileInvalid = "profile_invalid";
    /// The profile allows more than its tier does.
    ProfileTooLoose = "profile_too_loose";
    /// A limit is zero, negative, or beyond what can be enforced.
    LimitInvalid = "limit_invalid";
    /// A limit asks for more than this machine has.
    LimitUnavailable = "limit_unavailable";
    /// A mount, folder or copy-out path cannot be used as asked.
    MountInvalid = "mount_invalid";
    /// A mount source does not exist or cannot be opened by the caller.
    MountSourceMissing = "mount_source_missing";
    /// A mount source lies in, or above, a path that must stay hidden.
    MountDenied = "mount_denied";
    /// Two mounts ask for the same target.
    MountConflict = "mount_conflict";
    /// A read-write folder belongs to root; writing there needs an explicit word.
    RootOwnedFolder = "root_owned_folder";
    /// The working directory does not exist inside the sandbox.
    WorkdirMissing = "workdir_missing";
    /// The user cannot be used inside the sandbox.
    UserInvalid = "user_invalid";
    /// An environment variable is malformed or not allowed.
    EnvInvalid = "env_invalid";
    /// The image is not a directory that holds a root file system.
    ImageInvalid = "image_invalid";
    /// The profile lets the task out to a network, and no gateway is running.
    EgressUnavailable = "egress_unavailable";
    /// The host refuses something that every sandbox needs (namespaces, mounts).
    HostUnsupported = "host_unsupported";
    /// A control of the tier does not hold on this kernel.
    ControlMissing = "control_missing";
    /// A control group could not be made, joined, limited or removed.
    CgroupFailed = "cgroup_failed";
    /// The runtime failed; nothing is known about the command itself.
    RuntimeFailed = "runtime_failed";
    /// The host ran out of something: disk, memory, descriptors, processes.
    HostExhausted = "host_exhausted";
    /// The command was not found inside the sandbox.
    CommandNotFound = "command_not_found";
    /// The command was found and cannot be executed.
    CommandNotExecutable = "command_not_executable";
    /// Results could not be copied out.
    CopyOutFailed = "copy_out_failed";
    /// The whole output and the receipt of a task cannot be kept, or not be read.
    ArtifactsFailed = "artifacts_failed";
    /// No output is kept under that id.
    ArtifactsUnknown = "artifacts_unknown";
    /// What was started could not be shown to be gone.
    CleanupUnconfirmed = "cleanup_unconfirmed";
    /// The state directory cannot be used.
    StateInvalid = "state_invalid";
    /// The receipt cannot be written where it is asked for.
    ReceiptFailed = "receipt_failed";
    /// The audit log cannot be written, or is not one.
    AuditFailed = "audit_failed";
    /// A value cannot be written in the format that is asked for.
    FormatImpossible = "format_impossible";
}

/// What happened, why, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}{}", cause.as_ref().map(|c| format!(": {c}")).unwrap_or_default())]
pub struct Error {
    /// Stable name of the kind of failure.
    pub code: Code,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// Why, where it is known.
    pub cause: Option<String>,
    /// What the reader can do, in one sentence.
    pub remediation: String,
}

impl Error {
    /// An error without a known cause.
    pub fn new(code: Code, message: impl Into<String>, remediation: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
            remediation: remediation.into(),
        }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }
}
