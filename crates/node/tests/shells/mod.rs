//! `lydian completions` in real shells, and the manual page.

use lydian_oracle::Scratch;
use lydian_oracle::terminal::{check_completions, lint_manual_page};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LYDIAN: &str = env!("CARGO_BIN_EXE_lydian");

fn lydian(arguments: &[&str]) -> Output {
    Command::new(LYDIAN).args(arguments).output().unwrap()
}

#[test]
fn shells_complete_options_values_commands_and_files() {
    for shell in ["bash", "zsh", "fish"] {
        let home = Scratch::new(&format!("shells-complete-{shell}"));
        fs::create_dir_all(home.path().join("unusual")).unwrap();
        let lines = [
            ("lydian -blockfilteri", "blockfilterindex="),
            ("lydian -blockfilterindex=ba", "blockfilterindex=basic"),
            ("lydian -datadir=unus", "datadir=unusual/"),
            ("lydian utxo", "utxohash"),
            ("lydian index stat", "index status"),
            ("lydian import unus", "import unusual/"),
            ("lydian doct", "doctor"),
        ];
        check_completions(shell, Path::new(LYDIAN), home.path(), &lines);
    }
}

#[test]
fn the_manual_page_has_no_mistake() {
    let page = lydian(&["-help-manual=2026-11-27"]);
    let text = String::from_utf8(page.stdout).unwrap();
    assert!(text.contains(".TH LYDIAN 1 \"2026-11-27\"") && text.contains("\\fB\\-txindex\\fR"), "{text}");
    let home = Scratch::new("the_manual_page");
    lint_manual_page(&text, home.path());
}

#[test]
fn an_unknown_shell_is_an_error() {
    for (arguments, said) in [
        (&["completions", "csh"][..], "lydian completions: no completions for 'csh', only for bash, zsh, fish"),
        (&["completions"], "lydian completions needs SHELL"),
    ] {
        let output = lydian(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
}
