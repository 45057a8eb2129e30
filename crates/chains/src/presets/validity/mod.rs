//! Preset `validity`: tests which rules a node checks at all. Each group breaks one rule, above the heights at which
//! the regtests of all implementations enforce them, and lets a node recover that accepted the broken block.
//!
//! Input: a seed. Output: the blocks in the order in which a node gets them, in memory. Invariants: a group starts on
//! the same tip for every node: at height h the broken block, then its valid twin, then at h + 1 a valid block on the
//! twin, which has more work than the broken one. One rule is broken per block, everything else is sealed again. Cost:
//! under a second, 3 MB. It must never depend on a node's earlier answers.

mod blocks;
mod coins;
pub mod rules;
mod scripts;

pub use rules::{Deployment, RULES, Rule, rule_of};

use super::maker::{FreeCoin, Maker, TRUE_SCRIPT, free_tx, output, seal};
use crate::assemble::regtest_genesis;
use crate::wallet::Wallet;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use lydian_primitives::build::{MutBlock, MutTx};

/// The last block before the groups: above 1,351, from which several implementations enforce BIP-0065 on regtest, and
/// above 432, where votes end. Implementations with a retarget on regtest would retarget at 2,016.
pub const TRUNK_HEIGHT: u32 = 1_400;

/// Number of coins for the cases.
const FREE_COINS: u32 = 80;
const FREE_COIN_VALUE: i64 = 10_000_000;

/// The rule that a group breaks, and the answer of Core's `submitblock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub rule: &'static Rule,
    pub reason: String,
}

/// A block as sent to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub bytes: Vec<u8>,
    pub hash: BlockHash,
}

impl From<&MutBlock> for Encoded {
    fn from(block: &MutBlock) -> Encoded {
        Encoded { bytes: block.encode(), hash: block.header.hash() }
    }
}

/// A broken block and the blocks that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub case: Broken,
    pub height: u32,
    pub broken: Encoded,
    /// A valid block at the same height: the same content without the fault, if possible.
    pub twin: Encoded,
    /// A valid block on the twin.
    pub next: Encoded,
}

/// All blocks of the preset.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Valid blocks from height 1.
    pub trunk: Vec<Encoded>,
    pub groups: Vec<Group>,
    /// Over the blocks in the order in which a node gets them.
    pub sha256: String,
}

/// Makes the blocks for a seed.
pub fn make(seed: u64) -> Suite {
    let mut bench = Bench { maker: Maker::new(), wallet: Wallet::new(seed), trunk: Vec::new(), groups: Vec::new() };
    bench.grow_to(TRUNK_HEIGHT - 4);
    bench.stock();
    let scripts = scripts::Funded::new(&mut bench);
    let sigops = blocks::Funded::new(&mut bench);
    bench.grow_to(TRUNK_HEIGHT);
    scripts.groups(&mut bench);
    coins::groups(&mut bench);
    blocks::groups(&mut bench, &sigops);
    let mut bytes = Vec::new();
    bench.trunk.iter().for_each(|block| bytes.extend_from_slice(&block.bytes));
    for group in &bench.groups {
        [&group.broken, &group.twin, &group.next].iter().for_each(|block| bytes.extend_from_slice(&block.bytes));
    }
    let sha256 = hex(&lydian_hash::sha256(&bytes));
    Suite { trunk: bench.trunk, groups: bench.groups, sha256 }
}

