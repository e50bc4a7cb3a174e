//! The command line of Sandbar: arguments in, use cases of the library, a
//! document or sentences out. No rule of the contract lives here.

mod args;
mod commands;
mod failure;
mod output;
mod progress;
mod session;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Before any thread exists: a command in a sandbox is started by a hidden
    // sub-command of this very program, which never returns from here.
    sandbar::compose::init();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return failure::usage(&error),
    };
    let json = args.json;
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sandbar: failed to start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(commands::dispatch(args));
    // A blocked helper thread must not keep a finished command alive.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(json),
    }
}
