//! The log as programs that drive Core read it: both programs are given the same blocks, and what they log at the
//! default level is compared. Permitted differences are listed in `log_differences.tsv`, each with its reason; a line
//! there that is not needed is also an error.

use crate::server::Server;
use lydian_chains::presets::ledger::{Expectation, read_cases};
use lydian_chains::presets::{invalid, reorg};
use lydian_oracle::{Scratch, or_skip};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Permitted differences: the program (`core`, `lydian`), the start of the line, the reason.
const DIFFERENCES: &str = include_str!("log_differences.tsv");

/// Lines without their times, and without permitted differences.
struct Lines {
    who: &'static str,
    used: RefCell<BTreeSet<&'static str>>,
}

impl Lines {
    fn new(who: &'static str) -> Lines {
        Lines { who, used: RefCell::default() }
    }

    fn may_differ(&self, line: &str) -> bool {
        let rows = DIFFERENCES.lines().filter(|row| !row.starts_with('#'));
        let found = rows
            .filter(|row| row.split('\t').next().map(|who| who.trim_end_matches('?')) == Some(self.who))
            .find(|row| {
                let start = row.split('\t').nth(1).unwrap_or_default();
                line.starts_with(start) || start.strip_prefix('*').is_some_and(|end| line.ends_with(end))
            });
        self.used.borrow_mut().extend(found);
        found.is_some()
    }

    fn of(&self, server: &Server) -> Vec<String> {
        let text = fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty()).map(without_time);
        lines.filter(|line| !self.may_differ(line)).map(str::to_owned).collect()
    }

    fn check_all_used(&self) {
        let rows = DIFFERENCES.lines().filter(|row| row.split('\t').next() == Some(self.who));
        let idle: Vec<_> = rows.filter(|row| !self.used.borrow().contains(row)).collect();
        assert!(idle.is_empty(), "allowed differences that did not occur: {idle:#?}");
    }
}

fn without_time(line: &str) -> &str {
    let (_, rest) = line.split_once("Z ").unwrap();
    match rest.strip_prefix("(mocktime: ").and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => rest,
    }
}

/// The lines before the first block, without values: words with a digit, a path or quotes.
fn start_of(lines: &[String]) -> Vec<String> {
    let is_value = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit() || "/\"'".contains(letter));
    let words = |line: &String| {
        let words = line.split(' ').map(|word| if is_value(&word) { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.iter().take_while(|line| !is_first_block(line)).map(words).collect()
}

fn is_first_block(line: &str) -> bool {
    line.starts_with("Enabling script verification at block #1 ")
}

/// The lines from the first block on, without the progress and the size of the caches, in which the programs differ.
fn story_of(lines: &[String]) -> Vec<String> {
    let cut = |line: &String| line.split(" progress=").next().unwrap_or_default().to_owned();
    lines.iter().skip_while(|line| !is_first_block(line)).map(cut).collect()
}

/// Submits blocks to both, stops both, and compares their logs.
fn compare(program: &Path, name: &str, cases: &[(Expectation, Vec<u8>)], is_strict: bool) -> [Lines; 2] {
    let mut core = Server::core(program, &format!("{name}-core"), &[]);
    let mut ours = Server::lydian(name, &["-assumevalid=0"]);
    let mut now = 0;
    for (case, block) in cases {
        if case.now != now {
            now = case.now;
            for server in [&core, &ours] {
                server.result("setmocktime", &format!("[{now}]"));
            }
        }
        let hex: String = block.iter().map(|byte| format!("{byte:02x}")).collect();
        let answers = [&core, &ours].map(|server| server.call("submitblock", &format!("[\"{hex}\"]")).body);
        assert_eq!(answers[0], answers[1], "{}", case.name);
    }
    for server in [&mut core, &mut ours] {
        server.result("stop", "[]");
        assert_eq!(server.wait(), Some(0), "{name}");
    }
    let all = [Lines::new("core"), Lines::new("lydian")];
    let lines = [all[0].of(&core), all[1].of(&ours)];
    let starts: [BTreeSet<String>; 2] = [0, 1].map(|who| start_of(&lines[who]).into_iter().collect());
    let missing: Vec<_> = starts[0].difference(&starts[1]).collect();
    assert!(missing.is_empty(), "{name}: Core says at its start, and Lydian does not: {missing:#?}\n{:#?}", starts[1]);
    let stories = [0, 1].map(|who| story_of(&lines[who]));
    let differing = stories[0].iter().zip(&stories[1]).position(|(core, ours)| core != ours);
    if let Some(at) = differing {
        let around = |who: usize| stories[who][at.saturating_sub(3)..(at + 4).min(stories[who].len())].join("\n  ");
        panic!("{name}: line {at} differs\ncore:\n  {}\nlydian:\n  {}", around(0), around(1));
    }
    let counts = [0, 1].map(|who| stories[who].len());
    assert_eq!(counts[0], counts[1], "{name}: {:?} {:?}", stories[0].last(), stories[1].last());
    assert!(!is_strict || counts[0] > 200, "{counts:?}");
    all
}

/// Regression test. Lines were missing, and a reject line had no debug message: `bad-version(0x00000002)` without
/// `rejected nVersion=...`, and no `InvalidChainFound`. Every way to break a rule, and competing branches, are logged
/// by both programs in the same words and order.
#[test]
fn the_same_story_is_logged_in_the_same_words() {
    let name = "the_same_story_is_logged_in_the_same_words";
    let Some(built) = or_skip(name, lydian_oracle::build::locate()) else { return };
    let invalid_blocks = Scratch::new("log-invalid");
    invalid::write(1, invalid_blocks.path()).unwrap();
    let cases = read_cases(invalid_blocks.path()).unwrap();
    let seen = compare(&built.bitcoind, "log-invalid", &cases, true);
    let branches = Scratch::new("log-reorg");
    reorg::write(branches.path()).unwrap();
    let more = compare(&built.bitcoind, "log-reorg", &read_cases(branches.path()).unwrap(), false);
    for (seen, more) in seen.into_iter().zip(more) {
        seen.used.borrow_mut().extend(more.used.into_inner());
        seen.check_all_used();
    }
}
