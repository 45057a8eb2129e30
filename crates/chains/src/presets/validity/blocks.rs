//! Blocks with faults of their own: header, merkle tree, coinbase, sizes, signature operations, witness commitment.

use super::{Bench, broken};
use crate::presets::invalid::{fit, idle_checks, leaf_of, weight};
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_tx, output, seal_work};
use crate::wallet::Opened;
use crate::wallet::script::{OP_CHECKSIG, OP_RETURN, Script, p2wsh};
use lydian_primitives::build::{MutBlock, MutTx};
use lydian_primitives::{OutPoint, Txid};

/// Value of each funded coin.
const VALUE: i64 = 1_000;
/// Most of the weight is outside the witness, so that the block has a megabyte.
const DATA_BYTES: usize = 960_000;
const WEIGHT_MAX: usize = 4_000_000;
/// In the year 2096: later than any real clock.
const FAR_TIME: u32 = 4_000_000_000;

pub(super) fn groups(bench: &mut Bench, funded: &Funded) {
    headers(bench);
    coinbases(bench);
    sizes(bench, funded);
    sigops(bench, funded);
    commitments(bench);
}

/// Coins of witness scripts: twenty with 3,960 signature operations, one with 800 and one with 801, and one that
/// accepts any witness.
pub(super) struct Funded {
    txid: Txid,
    scripts: Vec<Vec<u8>>,
    open: Opened,
}

impl Funded {
    pub(super) fn new(bench: &mut Bench) -> Funded {
        let mut scripts = vec![idle_checks(198, 0); 20];
        scripts.extend([idle_checks(40, 0), idle_checks(40, 1)]);
        // An OP_SUCCESS.
        let open = leaf_of(&bench.wallet.keypair(51, 0), vec![0x50]);
        let mut outputs: Vec<_> = scripts.iter().map(|script| output(VALUE, &p2wsh(script))).collect();
        outputs.push(output(VALUE, &open.script_pubkey));
        let Some(coin) = bench.maker.rich_coin() else { unreachable!("coinbases are mature by now") };
        let funding = free_tx(&[coin], outputs);
        let txid = funding.txid();
        bench.trunk(vec![funding]);
        Funded { txid, scripts, open }
    }

    fn coin(&self, index: usize) -> FreeCoin {
        let vout = u32::try_from(index).unwrap_or(u32::MAX);
        FreeCoin { outpoint: OutPoint { txid: self.txid, vout }, value: VALUE, coinbase_height: None }
    }

    /// Spends all scripts of signature operations except one.
    fn spend_without(&self, index: usize) -> MutTx {
        let used: Vec<usize> = (0..self.scripts.len()).filter(|&at| at != index).collect();
        let coins: Vec<FreeCoin> = used.iter().map(|&at| self.coin(at)).collect();
        let mut tx = free_tx(&coins, vec![output(VALUE, &TRUE_SCRIPT)]);
        for (input, &at) in tx.inputs.iter_mut().zip(&used) {
            input.witness = vec![self.scripts[at].clone()];
        }
        tx
    }
}

fn headers(bench: &mut Bench) {
    let mut block = bench.maker.block(Vec::new());
    seal_work(&mut block, false);
    bench.block(broken("hash-above-target", "high-hash"), &block);
    // A target slightly lower than the required one: the hash meets both.
    let block = bench.changed(Vec::new(), |block| block.header.bits = 0x207f_fffe);
    bench.block(broken("bits-not-the-ones-asked-for", "bad-diffbits"), &block);
    let median = bench.maker.median_time_past();
    let block = bench.changed(Vec::new(), |block| block.header.time = median);
    bench.block(broken("time-at-the-median", "time-too-old"), &block);
    let block = bench.changed(Vec::new(), |block| block.header.time = FAR_TIME);
    bench.block(broken("time-in-the-far-future", "time-too-new"), &block);
    let block = bench.changed(Vec::new(), |block| block.header.version = 3);
    let case = broken("version-3", "bad-version(0x00000003)");
    bench.block(case, &block);
    let mut block = bench.maker.block(Vec::new());
    block.header.merkle_root[0] ^= 1;
    seal_work(&mut block, true);
    bench.block(broken("merkle-root-of-another-block", "bad-txnmrklroot"), &block);
}

