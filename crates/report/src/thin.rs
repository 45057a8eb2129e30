//! Makes results small enough to be kept with the project.
//!
//! Input: results. Output: the same with fewer samples and without this machine's directories, and a sentence that says
//! so. Invariant: no figure, answer, verdict or reason changes, except for paths; the first and the last sample of a
//! run are kept. A file must never be thinned without that sentence.

use crate::electrum::results::ElectrumResults;
use crate::results::{LeftOut, NodeFacts, Results, Sample};

/// Default number of samples to keep of a run: enough for a chart.
pub const SAMPLES_DEFAULT: usize = 40;

/// Keeps at most `samples` samples of each run, evenly spread.
pub fn thin(results: &Results, samples: usize) -> Results {
    let mut small = results.clone();
    let (mut before, mut after) = (0, 0);
    for run in &mut small.runs {
        before += run.samples.len();
        keep(&mut run.samples, samples);
        after += run.samples.len();
        run.log_end = run.log_end.take().map(|log| without_folders(&log));
        run.reason = run.reason.take().map(|reason| without_folders(&reason));
    }
    small.nodes.iter_mut().chain(&mut small.servers).for_each(shorten);
    small.lab.command_line.iter_mut().for_each(|text| *text = without_folders(text));
    shorten_reasons(&mut small.left_out);
    small.thinned = Some(thinned_note(results.thinned.as_deref(), before, after));
    small
}

/// The same for Electrum servers: the samples are those of the index builds; columns stay complete.
pub fn thin_electrum(results: &ElectrumResults, samples: usize) -> ElectrumResults {
    let mut small = results.clone();
    let (mut before, mut after) = (0, 0);
    for server in &mut small.servers {
        shorten(&mut server.facts);
        if let Some(build) = &mut server.build {
            before += build.samples.len();
            keep(&mut build.samples, samples);
            after += build.samples.len();
        }
        let reasons = server.failure.iter_mut().chain(&mut server.log_end).chain(&mut server.notes);
        reasons.for_each(|text| *text = without_folders(text));
    }
    shorten(&mut small.daemon);
    small.lab.command_line.iter_mut().for_each(|text| *text = without_folders(text));
    shorten_reasons(&mut small.left_out);
    small.thinned = Some(thinned_note(results.thinned.as_deref(), before, after));
    small
}

fn keep(all: &mut Vec<Sample>, samples: usize) {
    *all = kept(all.len(), samples).filter_map(|at| all.get(at).copied()).collect();
}

fn shorten(node: &mut NodeFacts) {
    node.program = without_folders(&node.program);
    for text in node.arguments.iter_mut().chain(&mut node.notes).chain(&mut node.cannot).chain(&mut node.source) {
        *text = without_folders(text);
    }
}

fn shorten_reasons(left_out: &mut [LeftOut]) {
    for left in left_out {
        left.reason = without_folders(&left.reason);
    }
}

fn thinned_note(earlier: Option<&str>, before: usize, after: usize) -> String {
    let text = format!("{after} of {before} samples are kept, and paths by their last part");
    earlier.map_or(text.clone(), |earlier| format!("{earlier}; then {text}"))
}

/// The indices of `wanted` out of `all` items, including the first and the last.
fn kept(all: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let count = wanted.min(all);
    (0..count).map(move |index| if count > 1 { index * (all - 1) / (count - 1) } else { all.saturating_sub(1) })
}

