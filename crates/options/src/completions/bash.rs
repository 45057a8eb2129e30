//! bash: a function that sets `COMPREPLY`. It needs no other file, so that it works without bash-completion.

use super::{continued, function};
use crate::program::{Program, Then};

const SCRIPT: &str = r#"# Completes the command lines of @PROGRAM@ in bash. Written by `@PROGRAM@ completions bash`.
@FUNCTION@() {
  local line=${COMP_LINE:0:COMP_POINT} first= each dash value candidates
  local word=${line##*[[:space:]]}
  local -a before
  read -ra before <<< "${line%"$word"}"
  for each in "${before[@]:1}"; do
    [[ $each == -* ]] && continue
    first=$each
    break
  done
  COMPREPLY=()
  case $word in
    -*=*)
      value=${word#*=}
      each=${word%%=*}
      case ${each##*-} in
@VALUES@        *) return ;;
      esac
      # If `=` separates words, only the value is replaced.
      [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$each=}")
      ;;
    -*)
      dash=-
      [[ $word == --* ]] && dash=--
      mapfile -t COMPREPLY < <(compgen -P "$dash" -W '@OPTIONS@' -- "${word#"$dash"}")
      [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
      ;;
    *)
      case $first in
        '') mapfile -t COMPREPLY < <(compgen -W '@WORDS@' -- "$word") ;;
@THEN@        *) ;;
      esac
      ;;
  esac
}
complete -F @FUNCTION@ @PROGRAM@
"#;

pub(super) fn script(program: &Program) -> String {
    let entries = || program.groups.iter().flat_map(|(_, entries)| entries);
    let options: Vec<String> =
        entries().map(|entry| format!("{}{}", entry.name, if entry.takes_value() { "=" } else { "" })).collect();
    let case = |name: &str, then: Then, word: &str| match then {
        Then::Nothing => String::new(),
        then => format!("        {name})\n{}          ;;\n", offer(then, word)),
    };
    let values: String = entries().map(|entry| case(entry.name, entry.value, "value")).collect();
    let then: String = continued(program).map(|word| case(word.name, word.then, "word")).collect();
    let words: Vec<&str> = program.words.iter().map(|word| word.name).collect();
    SCRIPT
        .replace("@FUNCTION@", &function(program))
        .replace("@PROGRAM@", program.name)
        .replace("@VALUES@", &values)
        .replace("@THEN@", &then)
        .replace("@OPTIONS@", &options.join(" "))
        .replace("@WORDS@", &words.join(" "))
}

/// The commands that offer what follows; `variable` holds what was typed of it.
fn offer(then: Then, variable: &str) -> String {
    let (actions, is_file) = match then {
        Then::Nothing => return String::new(),
        Then::Directories => ("-d".to_owned(), true),
        Then::Files => ("-f".to_owned(), true),
        Then::Words(words) => (format!("-W '{}'", words.join(" ")), false),
    };
    let filenames = if is_file { "          compopt -o filenames 2>/dev/null\n" } else { "" };
    format!("          mapfile -t COMPREPLY < <(compgen {actions} -- \"${variable}\")\n{filenames}")
}
