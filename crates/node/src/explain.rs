//! `lydian explain`: prints the table of consensus rules. Input: a rule name, a reject reason, or nothing. Output:
//! text; exit code 2 for an unknown name.

use crate::screen::{Screen, Tone};
use lydian_consensus::{RULES, RuleInfo, Step};
use lydian_stdx::wrap;
use std::io::{self, Write};

const WIDTH: usize = 100;

pub(crate) fn run(asked: Option<&str>) -> u8 {
    let screen = Screen::new();
    let Some(asked) = asked else {
        list(&screen);
        return 0;
    };
    let found = find(asked);
    if found.is_empty() {
        let nearest = nearest(asked).join(", ");
        // If stderr is closed, there is nowhere to report it.
        let _ = writeln!(
            io::stderr().lock(),
            "there is no rule '{asked}'; the nearest names are {nearest}; `lydian explain` lists all rules"
        );
        return 2;
    }
    for (index, info) in found.iter().enumerate() {
        if index > 0 {
            screen.line("");
        }
        show(&screen, info);
    }
    0
}

/// All rules, a heading per step, in the order of checking.
fn list(screen: &Screen) {
    screen.line("The consensus rules, in the order in which a block is checked against them.");
    let mut step = None;
    let width = RULES.iter().map(|info| info.name.len()).max().unwrap_or(0);
    for info in RULES {
        if step != Some(info.step) {
            step = Some(info.step);
            screen.line("");
            screen.line(&screen.tone(Tone::Strong, &heading(info.step)));
        }
        let indent = " ".repeat(width + 4);
        let must = wrap(info.must, WIDTH - width - 4, &indent);
        screen.line(&format!("  {:width$}  {must}", info.name));
    }
    screen.line("");
    screen.line("`lydian explain RULE` shows a rule's source and Bitcoin Core's reject reason.");
}

fn heading(step: Step) -> String {
    let what = match step {
        Step::Header => "the header alone",
        Step::HeaderInChain => "the header after its ancestors",
        Step::Block => "the block alone",
        Step::Transaction => "each transaction alone",
        Step::BlockInChain => "the block at its height",
        Step::Coins => "the block and the coins it spends",
        Step::Scripts => "the scripts of each input",
    };
    format!("{}: {what}", step.name())
}

fn show(screen: &Screen, info: &RuleInfo) {
    screen.line(&screen.tone(Tone::Strong, info.name));
    for (label, text) in [
        ("must", info.must.to_owned()),
        ("source", info.source.to_owned()),
        ("Core's reason", info.reject_reason.to_owned()),
        ("step", heading(info.step)),
    ] {
        screen.line(&format!("  {label:13}  {}", wrap(&text, WIDTH - 17, &" ".repeat(17))));
    }
}

/// Rules with this name, or all with this reject reason, with or without the text that Core appends in brackets.
fn find(asked: &str) -> Vec<&'static RuleInfo> {
    let plain = asked.split('(').next().unwrap_or_default().trim();
    let by_name: Vec<_> = RULES.iter().filter(|info| info.name.eq_ignore_ascii_case(plain)).collect();
    if by_name.is_empty() || by_name.iter().any(|info| info.reject_reason.eq_ignore_ascii_case(plain)) {
        let by_reason = RULES.iter().filter(|info| info.reject_reason.eq_ignore_ascii_case(plain));
        return by_reason.collect();
    }
    by_name
}

/// The three closest names or reasons: first those that contain the text, then by edit distance.
fn nearest(asked: &str) -> Vec<&'static str> {
    let asked = asked.to_ascii_lowercase();
    let mut names: Vec<_> = RULES.iter().flat_map(|info| [info.name, info.reject_reason]).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| {
        let name = name.to_ascii_lowercase();
        (!name.contains(&asked), edits(&asked, &name))
    });
    names.truncate(3);
    names
}

/// Edit distance: letters to insert, delete or replace to turn one text into the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_name_and_by_every_form_of_their_reason() {
        let names = |asked: &str| find(asked).iter().map(|info| info.name).collect::<Vec<_>>();
        for info in RULES {
            assert!(names(info.name).contains(&info.name), "{}", info.name);
            assert!(names(info.reject_reason).contains(&info.name), "{}", info.reject_reason);
        }
        assert_eq!(names("bad-version(0x00000001)"), ["bad-version"]);
        assert_eq!(names("bad-blk-sigops").len(), 2);
        assert_eq!(names("no-such-rule"), Vec::<&str>::new());
    }

    #[test]
    fn slips_are_answered_with_the_nearest_name() {
        assert_eq!(nearest("bad-cb-hieght")[0], "bad-cb-height");
        assert_eq!(nearest("BIP30")[0], "bad-txns-BIP30");
    }
}
