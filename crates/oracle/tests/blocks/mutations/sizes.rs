//! Changes that bring a block to a limit: signature operations, bytes, weight.

use super::spends::*;
use crate::plan::{Draft, output};
use crate::rng::Random;
use crate::wallet::{Policy, Wallet, Wrap, output_of};
use lydian_consensus::Coin;
use lydian_consensus::Deployment;
use lydian_consensus::deployment::script_flags;
use lydian_consensus::spend::sigops_cost;
use lydian_primitives::build::{MutBlock, MutTx};
use lydian_primitives::{BlockHash, Height};
use lydian_script::opcodes::*;

/// Legacy sigops, which are counted without coins: exactly 20,000, or one less or more.
pub fn sigops_legacy(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.build();
    let legacy = |block: &MutBlock| -> usize {
        let count = |script: &[u8]| lydian_script::legacy_sigop_count(script, false);
        let of_tx = |tx: &MutTx| -> usize {
            tx.inputs.iter().map(|input| count(&input.script_sig)).sum::<usize>()
                + tx.outputs.iter().map(|output| count(&output.script_pubkey)).sum::<usize>()
        };
        block.txs.iter().map(of_tx).sum()
    };
    let target = 20_000 - 1 + random.below(3);
    let missing = target.saturating_sub(legacy(&draft.block));
    let mut script = vec![OP_CHECKMULTISIG; missing / 20];
    script.resize(missing / 20 + missing % 20, OP_CHECKSIG);
    if random.once_in(2) {
        // Never executed, but counted.
        script.insert(0, OP_RETURN);
    }
    draft.coinbase.outputs.insert(0, output(0, script));
    true
}

/// Sigops including those of P2SH and witnesses: at a cost of about 80,000, below and above.
pub fn sigops(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let is_segwit = draft.is_active(Deployment::Segwit);
    for _ in 0..1 + random.below(8) {
        add_spend(draft, random, |coin, height| {
            coin.lock.is_some_and(|lock| {
                matches!(lock.policy, Policy::Sigops(_))
                    && matches!(lock.wrap, Wrap::Sh | Wrap::Wsh | Wrap::ShWsh)
                    && (is_segwit || !Wallet::needs_witness(lock))
            }) && (!coin.is_coinbase || height - coin.height.0 >= 100)
        });
    }
    draft.build();
    let flags = script_flags(Height(draft.height()), &BlockHash::ZERO, draft.params);
    let mut cost = 0;
    for (tx, coins) in draft.block.txs.iter().zip(&draft.spent) {
        let Some(tx) = tx.to_transaction() else { return false };
        let coins: Vec<Coin> =
            coins.iter().map(|coin| Coin::new(output_of(coin.as_deref()), Height(0), false)).collect();
        let coins = if tx.view().is_coinbase() { &[] } else { &coins[..] };
        cost += sigops_cost(tx.view(), coins, flags);
    }
    let target = 80_000 - 1 + random.below(6);
    let missing = target.saturating_sub(cost) / 4;
    if missing > 18_000 {
        return false;
    }
    draft.coinbase.outputs.insert(0, output(0, vec![OP_CHECKSIG; missing]));
    true
}

/// Size without witnesses: a million bytes, or one less or more. With a witness, the weight limit is reached first.
pub fn base_size(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.build();
    let stripped: usize = draft.block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
    let target: usize = *random.pick(&[999_999, 1_000_000, 1_000_001, 1_000_001]);
    // The output takes eight bytes for its value and five for the length.
    let size = target.saturating_sub(stripped + 81 + 13);
    draft.coinbase.outputs.insert(0, output(0, vec![OP_RETURN; size]));
    true
}

/// Weight: four million, or one less or more, by a witness that is not evaluated.
pub fn weight(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    if !draft.is_active(Deployment::Segwit) {
        return false;
    }
    let found = add_spend(draft, random, |coin, height| {
        coin.lock.is_some_and(|lock| lock.wrap == Wrap::Future) && (!coin.is_coinbase || height - coin.height.0 >= 100)
    });
    if !found {
        return false;
    }
    // Filled when the block is built: see `fill_weight`.
    draft.weight_wanted = Some(4_000_000 - 1 + random.below(3));
    true
}

/// Fills the last transaction's witness until the block has the weight.
pub fn fill_weight(block: &mut MutBlock, wanted: usize) {
    let weigh = |block: &MutBlock| {
        let stripped: usize = block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
        let count = if block.txs.len() < 253 { 1 } else { 3 };
        3 * (80 + count + stripped) + block.encode().len()
    };
    let Some(input) = block.txs.last_mut().and_then(|tx| tx.inputs.first_mut()) else { return };
    input.witness = vec![vec![0; 70_000]];
    let missing = wanted.saturating_sub(weigh(block));
    if let Some(input) = block.txs.last_mut().and_then(|tx| tx.inputs.first_mut()) {
        input.witness[0].resize(70_000 + missing, 0);
    }
}
