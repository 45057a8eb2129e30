//! Scripts against the judge: generated and published spends, changed in any way, under random legal flags; Core's verdict
//! and script error must be ours, found exactly and by capture.
//!
//! Settings: `LYDIAN_JUDGE_SECONDS` bounds the time (default 5), `LYDIAN_SEED` chooses the cases (default 1).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a test that reads its data, the clock and its settings, and says what it counted"
)]

mod vectors;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use lydian_curve::Reference;
use lydian_oracle::generate::{Case, Random, TEMPLATES, random_case, shrink};
use lydian_oracle::{Answer, Judge, Prevout, ScriptRequest, or_skip};
use lydian_primitives::{Output, to_hex};
use lydian_script::{ScriptError, TxContext, verify_input, verify_input_by_capture};

/// Cases that are asked at once.
const BATCH: usize = 2000;
/// From so many cases on, the kinds that were reached are asserted.
const CASES_OF_ALL_KINDS: usize = 20_000;
/// Script errors that so many cases have to reach, OK among them. Core has 55; UNKNOWN_ERROR is none of VerifyScript's.
const ERRORS_MIN: usize = 53;
/// Findings that are shown.
const SHOWN: usize = 5;

/// Core's number, 0 for success.
type Verdict = u32;

fn number(result: Result<(), ScriptError>) -> Verdict {
    result.map_or_else(ScriptError::number, |()| 0)
}

/// Ours: exact, and by capture with exact as what decides the rest.
fn ours(case: &Case) -> [Verdict; 2] {
    let tx = case.tx.to_transaction().unwrap_or_else(|| panic!("does not parse: {case:?}"));
    let spent: Vec<_> = case.spent.iter().map(|o| Output { value: o.value, script_pubkey: &o.script_pubkey }).collect();
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let exact = verify_input(&context, case.index, case.flags);
    let by_capture = verify_input_by_capture(&context, case.index, case.flags, &Reference);
    [number(exact), number(by_capture)]
}

/// The judge's, for many.
fn theirs(judge: &mut Judge, cases: &[Case]) -> Vec<Verdict> {
    let encoded: Vec<_> = cases.iter().map(|case| case.tx.encode()).collect();
    let prevouts: Vec<Vec<_>> = cases
        .iter()
        .map(|case| case.spent.iter().map(|o| Prevout { value: o.value.0, script_pubkey: &o.script_pubkey }).collect())
        .collect();
    let requests: Vec<_> = cases
        .iter()
        .zip(encoded.iter().zip(&prevouts))
        .map(|(case, (tx, prevouts))| ScriptRequest { flags: case.flags.0, index: case.index as u32, tx, prevouts })
        .collect();
    let answers = judge.verify_many(&requests).unwrap_or_else(|error| panic!("{error}"));
    let known = |(answer, case): (Answer<lydian_oracle::ScriptError>, &Case)| match answer {
        Answer::Known(error) => u32::from(error.0),
        other => panic!("{other:?}\n{}", reproduction(case)),
    };
    answers.into_iter().zip(cases).map(known).collect()
}

/// Everything that is needed to ask again, on one line.
fn reproduction(case: &Case) -> String {
    let prevouts: Vec<_> =
        case.spent.iter().map(|o| serde_json::json!([o.value.0, to_hex(&o.script_pubkey)])).collect();
    let flags = case.flags.names().join(",");
    let (tx, input) = (to_hex(&case.tx.encode()), case.index);
    serde_json::json!({ "name": case.name, "flags": flags, "tx": tx, "input": input, "prevouts": prevouts }).to_string()
}

#[derive(Default)]
struct Counts {
    cases: usize,
    /// By name: rejected, accepted.
    names: BTreeMap<&'static str, [usize; 2]>,
    errors: BTreeMap<Verdict, usize>,
    findings: Vec<String>,
}

impl Counts {
    fn add(&mut self, judge: &mut Judge, case: &Case, judged: Verdict, [exact, by_capture]: [Verdict; 2]) {
        self.cases += 1;
        self.names.entry(case.name).or_default()[usize::from(judged == 0)] += 1;
        *self.errors.entry(judged).or_default() += 1;
        if (exact, by_capture) == (judged, judged) {
            return;
        }
        let differs = |judge: &mut Judge, case: &Case| {
            let judged = theirs(judge, std::slice::from_ref(case))[0];
            ours(case) != [judged, judged]
        };
        let small = if self.findings.len() < SHOWN { shrink(case, &mut |c| differs(judge, c)) } else { case.clone() };
        let (judged, [exact, by_capture]) = (theirs(judge, std::slice::from_ref(&small))[0], ours(&small));
        let mut text = format!("judge {}, exact {}, by capture {}\n", name(judged), name(exact), name(by_capture));
        write!(text, "  small: {}\n  found: {}", reproduction(&small), reproduction(case)).unwrap();
        self.findings.push(text);
    }

    fn report(&self, seed: u64, seconds: f64) {
        let per_second = self.cases as f64 / seconds;
        let accepted = self.errors.get(&0).copied().unwrap_or_default();
        eprintln!("scripts against the judge: seed {seed}, {} cases in {seconds:.1} s ({per_second:.0}/s)", self.cases);
        eprintln!("  {accepted} accepted, {} rejected, {} differences", self.cases - accepted, self.findings.len());
        for (name, [rejected, accepted]) in &self.names {
            eprintln!("  {name}: {accepted} accepted, {rejected} rejected");
        }
        for (error, count) in &self.errors {
            eprintln!("  {}: {count}", name(*error));
        }
    }
}

fn name(verdict: Verdict) -> &'static str {
    ScriptError::from_number(verdict).map_or("OK", ScriptError::short_name)
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
    let mut cases = seeds.clone(); // first of all, the vectors as they are
    for batch in 0_u64.. {
        let (judged, found) = std::thread::scope(|scope| {
            let judged = scope.spawn(|| theirs(&mut judge, &cases));
            let found: Vec<_> = cases.iter().map(ours).collect();
            (judged.join().unwrap(), found)
        });
        for ((case, judged), found) in cases.iter().zip(judged).zip(found) {
            counts.add(&mut judge, case, judged, found);
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
        let reached = |name: &str| counts.names.get(name).is_some_and(|[rejected, accepted]| *rejected * *accepted > 0);
        assert!(TEMPLATES.iter().all(|(name, ..)| reached(name)), "a template without both verdicts");
    }
}

/// A comparison that could not fail would prove nothing: a wrong answer of ours is found, and made small.
#[test]
fn a_wrong_answer_is_found() {
    let Some(mut judge) = or_skip("scripts: a wrong answer is found", Judge::start()) else { return };
    let case = vectors::all().into_iter().find(|case| ours(case) == [0, 0]).unwrap();
    let judged = theirs(&mut judge, std::slice::from_ref(&case))[0];
    let mut counts = Counts::default();
    counts.add(&mut judge, &case, judged, [judged, judged + 1]);
    assert_eq!(counts.findings.len(), 1, "by capture");
    counts.add(&mut judge, &case, judged, [judged + 1, judged]);
    assert_eq!((counts.findings.len(), counts.cases), (2, 2), "exact");
    assert!(counts.findings[1].contains("\"prevouts\":[[") && counts.findings[1].contains("\"flags\":"));
}
