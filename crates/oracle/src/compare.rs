//! The judge's and our verdicts on the same spends.
//!
//! Input: cases. Output: for each case Core's script error by number (0 for success), either from the judge or from the
//! crates under test, exactly and by capture. Invariants: exact verdicts share one cache of legacy midstates and
//! captures share one list of obligations, which are settled at once, as in the validator. Must never decide which of
//! two verdicts is right.

use lydian_curve::Reference;
use lydian_primitives::{Output, to_hex};
use lydian_script::{
    Captured, LegacyCache, Obligations, ScriptError, TxContext, capture_input, capture_input_interpreted,
    verify_input_with,
};

use crate::generate::Case;
use crate::{Answer, Judge, JudgeError, Prevout, ScriptRequest};

/// Core's number of a script error; 0 for success.
pub type Verdict = u32;

/// Which capture to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capturing {
    /// Templates first, then the interpreter.
    Templates,
    /// The interpreter alone.
    Interpreter,
}

/// Our verdicts on one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ours {
    pub exact: Verdict,
    /// Whether a capture run and its obligations proved the case valid; otherwise exact mode decides.
    pub is_proven: bool,
}

impl Ours {
    /// Whether both modes agree with this verdict.
    pub fn agrees_with(self, verdict: Verdict) -> bool {
        self.exact == verdict && (!self.is_proven || verdict == 0)
    }
}

/// Returns the judge's verdicts, or `Err` also if the judge refuses a case, which is a mistake in that case.
pub fn theirs(judge: &mut Judge, cases: &[Case]) -> Result<Vec<Verdict>, JudgeError> {
    let encoded: Vec<_> = cases.iter().map(|case| case.tx.encode()).collect();
    let prevouts: Vec<Vec<_>> = cases
        .iter()
        .map(|case| case.spent.iter().map(|o| Prevout { value: o.value.0, script_pubkey: &o.script_pubkey }).collect())
        .collect();
    let request = |(case, (tx, prevouts)): (&Case, (_, _))| ScriptRequest {
        flags: case.flags.0,
        index: u32::try_from(case.index).unwrap_or(u32::MAX),
        tx,
        prevouts,
    };
    let parts = encoded.iter().map(Vec::as_slice).zip(prevouts.iter().map(Vec::as_slice));
    let requests: Vec<_> = cases.iter().zip(parts).map(request).collect();
    let answers = judge.verify_many(&requests)?;
    let known = |(answered, answer): (usize, Answer<crate::ScriptError>)| match answer {
        Answer::Known(error) => Ok(u32::from(error.0)),
        Answer::Undecodable(_) | Answer::Refused(_) => Err(JudgeError::Form { answered }),
    };
    answers.into_iter().enumerate().map(known).collect()
}

/// Returns our verdicts, or `None` if a case's transaction does not parse.
pub fn ours(cases: &[Case], capturing: Capturing) -> Option<Vec<Ours>> {
    let mut legacy_cache = LegacyCache::new();
    let mut obligations = Obligations::new();
    let mut found = Vec::with_capacity(cases.len());
    for case in cases {
        let tx = case.tx.to_transaction()?;
        let spent: Vec<_> =
            case.spent.iter().map(|o| Output { value: o.value, script_pubkey: &o.script_pubkey }).collect();
        let context = TxContext::new(tx.view(), &spent)?;
        let exact = verify_input_with(&context, case.index, case.flags, &mut legacy_cache);
        let captured = match capturing {
            Capturing::Templates => capture_input(&context, case.index, case.flags, &mut obligations),
            Capturing::Interpreter => capture_input_interpreted(&context, case.index, case.flags, &mut obligations),
        };
        found.push((exact.map_or_else(ScriptError::number, |()| 0), captured == Captured::Accepted));
    }
    let mut settled = obligations.settle(&Reference).into_iter();
    let answer = |(exact, captured)| Ours { exact, is_proven: captured && settled.next() == Some(true) };
    Some(found.into_iter().map(answer).collect())
}

/// Returns everything needed to reproduce the verdict, as one line of JSON.
pub fn reproduction(case: &Case) -> String {
    let prevouts: Vec<_> =
        case.spent.iter().map(|o| serde_json::json!([o.value.0, to_hex(&o.script_pubkey)])).collect();
    let flags = case.flags.names().join(",");
    let (tx, input) = (to_hex(&case.tx.encode()), case.index);
    serde_json::json!({ "name": case.name, "flags": flags, "tx": tx, "input": input, "prevouts": prevouts }).to_string()
}

/// Returns the name of a verdict in Core's vectors.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    ScriptError::from_number(verdict).map_or("OK", ScriptError::short_name)
}