fn coinbases(bench: &mut Bench) {
    let mut tx = bench.plain_tx();
    tx.outputs[0].value.0 -= 5;
    // The coinbase may claim the fee of 5 satoshis, but not a sixth.
    let paying = |more: i64| bench.changed(vec![tx.clone()], |block| block.txs[0].outputs[0].value.0 += more);
    let (bad, good) = (paying(6), paying(5));
    bench.group(broken("coinbase-pays-fees-and-a-satoshi", "bad-cb-amount"), &bad, &good);

    let block = bench.changed(Vec::new(), |block| {
        let mut second = block.txs[0].clone();
        second.inputs[0].script_sig.push(0);
        second.inputs[0].witness.clear();
        second.outputs.truncate(1);
        block.txs.push(second);
    });
    bench.block(broken("two-coinbases", "bad-cb-multiple"), &block);

    let stretched = |size: usize| bench.changed(Vec::new(), |block| block.txs[0].inputs[0].script_sig.resize(size, 0));
    let (bad, good) = (stretched(101), stretched(100));
    bench.group(broken("coinbase-script-of-101-bytes", "bad-cb-length"), &bad, &good);

    let script = Script::new().number(i64::from(bench.maker.height)).raw(b"\x0atail").build();
    let block = bench.changed(Vec::new(), |block| block.txs[0].inputs[0].script_sig = script);
    let case = broken("height-one-too-low", "bad-cb-height");
    bench.block(case, &block);
}

fn sizes(bench: &mut Bench, funded: &Funded) {
    let mut tx = bench.plain_tx();
    let mut data = vec![OP_RETURN];
    data.resize(DATA_BYTES, 0);
    tx.outputs.push(output(0, &data));
    tx.inputs.extend(free_tx(&[funded.coin(funded.scripts.len())], Vec::new()).inputs);
    let weighing = |target: usize| {
        bench.changed(vec![tx.clone()], |block| {
            fit(block, target, weight, |block, pad| {
                let open = &funded.open;
                block.txs[1].inputs[1].witness = vec![vec![1; pad], open.script.clone(), open.control_block.clone()];
            });
        })
    };
    let (bad, good) = (weighing(WEIGHT_MAX + 1), weighing(WEIGHT_MAX));
    let case = broken("weight-4000001", "bad-blk-weight");
    bench.group(case, &bad, &good);
}

fn sigops(bench: &mut Bench, funded: &Funded) {
    let checks = |count: usize| {
        let mut tx = bench.plain_tx();
        tx.outputs[0].value.0 -= 1;
        tx.outputs.push(output(1, &vec![OP_CHECKSIG; count]));
        vec![tx]
    };
    let (bad, good) = (checks(20_001), checks(20_000));
    bench.txs(broken("checksig-20001", "bad-blk-sigops"), bad, good);
    let last = funded.scripts.len() - 1;
    let (bad, good) = (funded.spend_without(last - 1), funded.spend_without(last));
    let case = broken("cost-80001-witness-scripts", "bad-blk-sigops");
    bench.txs(case, vec![bad], vec![good]);
}

fn commitments(bench: &mut Bench) {
    let mut block = bench.maker.block(Vec::new());
    if let Some(at) = block.txs[0].outputs.iter().position(|output| output.script_pubkey.len() == 38) {
        block.txs[0].outputs[at].script_pubkey[6] ^= 1;
    }
    block.seal_merkle_root();
    seal_work(&mut block, true);
    let case = broken("commitment-false-by-a-bit", "bad-witness-merkle-match");
    bench.block(case, &block);

    let mut tx = bench.plain_tx();
    tx.inputs[0].witness = vec![vec![1]];
    let block = bench.changed(vec![tx], |block: &mut MutBlock| {
        block.txs[0].outputs.truncate(1);
        block.txs[0].inputs[0].witness.clear();
    });
    let case = broken("witness-without-commitment", "unexpected-witness");
    bench.block(case, &block);
}
