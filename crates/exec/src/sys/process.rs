//! Starting and becoming processes.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

fn check(code: libc::c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    let mut list: Vec<_> = strings.iter().map(|s| s.as_ptr().cast_mut()).collect();
    list.push(std::ptr::null_mut());
    list
}

/// Starts `program` with `keep` left open in it under the same number, with
/// no signal blocked and SIGPIPE at its default. All else is inherited.
pub(crate) fn spawn(
    program: &CStr,
    argv: &[CString],
    environment: &[CString],
    keep: BorrowedFd<'_>,
) -> io::Result<Pid> {
    let (argv, environment) = (pointers(argv), pointers(environment));
    let mut actions = MaybeUninit::<libc::posix_spawn_file_actions_t>::uninit();
    let mut attributes = MaybeUninit::<libc::posix_spawnattr_t>::uninit();
    let mut pid = 0;
    // SAFETY: both objects are initialised before they are used and destroyed
    // once; the string lists end in a null pointer and outlive the call. The
    // dup2 of a descriptor onto itself is defined to clear close-on-exec in
    // the child only, which no other thread can see.
    unsafe {
        check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        if let Err(error) = check(libc::posix_spawnattr_init(attributes.as_mut_ptr())) {
            libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
            return Err(error);
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        let mut pipe = none;
        libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let flags = libc::c_short::try_from(flags).expect("the flags are small");
        let keep = keep.as_raw_fd();
        let done = check(libc::posix_spawn_file_actions_adddup2(
            actions.as_mut_ptr(),
            keep,
            keep,
        ))
        .and_then(|()| {
            let attributes = attributes.as_mut_ptr();
            check(libc::posix_spawnattr_setsigmask(attributes, none.as_ptr()))?;
            check(libc::posix_spawnattr_setsigdefault(
                attributes,
                pipe.as_ptr(),
            ))?;
            check(libc::posix_spawnattr_setflags(attributes, flags))
        })
        .and_then(|()| {
            check(libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                actions.as_ptr(),
                attributes.as_ptr(),
                argv.as_ptr(),
                environment.as_ptr(),
            ))
        });
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
        done?;
    }
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process id"))
}

/// Which side of a fork this is.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The old one, with the id of the new one.
    Parent(Pid),
}

/// Splits this process in two. Only called where there is one thread, so that
/// the child may do anything.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the supervisor has one thread (`init` runs before any other can
    // exist), so no lock can be held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent)),
    }
}

/// Replaces this process by a program; returns only the error.
pub(crate) fn execute(program: &CStr, argv: &[CString], environment: &[CString]) -> io::Error {
    let (argv, environment) = (pointers(argv), pointers(environment));
    // SAFETY: the lists end in a null pointer and outlive the call.
    unsafe {
        libc::execve(
            program.as_ptr(),
            argv.as_ptr().cast(),
            environment.as_ptr().cast(),
        )
    };
    io::Error::last_os_error()
}

/// Ends this process at once: what it inherited from a fork is not run twice.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Moves this process into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: descriptor tables are not unshared, so no descriptor that a
    // value of this process owns changes its meaning.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Makes `to` a copy of `from`; only for the standard descriptors.
pub(crate) fn dup2(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: the standard streams are not owned by any value.
    match unsafe { libc::dup2(from, to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over the socket inherited as `fd`; refuses what is not a socket.
pub(crate) fn forget_on_exec(fd: RawFd) -> io::Result<UnixStream> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `fstat` and `fcntl` report a number that is not open. Nothing
    // else in this process, which has just started, owns a number above 2.
    unsafe {
        if fd < 3 || libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        if stat.assume_init().st_mode & libc::S_IFMT != libc::S_IFSOCK {
            return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
        }
        if libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(UnixStream::from(OwnedFd::from_raw_fd(fd)))
    }
}
