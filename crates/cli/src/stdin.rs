//! Standard input: a password, more arguments. Input: lines. Output: settings and words.
//!
//! A password is not shown on a terminal while it is typed.

use crate::error::CallError;
use crate::settings::Settings;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Write};

/// Reads what the options ask for, in a fixed order.
pub(crate) fn read(settings: &mut Settings, words: &mut Vec<String>) -> Result<(), CallError> {
    let mut input = io::stdin().lock();
    let is_terminal = io::stdin().is_terminal();
    if settings.switch("stdinrpcpass") {
        let echo = is_terminal.then(NoEcho::new);
        if is_terminal {
            let _ = io::stderr().lock().write_all(b"RPC password> ");
        }
        let line = line(&mut input).ok_or(CallError::Stdin { option: "stdinrpcpass" })?;
        drop(echo);
        end_line(is_terminal);
        settings.force("rpcpassword", line);
    }
    if settings.switch("stdinwalletpassphrase") {
        let sentence = "-stdinwalletpassphrase: Lydian has no wallet, so a passphrase is neither read nor sent";
        return Err(CallError::Usage(sentence.to_owned()));
    }
    if settings.switch("stdin") {
        while let Some(line) = line(&mut input) {
            words.push(line);
        }
        end_line(is_terminal);
    }
    Ok(())
}

fn end_line(is_terminal: bool) {
    if is_terminal {
        let _ = io::stdout().lock().write_all(b"\n");
    }
}

/// Returns the next line without its line break, or `None` at the end of the input.
fn line(input: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let count = input.read_until(b'\n', &mut bytes).unwrap_or(0);
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    (count > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Disables the echo of the terminal until it is dropped.
struct NoEcho(bool);

impl NoEcho {
    fn new() -> NoEcho {
        NoEcho(set_echo(false))
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        if self.0 {
            set_echo(true);
        }
    }
}

/// Returns whether it could be set.
fn set_echo(is_on: bool) -> bool {
    let Ok(mut terminal) = tcgetattr(io::stdin()) else { return false };
    terminal.local_modes.set(LocalModes::ECHO, is_on);
    tcsetattr(io::stdin(), OptionalActions::Now, &terminal).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_an_end() {
        let mut input: &[u8] = b"a b\n\r\n\nc";
        let lines: Vec<_> = std::iter::from_fn(|| line(&mut input)).collect();
        assert_eq!(lines, ["a b", "\r", "", "c"]);
    }
}
