//! Runs one command through the runner, for the tests of this crate.
//!
//! `probe report` prints which views work. `probe run in-place|plain REAL
//! SANDBOX SUBDIR [--bind WHAT WHERE]… [--set NAME=VALUE]… [--unset NAME]…
//! [--stdout-to-stderr] -- CMD…` runs a command, says on standard error what
//! came of it (`probe: left …`, `probe: error …`) and passes its code on.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use sandbar_exec::Processes;
use sandbar_ports::exec::{Run, Runner as _, View};

fn main() -> ExitCode {
    sandbar_exec::init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime can be made");
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == "report") {
        let report = runtime.block_on(Processes.probe());
        println!("{} {}", report.in_place, report.reason.unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    match runtime.block_on(Processes.run(request(arguments))) {
        Ok(end) => {
            for (pid, name) in end.left_behind {
                eprintln!("probe: left {pid} {name}");
            }
            ExitCode::from(end.code)
        }
        Err(error) => {
            eprintln!("probe: error {} {error}", error.code.text());
            ExitCode::from(125)
        }
    }
}

fn request(mut arguments: impl Iterator<Item = OsString>) -> Run {
    let view = match arguments.next() {
        Some(word) if word == "in-place" => View::InPlace,
        _ => View::Plain,
    };
    let mut next = || arguments.next().expect("see the head of this file");
    let mut run = Run {
        view,
        real: next().into(),
        sandbox: next().into(),
        subdir: next().into(),
        argv: Vec::new(),
        binds: Vec::new(),
        set: Vec::new(),
        unset: Vec::new(),
        stdout_to_stderr: false,
    };
    loop {
        match next().as_bytes() {
            b"--bind" => run.binds.push((next().into(), next().into())),
            b"--set" => {
                let pair = next();
                let mut parts = pair.as_bytes().splitn(2, |&byte| byte == b'=');
                let mut part = || {
                    OsString::from(std::ffi::OsStr::from_bytes(
                        parts.next().unwrap_or_default(),
                    ))
                };
                run.set.push((part(), part()));
            }
            b"--unset" => run.unset.push(next()),
            b"--stdout-to-stderr" => run.stdout_to_stderr = true,
            _ => break,
        }
    }
    run.argv = arguments.collect();
    run
}
