//! Compares script verification with the judge.
//!
//! Generated and published spends, changed in any way, are verified under random legal flags. Our verdict and script
//! error must equal Core's, both in exact mode and by capture. Settings: `LYDIAN_JUDGE_SECONDS` limits the time
//! (default 5), `LYDIAN_SEED` chooses the cases (default 1).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a test that reads its data, the clock and its settings, and prints its counts"
)]

mod vectors;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use lydian_oracle::compare::{self, Capturing, Ours, Verdict, reproduction, theirs, verdict_name};
use lydian_oracle::generate::{Case, Random, TEMPLATES, random_case, shrink};
use lydian_oracle::{Judge, or_skip};

/// Number of cases per batch.
const BATCH: usize = 2000;
/// Number of cases from which the kinds that were reached are asserted.
const CASES_OF_ALL_KINDS: usize = 20_000;
/// Number of script errors that this number of cases must reach, including OK. Core has 55; VerifyScript never returns
/// UNKNOWN_ERROR.
const ERRORS_MIN: usize = 53;
/// Number of findings that are printed.
const SHOWN: usize = 5;

/// Returns the judge's verdicts. If it refuses a case, that is a mistake in the generator.
fn judged(judge: &mut Judge, cases: &[Case]) -> Vec<Verdict> {
    theirs(judge, cases).unwrap_or_else(|error| panic!("{error}: {}", cases.first().map_or("".into(), reproduction)))
}

fn ours(cases: &[Case], capturing: Capturing) -> Vec<Ours> {
    compare::ours(cases, capturing).unwrap_or_else(|| panic!("a case that does not parse"))
}

#[derive(Default)]
struct Counts {
    cases: usize,
    /// By name: rejected, accepted.
    names: BTreeMap<&'static str, [usize; 2]>,
    errors: BTreeMap<Verdict, usize>,
    /// Proven by capture.
    proven: usize,
    findings: Vec<String>,
}

impl Counts {
    fn add(&mut self, judge: &mut Judge, case: &Case, verdict: Verdict, found: Ours) {
        self.cases += 1;
        self.names.entry(case.name).or_default()[usize::from(verdict == 0)] += 1;
        *self.errors.entry(verdict).or_default() += 1;
        self.proven += usize::from(found.is_proven);
        if found.agrees_with(verdict) {
            return;
        }
        let case = std::slice::from_ref(case);
        let both = [Capturing::Templates, Capturing::Interpreter];
        let mut differs = |case: &Case| {
            let case = std::slice::from_ref(case);
            let verdict = judged(judge, case)[0];
            both.iter().any(|capturing| !ours(case, *capturing)[0].agrees_with(verdict))
        };
        let small = if self.findings.len() < SHOWN { shrink(&case[0], &mut differs) } else { case[0].clone() };
        let mut text = format!("judge {}, ours {} {found:?}\n", verdict_name(verdict), verdict_name(found.exact));
        write!(text, "  small: {}\n  found: {}", reproduction(&small), reproduction(&case[0])).unwrap();
        self.findings.push(text);
    }

    fn report(&self, seed: u64, seconds: f64) {
        let per_second = self.cases as f64 / seconds;
        let accepted = self.errors.get(&0).copied().unwrap_or_default();
        eprintln!("scripts against the judge: seed {seed}, {} cases in {seconds:.1} s ({per_second:.0}/s)", self.cases);
        let (rejected, proven, findings) = (self.cases - accepted, self.proven, self.findings.len());
        eprintln!("  {accepted} accepted ({proven} proven by capture), {rejected} rejected, {findings} differences");
        for (name, [rejected, accepted]) in &self.names {
            eprintln!("  {name}: {accepted} accepted, {rejected} rejected");
        }
        for (error, count) in &self.errors {
            eprintln!("  {}: {count}", verdict_name(*error));
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}: a number?")))
}

/// checklist: 36, 37, 38, 40, 41, 44, 45, 46, 47, 48, 49, 50, 51, 52
#[test]
fn scripts_as_the_judge() {
    let Some(mut judge) = or_skip("scripts against the judge", Judge::start()) else { return };
    let seed = setting("LYDIAN_SEED", 1);
    let time = Duration::from_secs(setting("LYDIAN_JUDGE_SECONDS", 5));
    let start = Instant::now();
    let seeds = vectors::all();
    let mut counts = Counts::default();
    let mut cases = seeds.clone(); // first the unchanged vectors
    for batch in 0_u64.. {
        let capturing = if batch % 2 == 0 { Capturing::Templates } else { Capturing::Interpreter };
        let (verdicts, found) = std::thread::scope(|scope| {
            let verdicts = scope.spawn(|| judged(&mut judge, &cases));
            let found = ours(&cases, capturing);
            (verdicts.join().unwrap(), found)
        });
        for ((case, verdict), found) in cases.iter().zip(verdicts).zip(found) {
            counts.add(&mut judge, case, verdict, found);
        }
        counts.findings.iter().for_each(|finding| eprintln!("DIFFERENCE: {finding}"));
        if start.elapsed() >= time || counts.findings.len() >= SHOWN {
            break;
        }
        let mut random = Random::new(seed, &format!("batch {batch}"));
        cases = (0..BATCH).map(|_| random_case(&mut random, &seeds)).collect();
    }
    counts.report(seed, start.elapsed().as_secs_f64());
    if !counts.findings.is_empty() {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("script-differences-{seed}.txt"));
        std::fs::write(&file, counts.findings.join("\n")).unwrap();
        panic!("{} differences, kept in {}", counts.findings.len(), file.display());
    }
    if counts.cases >= CASES_OF_ALL_KINDS {
        assert!(counts.errors.len() >= ERRORS_MIN, "only {} script errors were reached", counts.errors.len());
        assert!(counts.proven * 2 > counts.errors[&0], "capture proves {} of {}", counts.proven, counts.errors[&0]);
        let reached = |name: &str| counts.names.get(name).is_some_and(|[rejected, accepted]| *rejected * *accepted > 0);
        assert!(TEMPLATES.iter().all(|(name, ..)| reached(name)), "a template without both verdicts");
    }
}

/// The comparison itself works: a wrong verdict of ours is found and shrunk.
#[test]
fn a_wrong_answer_is_found() {
    let Some(mut judge) = or_skip("scripts: a wrong answer is found", Judge::start()) else { return };
    let case = vectors::all().into_iter().find(|case| case.name == "script_tests").unwrap();
    let verdict = judged(&mut judge, std::slice::from_ref(&case))[0];
    let right = ours(std::slice::from_ref(&case), Capturing::Templates)[0];
    assert!(right.agrees_with(verdict));
    let mut counts = Counts::default();
    counts.add(&mut judge, &case, verdict, Ours { exact: verdict + 1, ..right });
    counts.add(&mut judge, &case, verdict + 1, Ours { exact: verdict + 1, is_proven: true });
    assert_eq!((counts.findings.len(), counts.cases), (2, 2));
    assert!(counts.findings[1].contains("\"prevouts\":[[") && counts.findings[1].contains("\"flags\":"));
}
