//! `-daemon` and `-daemonwait`: starts the program again, in the background. Input: the command line. Output: the exit
//! code of the foreground process.
//!
//! Forking a process that may have threads is unsafe, and this crate has no unsafe code. The parent therefore starts
//! the same program with a mark in its environment, an empty stdin and a pipe as stdout; the child leaves the
//! terminal's session. The child writes [`READY`] when the parent may exit. Every line before that is an error; if the
//! pipe ends without it, the start has failed.

use crate::exit;
use crate::service;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const MARK: &str = "LYDIAN_DAEMON";

const READY: &str = "lydian: ready";

/// Whether this process is the one in the background.
pub(crate) fn is_background() -> bool {
    env::var_os(MARK).is_some_and(|value| !value.is_empty())
}

/// Detaches the background process from the terminal that it was started on.
pub(crate) fn detach() {
    if is_background() {
        // Fails only for the leader of a process group, which a newly started child is not.
        let _ = rustix::process::setsid();
    }
}

/// Starts the background process and waits until it is ready or has failed.
pub(crate) fn start(log: Option<&Path>) -> u8 {
    let print_error = |text: &str| {
        // If stderr is closed, there is nowhere to report it.
        let _ = writeln!(io::stderr().lock(), "{text}");
    };
    let _ = writeln!(io::stdout().lock(), "Lydian starting");
    let child = env::current_exe().and_then(|program| {
        Command::new(program)
            .args(env::args_os().skip(1))
            .env(MARK, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    });
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            print_error(&format!("Error: the background process could not be started: {error}"));
            return exit::DIRECTORY;
        }
    };
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        if line == READY {
            return exit::DONE;
        }
        print_error(&line);
    }
    let name = log.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    print_error(&format!("Error during initialization - check {name} for details"));
    let code = child.wait().ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    code.filter(|code| *code != exit::DONE).unwrap_or(exit::DIRECTORY)
}

/// Lets the parent exit, and the service manager go on.
pub(crate) fn ready() {
    service::is_ready();
    if is_background() {
        // If the parent is gone, nothing waits for this line.
        let _ = writeln!(io::stdout().lock(), "{READY}");
    }
}

/// Prints an error where the user sees it, before the log is open.
pub(crate) fn complain(sentence: &str) {
    // If the stream is closed, there is nowhere to report it.
    let _ = match is_background() {
        true => writeln!(io::stdout().lock(), "Error: {sentence}"),
        false => writeln!(io::stderr().lock(), "Error: {sentence}"),
    };
}
