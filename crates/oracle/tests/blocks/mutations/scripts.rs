//! Changes of one input's scripts and witness.

use crate::plan::{Draft, output};
use crate::rng::Random;
use lydian_primitives::build::{MutInput, MutTx};
use lydian_script::is_unspendable;
use lydian_script::opcodes::*;

/// Changes an input of the block. It belongs to a transaction from which no other transaction of the block spends, so
/// that only this input is affected.
pub fn change_input(
    draft: &mut Draft<'_>,
    random: &mut Random,
    change: impl FnOnce(&mut MutInput, &mut Random) -> bool,
) -> bool {
    let is_leaf = |tx: &MutTx| {
        let txid = tx.txid();
        !draft.block.txs.iter().flat_map(|tx| &tx.inputs).any(|input| input.prevout.txid == txid)
    };
    let leaves: Vec<usize> = (1..draft.block.txs.len()).filter(|&n| is_leaf(&draft.block.txs[n])).collect();
    if leaves.is_empty() {
        return false;
    }
    let tx = &mut draft.block.txs[*random.pick(&leaves)];
    let place = random.below(tx.inputs.len());
    change(&mut tx.inputs[place], random)
}

/// Changes one bit or byte of a script or witness.
pub fn script_bytes(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_input(draft, random, |input, random| {
        let mut places: Vec<&mut Vec<u8>> = input.witness.iter_mut().collect();
        places.push(&mut input.script_sig);
        places.retain(|place| !place.is_empty());
        if places.is_empty() {
            return false;
        }
        let which = random.below(places.len());
        let bytes = &mut *places[which];
        let at = if random.once_in(3) { bytes.len() - 1 } else { random.below(bytes.len()) };
        match random.below(4) {
            0 => bytes[at] = random.bytes(1)[0],
            1 => bytes.truncate(at),
            2 => bytes.insert(at, random.bytes(1)[0]),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        true
    })
}

/// Removes, adds, empties or swaps items; makes scriptSigs that are not push-only, or push too much.
pub fn script_shape(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_input(draft, random, |input, random| {
        let count = input.witness.len();
        match random.below(10) {
            0 => input.script_sig.clear(),
            1 => input.script_sig.insert(0, OP_1),
            2 => input.script_sig.insert(0, *random.pick(&[OP_NOP, OP_DUP, OP_RETURN, OP_CAT, 0xff, OP_VERIF, 0x4c])),
            3 => input.script_sig.push(*random.pick(&[OP_0, OP_1, OP_DROP, OP_IF])),
            4 => input.script_sig = [vec![0x4d, 0x09, 0x02], vec![1; 521]].concat(),
            5 if count > 0 => drop(input.witness.remove(random.below(count))),
            6 if count > 0 => input.witness.insert(random.below(count), Vec::new()),
            7 if count > 0 => input.witness[random.below(count)].clear(),
            8 if count > 1 => input.witness.swap(0, count - 1),
            9 if count > 0 => input.witness.insert(0, vec![7; *random.pick(&[1, 520, 521])]),
            _ => return false,
        }
        true
    })
}

/// Replaces one signature with that of another input.
pub fn wrong_signature(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let signatures: Vec<Vec<u8>> = draft
        .block
        .txs
        .iter()
        .flat_map(|tx| &tx.inputs)
        .flat_map(|input| &input.witness)
        .filter(|item| (64..=73).contains(&item.len()))
        .cloned()
        .collect();
    if signatures.is_empty() {
        return false;
    }
    let other = random.pick(&signatures).clone();
    change_input(draft, random, |input, _| {
        let found = input.witness.iter_mut().find(|item| (64..=73).contains(&item.len()));
        found.map(|item| *item = other).is_some()
    })
}

/// Changes a transaction with one input after it was signed.
pub fn signed_otherwise(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let fits = |tx: &MutTx| {
        let txid = tx.txid();
        tx.inputs.len() == 1
            && !draft.block.txs.iter().flat_map(|tx| &tx.inputs).any(|input| input.prevout.txid == txid)
            && tx.outputs.iter().any(|output| !is_unspendable(&output.script_pubkey) && output.value.0 > 0)
    };
    let single: Vec<usize> = (1..draft.block.txs.len()).filter(|&n| fits(&draft.block.txs[n])).collect();
    if single.is_empty() {
        return false;
    }
    let tx = &mut draft.block.txs[*random.pick(&single)];
    match random.below(3) {
        0 => tx.outputs.iter_mut().filter(|output| output.value.0 > 0).take(1).for_each(|output| output.value.0 -= 1),
        1 => tx.version ^= 4,
        _ => tx.outputs.push(output(0, vec![OP_1])),
    }
    true
}
