//! Changes of headers, coinbases, commitments and of the merkle tree.

use crate::plan::{Draft, commitment_output, output};
use crate::rng::Random;
use lydian_consensus::block_subsidy;
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint};
use lydian_script::ScriptBuilder;
use lydian_script::opcodes::*;
use std::rc::Rc;

pub fn version(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.header.version = *random.pick(&[i32::MIN, -1, 0, 1, 2, 3, 4, 5, 0x2000_0000]);
    true
}

pub fn time(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let median = i64::from(draft.state.median());
    let latest = i64::from(draft.now) + 7200;
    let time = match random.below(6) {
        0 | 1 => median + random.range(-1, 1),
        2 | 3 => latest + random.range(-1, 1),
        4 => 0,
        _ => i64::from(u32::MAX),
    };
    draft.block.header.time = u32::try_from(time).unwrap();
    true
}

/// Includes targets that are negative, too large, or zero.
pub fn bits(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let bits =
        [0x207f_fffe, 0x2070_0000, 0x2080_0000, 0x20ff_ffff, 0x217f_ffff, 0xff7f_ffff, 0, 0x1f7f_ffff, 0x2100_7fff];
    draft.block.header.bits = *random.pick(&bits);
    true
}

pub fn parent(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut back = draft.state.clone();
    for _ in 0..random.below(4) {
        back = back.parent.clone().unwrap_or(back);
    }
    draft.block.header.prev_block = if random.once_in(3) { BlockHash([5; 32]) } else { back.hash };
    true
}

pub fn no_work(draft: &mut Draft<'_>, _: &mut Random) -> bool {
    while draft.block.header.hash().0[31] < 0x80 {
        draft.block.header.nonce = draft.block.header.nonce.wrapping_add(1);
    }
    true
}

pub fn coinbase_height(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let height = i64::from(draft.height());
    let tail = random.bytes(4);
    let script = &mut draft.block.txs[0].inputs[0].script_sig;
    *script = match random.below(5) {
        0 => ScriptBuilder::new().push_int(height + 1).raw(&tail).into_bytes(),
        1 => ScriptBuilder::new().push_int(height - 1).raw(&tail).into_bytes(),
        // Longer than needed, and after another push.
        2 => [&[2, u8::try_from(height & 0xff).unwrap(), u8::try_from(height >> 8).unwrap(), 0, 0][..], &tail].concat(),
        3 => ScriptBuilder::new().op(OP_0).push_int(height).raw(&tail).into_bytes(),
        _ => ScriptBuilder::new().push_int(height).op(0x4e).into_bytes(),
    };
    true
}

pub fn coinbase_script_size(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let size = *random.pick(&[0, 1, 2, 3, 4, 99, 100, 101, 102]);
    draft.block.txs[0].inputs[0].script_sig.resize(size, 0);
    true
}

pub fn coinbase_amount(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let more = *random.pick(&[1, 1, -1, 50, -50, 100_000_000]);
    match draft.block.txs[0].outputs.iter_mut().find(|output| output.value.0 > 100) {
        Some(output) => output.value.0 += more,
        None => return false,
    }
    true
}

pub fn coinbase_outputs(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let subsidy = block_subsidy(Height(draft.height()), draft.params).0;
    let outputs = &mut draft.block.txs[0].outputs;
    match random.below(6) {
        0 => outputs.push(output(1, vec![OP_1])),
        1 => outputs.push(output(0, vec![OP_1])),
        2 => outputs.push(output(-1, vec![OP_1])),
        3 => outputs.push(output(Amount::MAX_MONEY.0 + random.range(0, 1), vec![OP_1])),
        4 => outputs.push(output(Amount::MAX_MONEY.0 - subsidy, vec![OP_1])),
        _ => outputs.clear(),
    }
    true
}

/// The coinbase of an earlier block, whose outputs may all be spent by now.
pub fn coinbase_repeated(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let is_spent = |tx: &&Rc<MutTx>| {
        let txid = tx.txid();
        (0..tx.outputs.len())
            .all(|n| !draft.state.coins.contains_key(&OutPoint { txid, vout: u32::try_from(n).unwrap() }))
    };
    let spent: Vec<_> = draft.state.coinbases.iter().filter(is_spent).cloned().collect();
    let from = if spent.is_empty() || random.once_in(2) { &draft.state.coinbases } else { &spent };
    let latest = &from[from.len().saturating_sub(20)..];
    let tx: &Rc<MutTx> = if random.once_in(2) { random.pick(from) } else { random.pick(latest) };
    draft.block.txs[0] = MutTx::clone(tx);
    if random.once_in(2) {
        // As the only transaction, it keeps a valid witness commitment, and so its txid.
        draft.block.txs.truncate(1);
    }
    true
}

pub fn second_coinbase(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut second = draft.block.txs[0].clone();
    second.inputs[0].script_sig.push(0);
    second.inputs[0].script_sig.truncate(100);
    let place = 1 + random.below(draft.block.txs.len());
    draft.block.txs.insert(place, second);
    true
}

pub fn is_commitment(output: &MutOutput) -> bool {
    output.script_pubkey.len() >= 38 && output.script_pubkey.starts_with(&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed])
}

pub fn no_commitment(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.txs[0].outputs.retain(|output| !is_commitment(output));
    if random.once_in(2) {
        draft.block.txs[0].inputs[0].witness.clear();
    }
    true
}

/// Only the last output that looks like a commitment counts.
pub fn decoy_commitments(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut decoy = commitment_output();
    match random.below(4) {
        0 => decoy.script_pubkey.truncate(37),
        1 => decoy.script_pubkey.extend(random.bytes(5)),
        2 => decoy.script_pubkey[1] = 0x23,
        _ => {}
    }
    let outputs = &mut draft.block.txs[0].outputs;
    outputs.insert(random.below(outputs.len() + 1), decoy);
    true
}

pub fn reserved_value(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.txs[0].inputs[0].witness = match random.below(6) {
        0 => vec![vec![0; 31]],
        1 => vec![vec![0; 33]],
        2 => vec![vec![0; 32], vec![]],
        3 => vec![vec![]],
        4 => vec![random.bytes(32)],
        _ => vec![],
    };
    true
}

pub fn commitment_altered(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    match draft.block.txs[0].outputs.iter_mut().rev().find(|output| is_commitment(output)) {
        Some(output) => output.script_pubkey[6 + random.below(32)] ^= 1 << random.below(8),
        None => return false,
    }
    true
}

/// Repeats transactions so that the merkle root stays the same (CVE-2012-2459).
pub fn merkle_duplicates(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let txs = &mut draft.block.txs;
    let count = txs.len();
    // A tree repeats its last node on an odd level.
    let mut width = 1;
    while count.is_multiple_of(2 * width) {
        width *= 2;
    }
    if count == width && !random.once_in(3) {
        return false;
    }
    let last: Vec<MutTx> = txs[count - width..].to_vec();
    txs.extend(last);
    true
}
