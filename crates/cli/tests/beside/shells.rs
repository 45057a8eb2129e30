//! `lydian-cli completions` in real shells, and the manual page.

use crate::OURS;
use lydian_oracle::Scratch;
use lydian_oracle::terminal::{check_completions, lint_manual_page};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn shells_complete_methods_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let home = Scratch::new(&format!("cli-completes-{shell}"));
        fs::create_dir_all(home.path()).unwrap();
        let lines = [
            ("lydian-cli -rpccook", "rpccookiefile="),
            ("lydian-cli -color=al", "color=always"),
            ("lydian-cli getblockch", "getblockchaininfo"),
            ("lydian-cli help getbestb", "help getbestblockhash"),
        ];
        check_completions(shell, Path::new(OURS), home.path(), &lines);
    }
}

#[test]
fn the_manual_page_has_no_mistake() {
    let page = Command::new(OURS).arg("-help-manual=2026-11-27").output().unwrap();
    let text = String::from_utf8(page.stdout).unwrap();
    assert!(text.contains(".TH LYDIAN\\-CLI 1 \"2026-11-27\"") && text.contains("\\fBgrind\\fR"), "{text}");
    lint_manual_page(&text, Scratch::new("cli-manual").path());
}

#[test]
fn an_unknown_shell_is_an_error() {
    for words in [&["completions"][..], &["completions", "csh"], &["completions", "bash", "zsh"]] {
        let output = Command::new(OURS).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("completions needs the name of a shell: bash, zsh, fish"), "{said}");
    }
}
