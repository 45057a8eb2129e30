//! Faults of blocks, alone and in their context: merkle tree, sizes, coinbase, commitments.

use super::Bench;
use crate::error::ChainsError;
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_tx, output, seal, seal_work};
use crate::wallet::script::{OP_1, OP_RETURN, Script};
use lydian_primitives::build::{MutBlock, MutTx};

/// A coinbase script of one byte can hold heights below 17, so that its length is the only fault.
pub(super) fn short_coinbase(bench: &mut Bench) -> Result<(), ChainsError> {
    let height = u8::try_from(bench.maker.height + 1).unwrap_or(16);
    let rule = "bad-cb-length";
    bench.broken("coinbase-script-of-1-byte", rule, rule, Vec::new(), |block| {
        block.txs[0].inputs[0].script_sig = vec![OP_1 - 1 + height];
    })?;
    bench.twin("coinbase-script-of-2-bytes", rule, Vec::new(), |block| {
        block.txs[0].inputs[0].script_sig = vec![OP_1 - 1 + height, 0];
    })
}

pub(super) fn cases(bench: &mut Bench) -> Result<(), ChainsError> {
    merkle(bench)?;
    coinbases(bench)?;
    heights(bench)?;
    sizes(bench)?;
    commitments(bench)
}

fn merkle(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "bad-txnmrklroot";
    let mut block = bench.maker.block(Vec::new());
    block.header.merkle_root[0] ^= 1;
    seal_work(&mut block, true);
    bench.refused("merkle-root-of-another-block", rule, rule, &block)?;

    // Three transactions, the last one twice: the same root.
    let coins = bench.maker.spendable();
    let pay = |coin: &FreeCoin| free_tx(&[*coin], vec![output(coin.value, &TRUE_SCRIPT)]);
    let mut block = bench.maker.template(vec![pay(&coins[0]), pay(&coins[1])]);
    seal(&mut block);
    let twin = block.clone();
    block.txs.push(block.txs[2].clone());
    let rule = "bad-txns-duplicate";
    bench.refused("last-transaction-twice", rule, rule, &block)?;
    // The bytes were refused, not the hash: the block itself is still accepted.
    bench.accepted("last-transaction-once", rule, &twin)?;

    let mut empty = bench.maker.template(Vec::new());
    empty.txs.clear();
    seal_work(&mut empty, true);
    bench.refused("no-transaction", "block-empty", "bad-blk-length", &empty)
}

fn coinbases(bench: &mut Bench) -> Result<(), ChainsError> {
    let tx = bench.plain_tx();
    let mut block = bench.maker.template(vec![tx]);
    block.txs.remove(0);
    seal(&mut block);
    bench.refused("no-coinbase", "bad-cb-missing", "bad-cb-missing", &block)?;
    let tx = bench.plain_tx();
    bench.broken("coinbase-second", "bad-cb-missing", "bad-cb-missing", vec![tx], |block| block.txs.swap(0, 1))?;
    bench.broken("two-coinbases", "bad-cb-multiple", "bad-cb-multiple", Vec::new(), |block| {
        let mut second = block.txs[0].clone();
        second.inputs[0].script_sig.push(0);
        second.inputs[0].witness.clear();
        second.outputs.truncate(1);
        block.txs.push(second);
    })?;
    let rule = "bad-cb-length";
    let stretch = |block: &mut MutBlock, size: usize| block.txs[0].inputs[0].script_sig.resize(size, 0);
    bench.broken("coinbase-script-of-101-bytes", rule, rule, Vec::new(), |block| stretch(block, 101))?;
    bench.twin("coinbase-script-of-100-bytes", rule, Vec::new(), |block| stretch(block, 100))?;
    let rule = "bad-cb-amount";
    bench.broken("coinbase-pays-a-satoshi-too-much", rule, rule, Vec::new(), |block| {
        block.txs[0].outputs[0].value.0 += 1;
    })?;
    // The coinbase may claim the fee of 5 satoshis, but not a sixth.
    let mut tx = bench.plain_tx();
    tx.outputs[0].value.0 -= 5;
    let pay_more = |more: i64| move |block: &mut MutBlock| block.txs[0].outputs[0].value.0 += more;
    bench.broken("coinbase-pays-fees-and-a-satoshi", rule, rule, vec![tx.clone()], pay_more(6))?;
    bench.twin("coinbase-pays-fees", rule, vec![tx], pay_more(5))
}

fn heights(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "bad-cb-height";
    let height = i64::from(bench.maker.height + 1);
    let scripts = [
        ("height-one-too-low", Script::new().number(height - 1)),
        ("height-one-too-high", Script::new().number(height + 1)),
        ("height-behind-a-push", Script::new().push(b"x").number(height)),
        ("height-with-a-zero-byte-more", {
            let mut bytes = crate::wallet::script::number_bytes(height);
            bytes.push(0);
            Script::new().push(&bytes)
        }),
        ("height-pushed-with-pushdata1", {
            let bytes = crate::wallet::script::number_bytes(height);
            Script::new().raw(&[0x4c, 2]).raw(&bytes)
        }),
    ];
    for (name, script) in scripts {
        let script = script.raw(b"\x0atail").build();
        bench.broken(name, rule, rule, Vec::new(), |block| block.txs[0].inputs[0].script_sig = script)?;
    }
    Ok(())
}