/// The hash of the genesis block, the tip before the first block.
pub fn genesis_hash() -> BlockHash {
    BlockHash(sha256d(&regtest_genesis()[..80]))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Bench {
    maker: Maker,
    wallet: Wallet,
    trunk: Vec<Encoded>,
    groups: Vec<Group>,
}

impl Bench {
    /// Adds a valid block before the groups.
    fn trunk(&mut self, txs: Vec<MutTx>) {
        let block = self.maker.block(txs);
        self.trunk.push(Encoded::from(&block));
        self.maker.advance(&block);
    }

    fn grow_to(&mut self, height: u32) {
        while self.maker.height < height {
            self.trunk(Vec::new());
        }
    }

    /// Creates free coins, in a block of their own.
    fn stock(&mut self) {
        let Some(coin) = self.maker.rich_coin() else { unreachable!("coinbases are mature by now") };
        let outputs = (0..FREE_COINS).map(|_| output(FREE_COIN_VALUE, &TRUE_SCRIPT)).collect();
        self.trunk(vec![free_tx(&[coin], outputs)]);
    }

    /// A free coin that the next block may spend, not from a coinbase.
    fn coin(&self) -> FreeCoin {
        self.maker.spendable()[0]
    }

    /// A transaction that spends one free coin to a new free coin.
    fn plain_tx(&self) -> MutTx {
        let coin = self.coin();
        free_tx(&[coin], vec![output(coin.value, &TRUE_SCRIPT)])
    }

    /// A sealed block on the tip with one change.
    fn changed(&self, txs: Vec<MutTx>, change: impl FnOnce(&mut MutBlock)) -> MutBlock {
        let mut block = self.maker.template(txs);
        change(&mut block);
        seal(&mut block);
        block
    }

    /// Adds a group; its twin and the block after it extend the chain.
    fn group(&mut self, case: Broken, broken: &MutBlock, twin: &MutBlock) {
        let height = self.maker.height + 1;
        self.maker.advance(twin);
        let next = self.maker.block(Vec::new());
        self.maker.advance(&next);
        let (broken, twin, next) = (Encoded::from(broken), Encoded::from(twin), Encoded::from(&next));
        self.groups.push(Group { case, height, broken, twin, next });
    }

    /// Adds a group with faulty transactions and correct ones.
    fn txs(&mut self, case: Broken, bad: Vec<MutTx>, good: Vec<MutTx>) {
        let (broken, twin) = (self.maker.block(bad), self.maker.block(good));
        self.group(case, &broken, &twin);
    }

    /// Adds a group with a faulty block and one without transactions.
    fn block(&mut self, case: Broken, broken: &MutBlock) {
        let twin = self.maker.block(Vec::new());
        self.group(case, broken, &twin);
    }
}

/// The case of a rule of the table.
fn broken(name: &str, reason: &str) -> Broken {
    let Some(rule) = rule_of(name) else { unreachable!("a test walks all groups") };
    Broken { rule, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_bytes_are_always_the_same() {
        assert_eq!(make(1).sha256, "78f9be99d63d9cbb2503e43a7d29e0306fed5123fd307047abcc9fd84d7afe06");
        assert_ne!(make(2).sha256, make(1).sha256);
    }

    /// A node that accepted a broken block finds a heavier branch, and all blocks have different hashes.
    #[test]
    fn every_group_begins_on_the_same_tip_and_is_in_the_table() {
        let suite = make(1);
        let parent = |block: &Encoded| BlockHash(*block.bytes[4..].first_chunk().unwrap());
        let (mut tip, mut height) = (genesis_hash(), 0);
        for block in &suite.trunk {
            assert_eq!(parent(block), tip);
            (tip, height) = (block.hash, height + 1);
        }
        assert_eq!(height, TRUNK_HEIGHT);
        let mut bytes: usize = suite.trunk.iter().map(|block| block.bytes.len()).sum();
        let mut hashes = HashSet::new();
        for group in &suite.groups {
            let parents = [parent(&group.broken), parent(&group.twin), parent(&group.next)];
            assert_eq!(parents, [tip, tip, group.twin.hash], "{}", group.case.rule.name);
            assert_eq!(group.height, height + 1, "{}", group.case.rule.name);
            assert!([&group.broken, &group.twin, &group.next].iter().all(|block| hashes.insert(block.hash)));
            (tip, height) = (group.next.hash, height + 2);
            bytes += group.broken.bytes.len() + group.twin.bytes.len() + group.next.bytes.len();
        }
        assert!((2_000_000..4_000_000).contains(&bytes), "{bytes}: a short chain");
        let names: Vec<&str> = suite.groups.iter().map(|group| group.case.rule.name).collect();
        assert_eq!(names, RULES.iter().map(|rule| rule.name).collect::<Vec<_>>(), "the table, in order");
        let titles: HashSet<&str> = RULES.iter().map(|rule| rule.title).collect();
        assert_eq!(titles.len(), RULES.len());
    }
}
