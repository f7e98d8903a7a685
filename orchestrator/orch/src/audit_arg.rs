//! `--audit FILE`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use orch_engine::audit::AuditLog;
use orch_policy::{Code, Error};

use crate::flag_or_variable;
use crate::task_args::Cwd;

/// Variable that names the log where no flag does.
const VARIABLE: &str = "ORCH_AUDIT";

/// Where the audit log is.
#[derive(Debug, Args)]
pub struct AuditArg {
    /// Append to this log what is run, refused and limited, one JSON line each [default:
    /// $ORCH_AUDIT].
    ///
    /// Each line has the hash of the one before (`prev`). The file is made where it is
    /// missing, in a directory that has to be there and that others cannot write. Where
    /// the log cannot be written, nothing is run.
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    audit: Option<PathBuf>,
}

impl AuditArg {
    /// The log, open, where one is named.
    ///
    /// # Errors
    /// As [`AuditLog::open`] and [`Cwd::absolute`].
    pub fn open(&self, cwd: &Cwd) -> Result<Option<Arc<AuditLog>>, Error> {
        let Some(path) = flag_or_variable::path(self.audit.as_deref(), std::env::var_os(VARIABLE))
        else {
            return Ok(None);
        };
        AuditLog::open(&cwd.absolute(&path)?).map(|log| Some(Arc::new(log)))
    }
}

/// Refuses a receipt that would take the place of the log.
///
/// # Errors
/// [`Code::ReceiptFailed`].
pub fn apart(log: Option<&AuditLog>, receipt: Option<&Path>, cwd: &Cwd) -> Result<(), Error> {
    let (Some(log), Some(receipt)) = (log, receipt) else {
        return Ok(());
    };
    let there = cwd.absolute(receipt)?.canonicalize();
    if there.is_ok_and(|there| there == log.path()) {
        return Err(Error::new(
            Code::ReceiptFailed,
            format!("{} is the audit log", receipt.display()),
            "name another file for the receipt",
        ));
    }
    Ok(())
}
