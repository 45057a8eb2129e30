//! A workload for a set of unspent outputs that resembles mainnet. Input: numbers. Output: blocks of spends and
//! creations, and the expected values of the spends.
//!
//! One spend for each creation: 41 % of coins are spent within 10 blocks, 35 % within 100, and the rest at random among
//! all remaining coins. A coin is derived from its number, so only numbers are stored: 4 bytes per coin. Generating a
//! block is not part of the measurement.

use lydian_consensus::Coin;
use lydian_primitives::{Amount, Height, OutPoint, Txid};
use std::collections::VecDeque;

/// Number of spends of a block, and of creations.
pub(crate) const BLOCK: usize = 5_000;
const YOUNG_BLOCKS: usize = 10;
const MIDDLE_BLOCKS: usize = 100;

#[derive(Debug)]
pub(crate) struct Workload {
    random: u64,
    next: u32,
    old: Vec<u32>,
    /// The coins to be spent in the next block, in the one after it, and so on.
    dying: VecDeque<Vec<u32>>,
}

#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) spends: Vec<OutPoint>,
    pub(crate) creates: Vec<(OutPoint, Coin)>,
    /// The sum of the spent values.
    pub(crate) value: i64,
}

impl Workload {
    pub(crate) fn new() -> Workload {
        let dying = (0..=MIDDLE_BLOCKS).map(|_| Vec::new()).collect();
        Workload { random: 1, next: 0, old: Vec::new(), dying }
    }

    pub(crate) fn live(&self) -> usize {
        self.old.len() + self.dying.iter().map(Vec::len).sum::<usize>()
    }

    /// A block of long-lived coins without spends, to fill a store.
    pub(crate) fn fill(&mut self, count: usize) -> Block {
        let mut block = Block::default();
        for _ in 0..count {
            let number = self.create(&mut block);
            self.old.push(number);
        }
        block
    }

    /// The next block.
    pub(crate) fn block(&mut self) -> Block {
        let mut block = Block::default();
        let mut spent = self.dying.pop_front().unwrap_or_default();
        self.dying.push_back(Vec::new());
        while spent.len() < BLOCK && !self.old.is_empty() {
            let place = self.below(self.old.len());
            spent.push(self.old.swap_remove(place));
        }
        for number in spent {
            let (outpoint, coin) = coin(number);
            block.value += coin.value.0;
            block.spends.push(outpoint);
        }
        for _ in 0..BLOCK {
            let number = self.create(&mut block);
            match self.below(100) {
                0..41 => {
                    let after = self.below(YOUNG_BLOCKS);
                    self.dying[after].push(number);
                }
                41..76 => {
                    let after = YOUNG_BLOCKS + self.below(MIDDLE_BLOCKS - YOUNG_BLOCKS);
                    self.dying[after].push(number);
                }
                _ => self.old.push(number),
            }
        }
        block
    }

    /// Looks up existing old coins, chosen at random.
    pub(crate) fn sample(&mut self, count: usize) -> Block {
        let mut block = Block::default();
        for _ in 0..count {
            let place = self.below(self.old.len());
            let (outpoint, coin) = coin(self.old[place]);
            block.value += coin.value.0;
            block.spends.push(outpoint);
        }
        block
    }

    fn create(&mut self, block: &mut Block) -> u32 {
        block.creates.push(coin(self.next));
        self.next += 1;
        self.next - 1
    }

    fn below(&mut self, count: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mix(self.random) % count as u64).unwrap_or(0)
    }
}

/// The coin with a given number. The script types have their usual shares.
fn coin(number: u32) -> (OutPoint, Coin) {
    let seed = mix(u64::from(number) + 1);
    let mut bytes = [0; 32];
    for (word, chunk) in (1u64..).zip(bytes.chunks_mut(8)) {
        chunk.copy_from_slice(&mix(seed ^ word.rotate_left(40)).to_le_bytes());
    }
    let script: Vec<u8> = match seed % 20 {
        0..8 => [&[0x00, 0x14][..], &bytes[..20]].concat(),
        8..13 => [&[0x76, 0xa9, 0x14][..], &bytes[..20], &[0x88, 0xac]].concat(),
        13..15 => [&[0xa9, 0x14][..], &bytes[..20], &[0x87]].concat(),
        _ => [&[0x51, 0x20][..], &bytes].concat(),
    };
    let outpoint = OutPoint { txid: Txid(bytes), vout: u32::from(seed.to_le_bytes()[7] & 3) };
    let value = Amount(i64::try_from(seed % 100_000_000).unwrap_or(0));
    (
        outpoint,
        Coin { value, script_pubkey: script.into(), height: Height(500_000 + number / 5_000), is_coinbase: false },
    )
}

/// SplitMix64.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
