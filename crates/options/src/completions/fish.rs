//! fish: one `complete` command for each candidate. fish completes `--name=`, which the programs read as `-name=`.

use super::{DESCRIPTION_MAX, quoted};
use crate::program::{Program, Then, short};

pub(super) fn script(program: &Program) -> String {
    let name = program.name;
    let mut script = format!(
        "# Completes the command lines of {name} in fish. Written by `{name} completions fish`.\ncomplete -c {name} -f\n"
    );
    for entry in program.groups.iter().flat_map(|(_, entries)| entries) {
        let value = match entry.value {
            Then::Nothing if entry.takes_value() => " -x".to_owned(),
            Then::Nothing => String::new(),
            Then::Files => " -r -F".to_owned(),
            Then::Directories => format!(" -x -a {DIRECTORIES}"),
            Then::Words(words) => format!(" -x -a '{}'", words.join(" ")),
        };
        script += &format!("complete -c {name} -l {}{value} -d {}\n", entry.name, text(entry.help));
    }
    for word in &program.words {
        let help = if word.help.is_empty() { String::new() } else { format!(" -d {}", text(word.help)) };
        script += &format!("complete -c {name} -n __fish_use_subcommand -a {}{help}\n", word.name);
        let offered = match word.then {
            Then::Nothing => continue,
            Then::Files => "-F".to_owned(),
            Then::Directories => format!("-a {DIRECTORIES}"),
            Then::Words(words) => format!("-a '{}'", words.join(" ")),
        };
        script += &format!("complete -c {name} -n '__fish_seen_subcommand_from {}' {offered}\n", word.name);
    }
    script
}

const DIRECTORIES: &str = "'(__fish_complete_directories)'";

/// In fish, a backslash escapes inside of single quotes too.
fn text(help: &str) -> String {
    match short(help, DESCRIPTION_MAX).replace('\\', r"\\") {
        text if text.contains('\'') => format!("'{}'", text.replace('\'', r"\'")),
        text => quoted(&text),
    }
}
