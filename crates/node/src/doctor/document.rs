//! docs/doctor.md: the table of checks as Markdown. Output: text, the same on every machine.

use super::check::{Check, Group};
use super::table::CHECKS;

const HEAD: &str = "<!-- Generated from crates/node/src/doctor by `make generate`. -->
# lydian doctor

    lydian doctor                            # what is wrong here, and what to do
    lydian doctor -datadir=/data -regtest    # with the options of the node
    lydian doctor --json                     # for programs
    lydian doctor --bundle report.tar.zst    # also pack what helps others to help

`lydian doctor` answers the questions below. It changes nothing, takes no lock, and works while the
node runs and when it cannot start. Give it the options that the node is started with, and run it as
the node's user: as another one it cannot see the node's process or its cookie.

The answers that need your help come first, with what to do. The exit code is 0 if all is well, 1 if
there is a warning and 2 if something is bad; 2 is also the exit code of a wrong command line. A
question that cannot be asked, such as one for a running node, is not a fault.

It takes about a second. Each of the measurements of the disk and the sample of the files ends after
2 seconds at most, also on a slow disk.
";

const JSON: &str = "
## JSON

`--json` prints one object. Fields are added without notice; if one changes its meaning or is
removed, `format` changes.

| field | meaning |
|---|---|
| `format` | 1 |
| `lydian` | the version of the program |
| `time` | when it was made, in seconds since 1970 |
| `datadir`, `chain` | the directory of the chain and its name; `null` if the settings name none |
| `is_running`, `process` | whether a process holds the directory, and its number if it is known |
| `level` | the worst answer: `ok`, `warning` or `bad` |
| `counts` | the number of answers: `ok`, `skipped`, `warning`, `bad` |
| `seconds` | time that it took |
| `checks` | one object for each check, in the order of this page |

Each check has `name`, `group` (`disk`, `memory`, `machine`, `network`, `directory`, `settings`,
`node`), `question`, `level` (`ok`, `skipped`, `warning`, `bad`), `text`, and `advice`, which is
`null` unless the level is `warning` or `bad`. Names of checks stay the same.
";

pub(crate) fn document() -> String {
    let mut text = HEAD.to_owned();
    for group in Group::ALL {
        text += &format!("\n## {}\n\n", group.heading());
        text += "| check | question | warning | bad | what to do |\n|---|---|---|---|---|\n";
        CHECKS.iter().filter(|check| check.group == group).for_each(|check| text += &row(check));
    }
    text + JSON
}

fn row(check: &Check) -> String {
    let Check { name, question, advice, .. } = check;
    let cell = |text: &'static str| if text.is_empty() { "never" } else { text };
    format!("| `{name}` | {question} | {} | {} | {advice} |\n", cell(check.warning), cell(check.bad))
}
