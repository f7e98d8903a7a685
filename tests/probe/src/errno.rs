//! Names of error numbers; the tables speak of `EPERM`, not of 1.

/// The symbolic name of an error number, or `E<number>` for one without a name here.
#[must_use]
pub fn name(number: i32) -> String {
    known(number).map_or_else(|| format!("E{number}"), str::to_owned)
}

macro_rules! names {
    ($($name:ident)*) => {
        fn known(number: i32) -> Option<&'static str> {
            match number {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY
    ELOOP ENODATA ETIME EPROTO EOVERFLOW EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE
    ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN
    ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED
    ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED
}

/// The name of the signals that a refused or hanging probe dies of.
#[must_use]
pub(crate) fn signal(number: i32) -> String {
    let name = match number {
        libc::SIGSYS => "SIGSYS",
        libc::SIGALRM => "SIGALRM",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGABRT => "SIGABRT",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        _ => return format!("SIG{number}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn known_numbers_have_their_name_and_others_the_number() {
        assert_eq!(name(libc::EPERM), "EPERM");
        assert_eq!(name(9999), "E9999");
    }
}