/// Pads a script until the block has the target size; lengths of lengths may need a second step.
pub(in crate::presets) fn fit(
    block: &mut MutBlock,
    target: usize,
    size: impl Fn(&MutBlock) -> usize,
    grow: impl Fn(&mut MutBlock, usize),
) {
    let mut pad = 0;
    for _ in 0..8 {
        grow(block, pad);
        let got = size(block);
        if got == target {
            return;
        }
        pad = (pad + target).saturating_sub(got);
    }
}

fn base_size(block: &MutBlock) -> usize {
    80 + lydian_primitives::compact_size_len(block.txs.len())
        + block.txs.iter().map(|tx| tx.encode_stripped().len()).sum::<usize>()
}

pub(in crate::presets) fn weight(block: &MutBlock) -> usize {
    3 * base_size(block) + block.encode().len()
}

fn sizes(bench: &mut Bench) -> Result<(), ChainsError> {
    let tx = bench.plain_tx();
    let without_commitment = |block: &mut MutBlock, size: usize| {
        block.txs[0].inputs[0].witness.clear();
        block.txs[0].outputs.truncate(1);
        fit(block, size, base_size, |block, pad| {
            let mut script = vec![OP_RETURN];
            script.resize(pad.max(1), 0);
            block.txs[1].outputs = vec![output(0, &script)];
        });
    };
    let (rule, reason) = ("block-base-size", "bad-blk-length");
    bench.broken("base-size-1000001", rule, reason, vec![tx.clone()], |block| without_commitment(block, 1_000_001))?;
    bench.twin("base-size-1000000", rule, vec![tx], |block| without_commitment(block, 1_000_000))?;

    // A witness of any size: an OP_SUCCESS in a tapscript, next to a byte string (BIP-0342).
    let key = bench.wallet.keypair(1, 200);
    let leaf = super::taproot::leaf_of(&key, vec![0x50]);
    let coin = bench.maker.spendable()[0];
    let funding = free_tx(&[coin], vec![output(coin.value, &leaf.script_pubkey)]);
    let outpoint = lydian_primitives::OutPoint { txid: funding.txid(), vout: 0 };
    bench.twin("chain", "", vec![funding], |_| ())?;
    let spend = free_tx(
        &[FreeCoin { outpoint, value: coin.value, coinbase_height: None }],
        vec![output(coin.value, &TRUE_SCRIPT)],
    );
    let weighing = |block: &mut MutBlock, target: usize| {
        fit(block, target, weight, |block, pad| {
            block.txs[1].inputs[0].witness = vec![vec![1; pad], leaf.script.clone(), leaf.control_block.clone()];
        });
    };
    let rule = "bad-blk-weight";
    let witness = |tx: &MutTx| {
        let mut tx = tx.clone();
        tx.inputs[0].witness = vec![vec![1]];
        tx
    };
    bench.broken("weight-4000001", rule, rule, vec![witness(&spend)], |block| weighing(block, 4_000_001))?;
    bench.twin("weight-4000000", rule, vec![witness(&spend)], |block| weighing(block, 4_000_000))
}

fn commitments(bench: &mut Bench) -> Result<(), ChainsError> {
    let nonce = "bad-witness-nonce-size";
    for (name, witness) in [
        ("reserved-value-of-31-bytes", vec![vec![0; 31]]),
        ("reserved-value-of-33-bytes", vec![vec![0; 33]]),
        ("two-reserved-values", vec![vec![0; 32], vec![0; 32]]),
    ] {
        bench.broken(name, nonce, nonce, Vec::new(), |block| block.txs[0].inputs[0].witness = witness)?;
    }
    let rule = "bad-witness-merkle-match";
    let mut block = bench.maker.block(Vec::new());
    let Some(at) = block.txs[0].outputs.iter().position(|output| output.script_pubkey.len() == 38) else {
        return Ok(());
    };
    block.txs[0].outputs[at].script_pubkey[6] ^= 1;
    block.seal_merkle_root();
    seal_work(&mut block, true);
    bench.refused("commitment-false-by-a-bit", rule, rule, &block)?;

    // The last of two commitments counts.
    let mut block = bench.maker.block(Vec::new());
    let mut second = block.txs[0].outputs[at].clone();
    second.script_pubkey[37] ^= 1;
    block.txs[0].outputs.push(second);
    block.seal_merkle_root();
    seal_work(&mut block, true);
    bench.refused("last-commitment-false", rule, rule, &block)?;
    block.txs[0].outputs.swap(at, at + 1);
    block.seal_merkle_root();
    seal_work(&mut block, true);
    bench.accepted("first-commitment-false", rule, &block)?;

    let rule = "unexpected-witness";
    let mut tx = bench.plain_tx();
    tx.inputs[0].witness = vec![vec![1]];
    let uncommitted = |block: &mut MutBlock| {
        block.txs[0].outputs.truncate(1);
        block.txs[0].inputs[0].witness.clear();
    };
    bench.broken("witness-without-commitment", rule, rule, vec![tx], uncommitted)?;
    bench.broken("witness-of-the-coinbase-without-commitment", rule, rule, Vec::new(), |block| {
        block.txs[0].outputs.truncate(1);
    })?;
    let tx = bench.plain_tx();
    bench.twin("no-witness-no-commitment", rule, vec![tx], uncommitted)
}
