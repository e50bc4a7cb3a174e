//! One mapping from an error of the kernel to an error of the ports.

use std::fmt::Display;

use rustix::io::Errno;
use sandbar_domain::Code;
use sandbar_ports::PortError;

/// Makes the error of `verb` on `what`: "read src/a.rs: permission denied".
pub fn fail(verb: &str, what: impl Display, errno: Errno) -> PortError {
    let (code, reason) = match errno {
        Errno::NOSPC => (Code::NoSpace, "no space left on the device"),
        Errno::DQUOT => (Code::NoSpace, "over quota"),
        Errno::ACCESS => (Code::PermissionDenied, "permission denied"),
        Errno::PERM => (Code::PermissionDenied, "operation not permitted"),
        Errno::ROFS => (Code::ReadOnly, "the file system is read-only"),
        Errno::NOENT => (Code::PathNotFound, "no such file or directory"),
        Errno::LOOP => (Code::PathEscapes, "a symbolic link is in the way"),
        Errno::XDEV => (Code::PathEscapes, "it leads to another file system"),
        other => {
            let text = std::io::Error::from(other).to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            return PortError::new(
                Code::Io,
                format!("{verb} {what}: {}", text.to_ascii_lowercase()),
            )
            .with_source(std::io::Error::from(other));
        }
    };
    PortError::new(code, format!("{verb} {what}: {reason}"))
        .with_source(std::io::Error::from(errno))
}

/// Returns the closure that `map_err` takes.
pub fn at<'a>(verb: &'a str, what: impl Display + 'a) -> impl FnOnce(Errno) -> PortError + 'a {
    move |errno| fail(verb, what, errno)
}

/// Says whether space, inodes or quota ran out.
pub fn is_space(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_code() {
        for (errno, code) in [
            (Errno::NOSPC, Code::NoSpace),
            (Errno::DQUOT, Code::NoSpace),
            (Errno::ACCESS, Code::PermissionDenied),
            (Errno::PERM, Code::PermissionDenied),
            (Errno::ROFS, Code::ReadOnly),
            (Errno::NOENT, Code::PathNotFound),
            (Errno::LOOP, Code::PathEscapes),
            (Errno::XDEV, Code::PathEscapes),
            (Errno::IO, Code::Io),
        ] {
            assert_eq!(fail("read", "a", errno).code, code, "{errno:?}");
        }
        let error = fail("read", "src/a.rs", Errno::ACCESS);
        assert_eq!(error.to_string(), "read src/a.rs: permission denied");
        let error = fail("read", "a", Errno::IO);
        assert_eq!(error.to_string(), "read a: input/output error");
    }
}
