//! zsh: a function for `_arguments`, either sourced or found by its name in `fpath`.

use super::{DESCRIPTION_MAX, continued, function, quoted};
use crate::program::{Entry, Program, Then, short};

const SCRIPT: &str = r#"#compdef @PROGRAM@
# Completes the command lines of @PROGRAM@ in zsh. Written by `@PROGRAM@ completions zsh`.
@FUNCTION@_words() {
  local -a names
  names=(
@WORDS@  )
  _describe -t commands command names
}
@FUNCTION@_rest() {
  case ${words[(r)(@NAMES@)]} in
@THEN@    *) ;;
  esac
}
@FUNCTION@() {
  _arguments \
@OPTIONS@    '1:command:@FUNCTION@_words' \
    '*:argument:@FUNCTION@_rest'
}
if [ "$funcstack[1]" = "@FUNCTION@" ]; then
  @FUNCTION@ "$@"
else
  compdef @FUNCTION@ @PROGRAM@
fi
"#;

pub(super) fn script(program: &Program) -> String {
    let entries = program.groups.iter().flat_map(|(_, entries)| entries);
    let options: String = entries.map(|entry| format!("    {} \\\n", quoted(&option(entry)))).collect();
    let described = |word: &crate::Word| {
        let text = short(word.help, DESCRIPTION_MAX);
        let text = if text.is_empty() { String::new() } else { format!(":{text}") };
        format!("    {}\n", quoted(&format!("{}{text}", word.name)))
    };
    let words: String = program.words.iter().map(described).collect();
    let then: String = continued(program).map(|word| format!("    {}) {} ;;\n", word.name, offer(word.then))).collect();
    let names: Vec<&str> = continued(program).map(|word| word.name).collect();
    SCRIPT
        .replace("@FUNCTION@", &function(program))
        .replace("@PROGRAM@", program.name)
        .replace("@WORDS@", &words)
        .replace("@THEN@", &then)
        .replace("@NAMES@", &names.join("|"))
        .replace("@OPTIONS@", &options)
}

/// An option in the notation of `_arguments`: `-name=-[text]:value:action`, where the last hyphen means that the value
/// follows in the same word.
fn option(entry: &Entry) -> String {
    let repeated = if entry.is_list { "*" } else { "" };
    let text = short(entry.help, DESCRIPTION_MAX);
    let text: String = text.chars().flat_map(|c| if "[]:\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
    let value = if entry.takes_value() { format!(":value:{}", action(entry.value)) } else { String::new() };
    let equals = if entry.takes_value() { "=-" } else { "" };
    format!("{repeated}-{}{equals}[{text}]{value}", entry.name)
}

fn action(then: Then) -> String {
    match then {
        Then::Nothing => String::new(),
        Then::Directories => "_files -/".to_owned(),
        Then::Files => "_files".to_owned(),
        Then::Words(words) => format!("({})", words.join(" ")),
    }
}

/// The command that offers what follows a word.
fn offer(then: Then) -> String {
    match then {
        Then::Nothing => ":".to_owned(),
        Then::Directories => "_files -/".to_owned(),
        Then::Files => "_files".to_owned(),
        Then::Words(words) => format!("compadd {}", words.join(" ")),
    }
}
