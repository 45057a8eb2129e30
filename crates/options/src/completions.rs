//! Scripts that complete a command line in a shell. Input: a [`Program`]. Output: the text that the shell sources.

mod bash;
mod fish;
mod zsh;

use crate::program::{Program, Word};

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub const NAMES: &[&str] = &["bash", "zsh", "fish"];

    pub fn named(name: &str) -> Option<Shell> {
        match name {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }
}

pub fn script(program: &Program, shell: Shell) -> String {
    match shell {
        Shell::Bash => bash::script(program),
        Shell::Zsh => zsh::script(program),
        Shell::Fish => fish::script(program),
    }
}

/// The longest description that fits beside a candidate.
const DESCRIPTION_MAX: usize = 70;

/// The name of a function of the script.
fn function(program: &Program) -> String {
    format!("_{}", program.name.replace('-', "_"))
}

/// A word of a script that stands for itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Words after which something is offered.
fn continued(program: &Program) -> impl Iterator<Item = &Word> {
    program.words.iter().filter(|word| word.then != crate::Then::Nothing)
}
