//! The table of changes to a block. Each entry changes one thing at one stage of construction; the later stages are
//! redone.
//!
//! Nothing here knows the expected verdict: a change that leaves a block valid is as useful as one that breaks it.

mod frame;
mod scripts;
mod sizes;
mod spends;

use frame::*;
use scripts::*;
pub use sizes::fill_weight;
use sizes::*;
use spends::*;

use super::plan::{Draft, PlanInput, Source, commitment_output, output};
use super::rng::Random;
use lydian_primitives::{Amount, OutPoint, Txid};
use lydian_script::opcodes::*;

/// The stage at which a change is made. Later stages are redone on the changed block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Before signing: signatures commit to the change.
    Plan,
    /// Before the witness commitment.
    Built,
    /// Before the merkle root.
    Committed,
    /// Before the proof of work.
    Rooted,
    /// After everything: the hash may no longer match the bytes.
    Sealed,
}

pub struct Mutation {
    pub name: &'static str,
    pub stage: Stage,
    /// Blocks of several megabytes are made less often.
    pub is_large: bool,
    /// Returns false if the change does not apply to this block.
    pub apply: fn(&mut Draft<'_>, &mut Random) -> bool,
}

const fn at(stage: Stage, name: &'static str, apply: fn(&mut Draft<'_>, &mut Random) -> bool) -> Mutation {
    Mutation { name, stage, is_large: false, apply }
}

const fn large(stage: Stage, name: &'static str, apply: fn(&mut Draft<'_>, &mut Random) -> bool) -> Mutation {
    Mutation { name, stage, is_large: true, apply }
}

use Stage::{Built, Committed, Plan, Rooted, Sealed};

