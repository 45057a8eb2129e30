//! Exact and capture mode on spends that the fuzzer chooses.
//!
//! Exact mode accepts whatever capture proves, with the templates and with the interpreter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::case as spend_of;
use lydian_oracle::compare::{Capturing, ours, reproduction};

fuzz_target!(|bytes: &[u8]| {
    let case = spend_of(bytes);
    let one = std::slice::from_ref(&case);
    for capturing in [Capturing::Templates, Capturing::Interpreter] {
        let Some(answers) = ours(one, capturing) else { panic!("does not parse: {}", reproduction(&case)) };
        let answer = answers[0];
        assert!(answer.agrees_with(answer.exact), "{answer:?} {capturing:?}\n{}", reproduction(&case));
    }
});
