//! A block verified in parts, in any order, has the same verdict as the whole block: tested on real blocks with correct
//! coins, and with the scripts of some coins changed so that some inputs fail.

use crate::locate::{blocks_of, read, testdata};
use lydian_consensus::{
    Ancestor, Batch, Chain, CheckedBlock, Coin, CoinView, FundedBlock, HeaderView, Mode, Params, Parent, Tally,
    Violation, fund, parts, verify_exactly, verify_scripts,
};
use lydian_curve::Reference;
use lydian_primitives::{Block, Height, OutPoint, RawBlock};
use std::collections::HashMap;
use std::sync::Arc;

struct Headers(Vec<Ancestor>);

impl HeaderView for Headers {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.0.get(height.0 as usize).copied()
    }
}

/// A coin view. A coin is unspendable if the low three bits of its txid's last byte are in `spoiled`.
struct Coins<'a> {
    coins: &'a HashMap<OutPoint, Coin>,
    spoiled: &'a [u8],
}

impl CoinView for Coins<'_> {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        let spoil = |outpoint: &OutPoint, coin: &Coin| {
            let script_pubkey = if self.spoiled.contains(&(outpoint.txid.0[31] & 7)) {
                Box::from([0])
            } else {
                coin.script_pubkey.clone()
            };
            Coin { script_pubkey, ..coin.clone() }
        };
        outpoints.iter().map(|outpoint| self.coins.get(outpoint).map(|coin| spoil(outpoint, coin))).collect()
    }

    fn has_any(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| self.coins.contains_key(outpoint))
    }
}

fn blocks(bytes: &[u8], magic: [u8; 4]) -> Vec<Block> {
    blocks_of(bytes, magic).into_iter().map(|block| RawBlock::new(block).parse().unwrap()).collect()
}

fn in_parts(funded: &Arc<FundedBlock>, size: usize, is_batch: bool, seed: usize) -> Result<(), Violation> {
    let mut parts = parts(funded, size);
    assert_eq!(parts.iter().map(|part| part.input_count()).sum::<usize>(), funded.spent().len());
    assert!(parts.iter().all(|part| (1..=size).contains(&part.input_count())));
    let middle = seed % parts.len().max(1);
    parts.rotate_left(middle);
    if seed.is_multiple_of(2) {
        parts.reverse();
    }
    let mut tally = Tally::new(funded);
    if is_batch {
        let mut batch = Batch::default();
        parts.iter().for_each(|part| batch.capture(funded, *part));
        let mut settled = batch.settle(&Reference);
        parts.iter().for_each(|_| tally.add(funded, settled.verdict(funded)));
    } else {
        parts.iter().for_each(|part| tally.add(funded, verify_exactly(funded, *part)));
    }
    assert!(tally.is_complete());
    tally.finish(Arc::clone(funded)).map(|_| ())
}

/// Replays testnet3 from genesis. Calls `visit` with each block and the coins and headers before it.
fn walk(mut visit: impl FnMut(&CheckedBlock, &HashMap<OutPoint, Coin>, &Headers, &Params)) {
    let params = Params::new(Chain::Test);
    let blocks = blocks(&read(&testdata("blocks/runs/test3_000000_004000.blk.zst")), params.magic);
    let mut headers = Headers(Vec::new());
    let mut coins: HashMap<OutPoint, Coin> = HashMap::new();
    for (index, block) in blocks.into_iter().enumerate() {
        let height = Height(u32::try_from(index).unwrap());
        let ancestor = Ancestor { hash: block.hash(), header: *block.header() };
        if index > 0 {
            let now = i64::from(block.header().time);
            let parent = Parent::At(Height(height.0 - 1), &headers);
            let checked = CheckedBlock::check(block, parent, now, &params).unwrap();
            visit(&checked, &coins, &headers, &params);
            for tx in checked.block().txs() {
                tx.inputs().for_each(|input| drop(coins.remove(&input.prevout)));
                for (vout, output) in tx.outputs().enumerate() {
                    let outpoint = OutPoint { txid: tx.txid(), vout: u32::try_from(vout).unwrap() };
                    coins.insert(outpoint, Coin::new(output, height, tx.is_coinbase()));
                }
            }
        }
        headers.0.push(ancestor);
    }
}

#[test]
fn parts_in_any_order_have_the_verdict_of_the_whole() {
    let (mut failed, mut inputs) = (0, 0);
    walk(|checked, coins, headers, params| {
        for (variant, spoiled) in [&[][..], &[1], &[2, 5], &[0, 1, 2, 3, 4, 5, 6, 7]].into_iter().enumerate() {
            let funded = fund(checked.clone(), &Coins { coins, spoiled }, headers, params).unwrap();
            if funded.spent().len() < 2 && variant > 0 {
                continue;
            }
            let whole = verify_scripts(funded.clone(), Mode::Exact).map(|_| ());
            let funded = Arc::new(funded);
            failed += u32::from(whole.is_err());
            inputs += funded.spent().len();
            for (size, is_batch) in [(1, true), (1, false), (3, true), (7, false), (1_000, true)] {
                let seed = checked.height().0 as usize;
                assert_eq!(in_parts(&funded, size, is_batch, seed), whole, "{}, parts of {size}", checked.height());
            }
        }
    });
    assert!(failed > 100 && inputs > 1_919, "{failed} blocks failed, {inputs} inputs");
}

/// A tally with a missing part has no verdict.
#[test]
#[should_panic(expected = "every input is verified")]
fn a_part_that_is_missing_is_no_verdict() {
    walk(|checked, coins, headers, params| {
        let funded = Arc::new(fund(checked.clone(), &Coins { coins, spoiled: &[] }, headers, params).unwrap());
        let parts = parts(&funded, 1);
        if parts.len() > 1 {
            let mut tally = Tally::new(&funded);
            tally.add(&funded, verify_exactly(&funded, parts[0]));
            let _ = tally.finish(funded);
        }
    });
}
