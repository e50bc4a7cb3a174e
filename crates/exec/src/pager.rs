//! A pager: the program that shows long output to a person at a terminal. It
//! is the person's own choice and runs as they would start it, outside every
//! sandbox; nothing else is ever started here.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is the home of processes"
)]

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// What shows output when nobody chose: ends by itself when one screen is
/// enough, keeps colours, and leaves the text on the screen.
const DEFAULT: [&str; 2] = ["less", "-FRX"];

/// A pager that was started; what is written to it is shown.
#[derive(Debug)]
pub struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the pager that `choice` names, as a shell would, or the default
    /// one. `None` where there is none to start: no pager was wanted (an empty
    /// choice, or `cat`), or the default one is not installed.
    pub fn start(choice: Option<&OsStr>) -> Option<Self> {
        let mut command = match choice {
            Some(choice) if choice.is_empty() || choice == "cat" => return None,
            Some(choice) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(choice);
                shell
            }
            None => {
                let [program, options] = DEFAULT;
                let mut less = Command::new(program);
                less.arg(options);
                less
            }
        };
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take();
        Some(Self { child, input })
    }

    /// Waits until the person has seen enough.
    pub fn finish(mut self) -> io::Result<()> {
        drop(self.input.take());
        self.child.wait().map(drop)
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.input {
            Some(input) => input.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}
