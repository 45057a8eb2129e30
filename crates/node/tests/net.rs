//! The program with peers: it syncs from Bitcoin Core, ends at a given height, continues later, and serves its blocks.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and starts processes")]

use lydian_oracle::{Daemon, Scratch, free_port, or_skip};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// An address without a known key.
const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory for a node.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    std::fs::create_dir_all(scratch.path()).unwrap();
    scratch
}

fn lydian(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command
        .arg(format!("-datadir={}", directory.display()))
        .args(["-regtest", "-server=0", "-printtoconsole=0"])
        .args(arguments);
    command
}

fn info(directory: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    let output = command.arg(format!("-datadir={}", directory.display())).args(["-regtest", "info", "--json"]).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

/// A node that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn core_on(port: u16) -> Option<Daemon> {
    let bind = format!("-bind=127.0.0.1:{port}");
    or_skip("net", Daemon::start(&["-listen=1", &bind]))
}

/// The chain is downloaded from a peer up to `-stopatheight`. Killed in the middle of the rest, the node continues from
/// there and serves the chain to another Core.
#[test]
fn a_chain_from_a_peer_and_to_another() {
    let (from, to) = (free_port().unwrap(), free_port().unwrap());
    let Some(mut core) = core_on(from) else { return };
    core.call("generatetoaddress", &json!([300, ADDRESS])).unwrap();
    let scratch = scratch("node-net");
    let directory = scratch.path();
    let connect = format!("-connect=127.0.0.1:{from}");
    let status = lydian(directory, &[&connect, "-stopatheight=100"]).output().unwrap().status;
    assert_eq!((status.code(), info(directory)["height"].as_u64()), (Some(0), Some(100)));

    drop(Running(lydian(directory, &[&connect]).spawn().unwrap()));
    let bind = format!("-bind=127.0.0.1:{to}");
    let _node = Running(lydian(directory, &[&connect, &bind]).spawn().unwrap());
    let Some(mut other) = core_on(free_port().unwrap()) else { return };
    other.call("addnode", &json!([format!("127.0.0.1:{to}"), "add"])).unwrap();
    let began = Instant::now();
    while other.best_block_hash().unwrap() != core.best_block_hash().unwrap() {
        assert!(began.elapsed() < PATIENCE, "the chain goes from one Core to the other");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(other.height().unwrap(), 300);
}

/// A port that another process uses is an error that names it, in Core's words.
#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let scratch = scratch("node-port");
    let address = taken.local_addr().unwrap();
    let output = lydian(scratch.path(), &[&format!("-bind={address}")]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("Unable to bind to {address}")), "{error}");
}
