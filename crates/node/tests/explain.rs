//! `lydian explain`, `--help` and `--version` as a user runs them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_consensus::RULES;
use lydian_mempool::policy::POLICY_RULES;
use std::process::{Command, Output};

fn lydian(arguments: &[&str]) -> (String, String, i32) {
    let Output { stdout, stderr, status } =
        Command::new(env!("CARGO_BIN_EXE_lydian")).args(arguments).output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

#[test]
fn all_rules_are_listed_in_the_order_of_checking() {
    let (out, _, code) = lydian(&["explain"]);
    assert_eq!(code, 0);
    let mut rest = &out[..];
    let names = RULES.iter().map(|info| info.name).chain(POLICY_RULES.iter().map(|info| info.name));
    for name in names {
        let at = rest.find(&format!("\n  {name} ")).unwrap_or_else(|| panic!("{name} is not in its place"));
        rest = &rest[at + 1..];
    }
}

#[test]
fn one_rule_is_explained_by_name_or_reason() {
    let (out, _, code) = lydian(&["explain", "bad-cb-height"]);
    assert_eq!(code, 0);
    for part in ["A coinbase's scriptSig MUST begin with the block's height", "BIP-0034", "bad-cb-height"] {
        assert!(out.contains(part), "{out}");
    }
    let (out, _, code) = lydian(&["explain", "bad-blk-sigops"]);
    assert_eq!(code, 0);
    assert!(out.contains("block-legacy-sigops") && out.contains("block-sigops-cost"), "{out}");
    let (out, _, code) = lydian(&["explain", "bad-txns-nonstandard-inputs"]);
    assert_eq!(code, 0);
    for part in ["input-legacy-sigops", "BIP-0054", "ValidateInputsStandardness", "TX_INPUTS_NOT_STANDARD"] {
        assert!(out.contains(part), "{out}");
    }
    let (out, err, code) = lydian(&["explain", "bad-cb-hieght"]);
    assert_eq!((code, &out[..]), (2, ""));
    assert!(err.contains("there is no rule 'bad-cb-hieght'; the nearest names are bad-cb-height,"), "{err}");
}

#[test]
fn help_and_version() {
    // Tools look for the word "version" in the first line, as Core writes it.
    let (out, err, code) = lydian(&["--version"]);
    assert!(out.starts_with(&format!("Lydian daemon version v{} lydian\n", env!("CARGO_PKG_VERSION"))), "{out}");
    assert_eq!((&err[..], code), ("", 0));
    let lines: Vec<&str> = out.lines().collect();
    let is_build = lines[1].starts_with("Build: commit ") && lines[1].contains(", rustc ");
    assert!(is_build && lines[1].contains("; features: "), "{out}");
    let kernels = lines[2].strip_prefix("Signature kernels: ").unwrap();
    assert_eq!(kernels.matches(" (chosen)").count(), 1, "{out}");
    assert!(kernels.replace(" (chosen)", "").ends_with("reference"), "{out}");
    let (out, _, code) = lydian(&["verify", "--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("xor.dat") && out.contains("Exit codes"), "{out}");
    assert_eq!(lydian(&["verify"]).2, 2, "no path");
    assert_eq!(lydian(&["nothing"]).2, 1, "no such command");
}
