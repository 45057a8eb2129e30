//! The operations of any script, against straightforward versions of Core's `GetScriptOp` and `GetSigOpCount`.
//!
//! Also checks every predicate on the shape of a script.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_oracle::generate::{encode, parse};
use lydian_script::{
    is_p2sh, is_push_only, is_unspendable, legacy_sigop_count, ops, p2sh_sigop_count, witness_program,
};

/// Returns opcode, range of the pushed bytes, and end. Returns `None` at a truncated push.
fn plain(script: &[u8], at: usize) -> Option<(u8, std::ops::Range<usize>, usize)> {
    let opcode = *script.get(at)?;
    let length = |size: usize| {
        let bytes = script.get(at + 1..at + 1 + size)?;
        Some(bytes.iter().rev().fold(0_usize, |length, byte| length << 8 | usize::from(*byte)))
    };
    let (header, size) = match opcode {
        0..=75 => (1, usize::from(opcode)),
        76 => (2, length(1)?),
        77 => (3, length(2)?),
        78 => (5, length(4)?),
        _ => (1, 0),
    };
    let end = at.checked_add(header)?.checked_add(size)?;
    (end <= script.len()).then_some((opcode, at + header..end, end))
}

fn plain_sigops(script: &[u8], is_accurate: bool) -> usize {
    let (mut at, mut last, mut count) = (0, 0xff, 0);
    while let Some((opcode, _, end)) = plain(script, at) {
        count += match opcode {
            0xac | 0xad => 1,
            0xae | 0xaf if is_accurate && (0x51..=0x60).contains(&last) => usize::from(last - 0x50),
            0xae | 0xaf => 20,
            _ => 0,
        };
        (at, last) = (end, opcode);
    }
    count
}

fuzz_target!(|script: &[u8]| {
    let mut at = 0;
    let mut only_pushes = true;
    let mut last_push: &[u8] = &[];
    for op in ops(script) {
        match (op, plain(script, at)) {
            (Ok(op), Some((opcode, push, end))) => {
                assert_eq!((op.opcode, op.push, op.end), (opcode, &script[push.clone()], end));
                only_pushes &= opcode <= 0x60;
                last_push = &script[push];
                at = end;
            }
            (Err(bad), None) => {
                assert!(bad.offset > at && bad.offset <= script.len());
                only_pushes = false;
                at = script.len();
            }
            (op, plain) => panic!("{op:?} and {plain:?}"),
        }
    }
    assert_eq!(at, script.len());
    assert_eq!(is_push_only(script), only_pushes);
    for is_accurate in [false, true] {
        assert_eq!(legacy_sigop_count(script, is_accurate), plain_sigops(script, is_accurate));
    }
    // When the script is the scriptSig of a P2SH output, its last push is counted. If it does more than push, nothing
    // is counted.
    let p2sh = [&[0xa9, 0x14][..], &[0; 20], &[0x87]].concat();
    let redeem = if only_pushes { plain_sigops(last_push, true) } else { 0 };
    assert_eq!((p2sh_sigop_count(script, &p2sh), p2sh_sigop_count(script, &p2sh[1..])), (redeem, 0));
    assert_eq!(encode(&parse(script)), script);
    let shape = (script.len(), script.first(), script.get(1), script.last());
    assert_eq!(is_p2sh(script), shape == (23, Some(&0xa9), Some(&0x14), Some(&0x87)));
    assert_eq!(is_unspendable(script), script.first() == Some(&0x6a) || script.len() > 10_000);
    let is_program = (4..=42).contains(&script.len())
        && matches!(script[0], 0 | 0x51..=0x60)
        && usize::from(script[1]) == script.len() - 2;
    assert_eq!(witness_program(script).is_some(), is_program);
});