/// Replaces absolute paths by their last component: the directories mean nothing to others.
fn without_folders(text: &str) -> String {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '~');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        let end = path.find(|c| !is_inside(c)).unwrap_or(path.len());
        let (path, after) = path.split_at(end);
        // Part of a word before it: a relative path, an address, a fraction.
        let is_absolute =
            before.chars().next_back().or(out.chars().next_back()).is_none_or(|c| !is_inside(c) && c != ':');
        let folders = path.trim_end_matches('/').matches('/').count();
        out.push_str(before);
        out.push_str(match path.trim_end_matches('/').rsplit_once('/') {
            Some((_, name)) if is_absolute && folders > 1 => name,
            _ => path,
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{self, Took};
    use crate::results::Sample;

    #[test]
    fn paths_are_named_by_their_last_part_and_all_else_stays() {
        for (text, expected) in [
            ("/a/b/target/release/lydian", "lydian"),
            ("cannot read \"/var/x/blocks/blk00000.dat\": gone", "cannot read \"blk00000.dat\": gone"),
            ("-datadir=/var/x/data -par=2", "-datadir=data -par=2"),
            (
                "https://example.org/a/b 1/2 and/or target/release/lydian-lab",
                "https://example.org/a/b 1/2 and/or target/release/lydian-lab",
            ),
            ("/dev", "/dev"),
            ("DATADIR/blocks", "DATADIR/blocks"),
            ("/a/b/ /c/d", "b d"),
            ("", ""),
        ] {
            assert_eq!(without_folders(text), expected);
        }
    }

    #[test]
    fn samples_are_spread_evenly_from_the_first_to_the_last() {
        let places = |all, wanted| kept(all, wanted).collect::<Vec<_>>();
        assert_eq!(places(101, 5), [0, 25, 50, 75, 100]);
        assert_eq!(places(3, 5), [0, 1, 2]);
        assert_eq!(places(9, 1), [8]);
        assert_eq!(places(9, 0), [0usize; 0]);
        assert_eq!(places(0, 5), [0usize; 0]);
    }

    #[test]
    fn figures_of_electrum_servers_stay_too() {
        let document = include_str!("../../../docs/formats/lab-electrum.md");
        let (_, rest) = document.split_once("```json\n").unwrap();
        let mut results: ElectrumResults = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        results.servers[0].facts.program = "/var/x/bin/electrs".into();
        results.daemon.program = "/var/x/bin/bitcoind".into();
        results.servers[0].build.as_mut().unwrap().samples = vec![Sample::default(); 9];
        let small = thin_electrum(&results, 2);
        assert_eq!((small.servers[0].facts.program.as_str(), small.daemon.program.as_str()), ("electrs", "bitcoind"));
        assert_eq!(small.servers[0].build.as_ref().unwrap().samples.len(), 2);
        assert_eq!((&small.servers[0].queries, &small.scripts), (&results.servers[0].queries, &results.scripts));
        let samples = |of: &ElectrumResults| {
            of.servers.iter().flat_map(|server| &server.build).map(|build| build.samples.len()).sum::<usize>()
        };
        let expected = format!("{} of {} samples are kept", samples(&small), samples(&results));
        assert!(small.thinned.unwrap().starts_with(&expected), "{expected}");
    }

    #[test]
    fn no_figure_changes_and_the_file_says_what_is_missing() {
        let mut results = made_up::results("mainnet-mix", 550, [1; 6], &[Took::new("lydian", 2.0, 4.0)]);
        results.runs[0].samples = (0..100).map(|at| Sample { seconds: f64::from(at), ..Sample::default() }).collect();
        results.runs[0].log_end = Some("end of /var/x/debug.log".into());
        results.nodes[0].program = "/var/x/lydian".into();
        let small = thin(&results, 10);
        assert_eq!((&small.summary, small.runs[0].samples.len()), (&results.summary, 10));
        assert_eq!(small.runs[0].samples.last(), results.runs[0].samples.last());
        assert_eq!(
            (small.nodes[0].program.as_str(), small.runs[0].log_end.as_deref()),
            ("lydian", Some("end of debug.log"))
        );
        assert_eq!(small.thinned.as_deref(), Some("10 of 100 samples are kept, and paths by their last part"));
        assert!(thin(&small, 5).thinned.unwrap().contains("; then 5 of 10"));
        let back = Results::parse(small.to_json().as_bytes()).unwrap();
        assert_eq!(back, small);
    }
}