pub const MUTATIONS: &[Mutation] = &[
    // Headers.
    at(Rooted, "version", version),
    at(Rooted, "time", time),
    at(Rooted, "bits", bits),
    at(Rooted, "parent", parent),
    at(Rooted, "merkle root", |draft, random| {
        draft.block.header.merkle_root[random.below(32)] ^= 1 << random.below(8);
        true
    }),
    at(Sealed, "no work", no_work),
    // Coinbases.
    at(Built, "coinbase height", coinbase_height),
    at(Built, "coinbase script size", coinbase_script_size),
    at(Built, "coinbase amount", coinbase_amount),
    at(Built, "coinbase outputs", coinbase_outputs),
    at(Built, "coinbase repeated", coinbase_repeated),
    at(Built, "coinbase lock time", |draft, random| {
        let height = i64::from(draft.height());
        draft.block.txs[0].lock_time = u32::try_from((height + random.range(-2, 1)).max(0)).unwrap();
        draft.block.txs[0].inputs[0].sequence = *random.pick(&[0, u32::MAX]);
        true
    }),
    at(Built, "coinbase version", |draft, random| {
        draft.block.txs[0].version = *random.pick(&[0, 1, 3, u32::MAX]);
        true
    }),
    at(Built, "second coinbase", second_coinbase),
    at(Built, "no coinbase", |draft, _| {
        draft.block.txs.remove(0);
        true
    }),
    at(Built, "no transactions", |draft, _| {
        draft.block.txs.clear();
        true
    }),
    at(Built, "coinbase not first", |draft, random| {
        let count = draft.block.txs.len();
        draft.block.txs.swap(0, random.below(count));
        count > 1
    }),
    at(Built, "coinbase inputs", |draft, random| {
        // With two inputs it is not a coinbase.
        let second = draft.block.txs[0].inputs[0].clone();
        draft.block.txs[0].inputs.push(second);
        if random.once_in(2) {
            draft.block.txs[0].inputs[1].prevout = OutPoint { txid: Txid([3; 32]), vout: 1 };
        }
        true
    }),
    // Witness commitments.
    at(Built, "no commitment", no_commitment),
    at(Built, "decoy commitments", decoy_commitments),
    at(Built, "reserved value", reserved_value),
    at(Committed, "commitment altered", commitment_altered),
    at(Built, "commitment unasked", |draft, random| {
        draft.block.txs[0].outputs.push(commitment_output());
        if random.once_in(2) {
            draft.block.txs[0].inputs[0].witness = vec![vec![0; 32]];
        }
        true
    }),
    // Transactions, before they are signed.
    at(Plan, "drop", |draft, random| {
        let some = !draft.order.is_empty();
        some.then(|| draft.order.remove(random.below(draft.order.len()))).is_some()
    }),
    at(Plan, "twice", |draft, random| {
        let some = !draft.order.is_empty();
        some.then(|| {
            let again = *random.pick(&draft.order);
            draft.order.insert(random.below(draft.order.len() + 1), again);
        })
        .is_some()
    }),
    at(Plan, "reorder", |draft, random| {
        let count = draft.order.len();
        count > 1 && {
            draft.order.swap(random.below(count), random.below(count));
            true
        }
    }),
    at(Plan, "double spend", double_spend),
    at(Plan, "same input twice", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let again = random.pick(&tx.inputs).clone();
            tx.inputs.insert(random.below(tx.inputs.len() + 1), again);
        })
    }),
    at(Plan, "missing input", missing_input),
    at(Plan, "spent input", spent_input),
    at(Plan, "immature", immature),
    at(Plan, "output values", output_values),
    at(Plan, "pays too much", |draft, random| {
        let more = *random.pick(&[0, 1, 999, 1_000_000]);
        change_tx(draft, random, |tx, random| {
            let index = random.below(tx.outputs.len());
            tx.outputs[index].value = Amount(tx.outputs[index].value.0.saturating_add(more));
        })
    }),
    at(Plan, "no fee", no_fee),
    at(Plan, "no outputs", |draft, random| change_tx(draft, random, |tx, _| tx.outputs.clear())),
    at(Plan, "no inputs", |draft, random| {
        change_tx(draft, random, |tx, _| {
            tx.inputs.clear();
            tx.outputs.clear();
        })
    }),
    at(Plan, "null prevout", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let source = Source::Coin(OutPoint::NULL, None);
            tx.inputs.insert(random.below(tx.inputs.len() + 1), PlanInput { source, sequence: 0 });
        })
    }),
    at(Plan, "lock time", lock_time),
    at(Plan, "sequence", sequence),
    at(Plan, "tx version", |draft, random| {
        change_tx(draft, random, |tx, random| {
            tx.version = *random.pick(&[0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX])
        })
    }),
    at(Plan, "sequence lock", sequence_lock),
    at(Plan, "lock of script", lock_of_script),
    at(Plan, "64 bytes", sixty_four_bytes),
    at(Plan, "sigops legacy", sigops_legacy),
    at(Plan, "sigops", sigops),
    at(Plan, "large outputs", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let size = *random.pick(&[9_999, 10_000, 10_001]);
            tx.outputs.push(output(0, vec![OP_1; size]));
        })
    }),
    large(Plan, "base size", base_size),
    large(Plan, "weight", weight),
    // Scripts: one input fails, or not.
    at(Built, "script bytes", script_bytes),
    at(Built, "script bytes again", script_bytes),
    at(Built, "script shape", script_shape),
    at(Built, "script shape again", script_shape),
    at(Built, "wrong key", wrong_signature),
    at(Built, "signed otherwise", signed_otherwise),
    // Changes of witnesses, and changes after sealing.
    at(Built, "witness stripped", |draft, random| {
        change_input(draft, random, |input, _| {
            let some = !input.witness.is_empty();
            input.witness.clear();
            some
        })
    }),
    at(Built, "witness added", |draft, random| {
        change_input(draft, random, |input, random| {
            input.witness.push(random.bytes(3));
            true
        })
    }),
    at(Sealed, "merkle duplicates", merkle_duplicates),
    at(Sealed, "mutated witness", |draft, random| {
        change_input(draft, random, |input, random| {
            match random.below(3) {
                0 => input.witness.clear(),
                1 => input.witness.push(vec![1]),
                _ => input.witness.iter_mut().for_each(|item| item.push(0)),
            }
            true
        })
    }),
    at(Sealed, "mutated coinbase witness", |draft, random| {
        let witness = &mut draft.block.txs[0].inputs[0].witness;
        match random.below(4) {
            0 => witness.clear(),
            1 => witness.push(vec![0; 32]),
            2 => *witness = vec![vec![0; 31]],
            _ => *witness = vec![vec![9; 32]],
        }
        true
    }),
    at(Sealed, "mutated transaction", |draft, random| {
        let index = random.below(draft.block.txs.len());
        draft.block.txs[index].lock_time ^= 1;
        true
    }),
    at(Sealed, "mutated order", |draft, random| {
        let count = draft.block.txs.len();
        count > 2 && {
            draft.block.txs.swap(1, 1 + random.below(count - 1));
            true
        }
    }),
];
