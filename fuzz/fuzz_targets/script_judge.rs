//! The interpreter against Bitcoin Core on spends that the fuzzer chooses: same verdict, same script error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::case as spend_of;
use lydian_oracle::Judge;
use lydian_oracle::compare::{Capturing, ours, reproduction, theirs, verdict_name};
use std::sync::{LazyLock, Mutex};

/// One judge for all inputs.
static JUDGE: LazyLock<Mutex<Judge>> =
    LazyLock::new(|| Mutex::new(Judge::start().unwrap_or_else(|error| panic!("{error}"))));

fuzz_target!(|bytes: &[u8]| {
    let case = spend_of(bytes);
    let one = std::slice::from_ref(&case);
    let Some(answers) = ours(one, Capturing::Templates) else { panic!("does not parse: {}", reproduction(&case)) };
    let mut judge = JUDGE.lock().unwrap_or_else(|error| panic!("{error}"));
    let verdict = theirs(&mut judge, one).unwrap_or_else(|error| panic!("{error}: {}", reproduction(&case)))[0];
    let (judged, answer) = (verdict_name(verdict), answers[0]);
    assert!(answer.agrees_with(verdict), "the judge says {judged}, we {answer:?}: {}", reproduction(&case));
});
