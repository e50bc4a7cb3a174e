//! Runs one command through the runner, for the tests of this crate.
//!
//! `probe report` prints which views work. `probe run in-place|plain REAL
//! SANDBOX SUBDIR [--bind WHAT WHERE]… [--set NAME=VALUE]… [--unset NAME]…
//! [--stdout-to-stderr] -- CMD…` runs a command, says on standard error what
//! came of it (`probe: left …`, `probe: error …`) and passes its code on;
//! with `PROBE_TIMES` it runs that many at once.

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
    let request = request(arguments);
    // Several at once, and how each ended, where a test asks for it.
    let times = std::env::var("PROBE_TIMES").ok();
    let count = times
        .as_ref()
        .map_or(1, |times| times.parse().expect("a number"));
    let running: Vec<_> = (0..count)
        .map(|_| {
            let request = request.clone();
            runtime.spawn(async move { Processes.run(request).await })
        })
        .collect();
    let mut code = 0;
    for run in running {
        match runtime.block_on(run).expect("it does not panic") {
            Ok(end) => {
                for (pid, name) in end.left_behind {
                    eprintln!("probe: left {pid} {name}");
                }
                code = end.code;
            }
            Err(error) => {
                eprintln!("probe: error {} {error}", error.code.text());
                code = 125;
            }
        }
        if times.is_some() {
            eprintln!("probe: code {code}");
        }
    }
    ExitCode::from(code)
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
