//! Helpers of the vector tests: location of data, JSON, hexadecimal, and Core's notation of scripts as text.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "tests read their data and fail on a bad file"
)]

use crate::locate;
use lydian_curve::Reference;
use lydian_primitives::{Amount, Output, hex};
use lydian_script::opcodes::{OP_NOP, OP_RESERVED, OPCODES};
use lydian_script::{Flags, ScriptBuilder, ScriptError, TxContext, verify_input, verify_input_by_capture};
use lydian_stdx::SplitMix64;
use serde_json::Value;
use std::path::Path;

pub(crate) mod lanes;
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use crate::locate::{read, report, shared};

/// A JSON file under `testdata/`, `.zst` or not.
pub(crate) fn testdata_json(path: &str) -> Value {
    json(&locate::testdata(path))
}

/// A JSON file under `tests/vectors/`.
pub(crate) fn vectors_json(name: &str) -> Value {
    json(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text expected: {value}"))
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    hex(text(value)).unwrap_or_else(|error| panic!("{value}: {error}"))
}

pub(crate) fn array32(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("list expected: {value}"))
}

/// Views of outputs that a test owns.
pub(crate) fn outputs(owned: &[(i64, Vec<u8>)]) -> Vec<Output<'_>> {
    owned.iter().map(|(value, script)| Output { value: Amount(*value), script_pubkey: script }).collect()
}

/// Core's `ParseScript` (core_io.cpp): numbers are pushed, `0x..` is inserted unchanged, `'..'` is pushed, the rest are
/// opcodes.
pub(crate) fn parse_script(text: &str) -> Vec<u8> {
    let mut script = Vec::new();
    for word in text.split([' ', '\t', '\n']).filter(|word| !word.is_empty()) {
        if let Ok(number) = word.parse::<i64>() {
            assert!(number.abs() <= 0xffff_ffff && !word.starts_with('+'), "number {word}");
            script.extend(ScriptBuilder::new().push_int(number).into_bytes());
        } else if let Some(digits) = word.strip_prefix("0x") {
            script.extend(hex(digits).unwrap());
        } else if let Some(quoted) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            script.extend(ScriptBuilder::new().push_slice(quoted.as_bytes()).into_bytes());
        } else {
            script.push(opcode(word));
        }
    }
    script
}

/// Looks up an opcode by its name, with or without `OP_`. Opcodes that push have no name here.
fn opcode(word: &str) -> u8 {
    let named = OPCODES.iter().find(|(opcode, name)| {
        let is_named = *opcode >= OP_NOP || *opcode == OP_RESERVED;
        is_named && (*name == word || name.strip_prefix("OP_") == Some(word))
    });
    named.unwrap_or_else(|| panic!("unknown opcode {word}")).0
}

pub(crate) fn flags(value: &Value) -> Flags {
    Flags::from_names(text(value)).unwrap_or_else(|| panic!("unknown flag in {value}"))
}

/// Core's `TrimFlags`: removes flags that are illegal without others.
pub(crate) fn trim_flags(mut flags: Flags) -> Flags {
    if !flags.contains(Flags::P2SH) {
        flags = flags.without(Flags::WITNESS);
    }
    if !flags.contains(Flags::WITNESS) {
        flags = flags.without(Flags::CLEANSTACK);
    }
    flags
}

/// Core's `FillFlags`: adds the flags needed to be legal.
pub(crate) fn fill_flags(mut flags: Flags) -> Flags {
    if flags.contains(Flags::CLEANSTACK) {
        flags |= Flags::WITNESS;
    }
    if flags.contains(Flags::WITNESS) {
        flags |= Flags::P2SH;
    }
    flags
}

/// All flags.
pub(crate) fn all_flags() -> Flags {
    Flags::ALL.iter().fold(Flags::NONE, |all, (_, flag)| all | *flag)
}

/// Flags from a seed, so that a failure is reproducible.
pub(crate) struct Seeded(SplitMix64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Seeded {
        Seeded(SplitMix64::new(seed))
    }

    /// Any set of flags, legal or not.
    pub(crate) fn flags(&mut self) -> Flags {
        Flags(self.0.next_u64() as u32).without(Flags(!all_flags().0))
    }
}

/// Verifies in exact mode and in capture mode, which must agree.
pub(crate) fn verify(context: &TxContext<'_>, input: usize, flags: Flags) -> Result<(), ScriptError> {
    let exact = verify_input(context, input, flags);
    let by_capture = verify_input_by_capture(context, input, flags, &Reference);
    assert_eq!(exact, by_capture, "exact and capture mode under {flags}");
    exact
}
