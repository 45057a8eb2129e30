//! `lydian-lab chain --preset reuse`: the command writes the chain, and refuses settings that no chain can have.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and starts the program")]

use lydian_chains::targets::Targets;
use lydian_oracle::Scratch;
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn the_command_makes_the_chain_and_refuses_odd_settings() {
    let folder = Scratch::new("reuse-cli");
    let lab = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
        command.args(["chain", "--preset", "reuse", "--out"]).arg(folder.path()).args(arguments).output().unwrap()
    };
    for (arguments, said) in [
        (["--scripts", "0"], "--scripts must lie between 1 and 10000"),
        (["--fat", "99,0"], "each 0 or between 100 and 200000"),
        (["--fat", "100"], "expected two numbers, as in 20000,47000"),
        (["--fat", "100,many"], "expected two numbers"),
    ] {
        let output = lab(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{text}");
    }
    assert!(!folder.path().exists());
    let output = lab(&["--scripts", "3", "--fat", "100,0", "--seed", "9"]);
    assert!(output.status.success(), "{output:?}");
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&stats["preset"], &stats["height"]), (&json!("reuse"), &json!(452)));
    let targets = Targets::of_chain(folder.path()).unwrap();
    assert_eq!(targets.scripts.len(), 4);
    assert_eq!((targets.scripts[3].transactions, targets.scripts[3].utxos), (100, 1));
}
