//! Clients in Python and Go, as processes: `python-bitcoinlib`, and `rpcclient` of btcd, with which lnd and btcwallet
//! call a node. Their programs are in `tools/clients`; `tools/clients.sh` installs what they need.

use super::{Watch, live};
use crate::server::Server;
use lydian_oracle::build;
use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The program in Python.
pub(crate) const WATCH: &str = include_str!("../../../../../tools/clients/watch.py");

/// Longer than a program takes for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program, killed when dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Program {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Program { child, lines }
    }

    pub(crate) fn line_within(&self, longest: Duration) -> Option<String> {
        self.lines.recv_timeout(longest).ok()
    }

    /// The program as a [`Watch`]: a line to it for a line of it.
    fn watch(mut self) -> Watch {
        Box::new(move || {
            self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            serde_json::from_str(&self.line_within(PATIENCE).unwrap()).unwrap()
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that `tools/clients.sh` made.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn installed(test: &str, name: &str) -> Option<PathBuf> {
    let path = build::cache_folder().parent()?.join("clients").join(name);
    if !path.exists() {
        eprintln!("{test}: not run: {} is missing; `make clients` makes it", path.display());
        return None;
    }
    Some(path)
}

/// Python with the packages of the clients.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    installed(test, "python/bin/python3")
}

/// User and password.
fn login(server: &Server) -> (String, String) {
    let cookie = fs::read_to_string(server.cookie()).unwrap();
    let (user, password) = cookie.trim().split_once(':').unwrap();
    (user.to_owned(), password.to_owned())
}

#[test]
fn python_bitcoinlib_sees_the_same_on_both() {
    let test = "python_bitcoinlib_sees_the_same_on_both";
    let Some(python) = python(test) else { return };
    live(test, &[], |server| {
        let (user, password) = login(server);
        let url = format!("http://{user}:{password}@127.0.0.1:{}", server.port);
        Program::start(Command::new(&python).args(["-c", WATCH, "rpc", &url])).watch()
    });
}

#[test]
fn btcds_rpcclient_sees_the_same_on_both() {
    let test = "btcds_rpcclient_sees_the_same_on_both";
    let Some(program) = installed(test, "rpcclient") else { return };
    // The last look follows blocks from which fees can be estimated.
    let has_estimates = Rc::new(Cell::new(false));
    live(test, &[], |server| {
        let (user, password) = login(server);
        let host = format!("127.0.0.1:{}", server.port);
        let mut watch = Program::start(Command::new(&program).args([&host, &user, &password])).watch();
        let has_estimates = Rc::clone(&has_estimates);
        Box::new(move || {
            let lines = watch();
            let has_feerate = |line: &String| line.starts_with("estimate ") && line.contains("\"feerate\":");
            has_estimates.set(lines.iter().any(has_feerate));
            lines
        })
    });
    assert!(has_estimates.get());
}
