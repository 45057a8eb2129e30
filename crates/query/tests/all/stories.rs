//! Random stories: blocks, reorganisations, transactions that come, are replaced, mined and return, restarts. After
//! each step, every answer is compared.

use crate::compare::{ALL, Asked};
use crate::draft::{Maker, Shape};
use crate::world::{COMPACT, FULL, World};
use lydian_primitives::Block;
use lydian_stdx::SplitMix64;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Default running time, in seconds.
const SECONDS: u64 = 8;

/// A story in which a transaction of the mempool has the txid of an older one of the chain.
const FIRST_SEED: u64 = 3_004;

/// Blocks below the first step: some coins are mature then. In one story of four, what spent them may be repeated.
const TRUNKS: [usize; 4] = [106, 106, 106, 215];

const STEPS: usize = 40;

pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

struct Story {
    world: World,
    maker: Maker,
    asked: Asked,
    /// Blocks that were left by hand, and may come back.
    left: Vec<Block>,
}

impl Story {
    fn new(seed: u64) -> Story {
        let mut random = SplitMix64::new(seed);
        let shape = Shape {
            txs: [1, 3, 8][random.below(3)],
            fresh_percent: [5, 30][random.below(2)],
            fan_percent: [0, 4][random.below(2)],
            has_witness: random.below(2) == 0,
        };
        let profile = [COMPACT, FULL][random.below(2)];
        let world = World::new(seed, profile);
        let maker = Maker::new(random.next_u64(), shape, world.params.clone());
        let asked = Asked::new(random.next_u64());
        Story { world, maker, asked, left: Vec::new() }
    }

    fn grow(&mut self, count: usize, pool_percent: usize) {
        for _ in 0..count {
            let block = self.maker.block(&self.world.chain, &self.world.pool, pool_percent);
            self.world.connect(block);
        }
    }

    /// A branch from a height on. Most of its blocks have transactions of the mempool and of the chain that it leaves.
    fn branch(&mut self, fork: usize, count: usize) {
        let mut chain = self.world.chain[..=fork].to_vec();
        let left = self.world.chain[fork + 1..].iter().flat_map(|block| block.txs().skip(1));
        let mut pool: Vec<_> =
            left.map(|tx| std::sync::Arc::new(lydian_primitives::Transaction::parse(tx.bytes()).unwrap())).collect();
        pool.extend(self.world.pool.iter().cloned());
        let percent = [0, 50, 100][self.maker.below(3)];
        let mut blocks = Vec::new();
        for _ in 0..count {
            let block = self.maker.block(&chain, &pool, percent);
            pool.retain(|tx| block.txs().all(|mined| mined.txid() != tx.view().txid()));
            chain.push(block.clone());
            blocks.push(block);
        }
        self.world.branch(fork, blocks);
    }

    fn submit(&mut self) {
        let count = 1 + self.maker.below(8);
        for _ in 0..count {
            if let Some(tx) = self.maker.unconfirmed(&self.world.chain, &self.world.pool) {
                self.world.submit(tx);
            }
        }
    }

    fn step(&mut self) {
        let tip = self.world.chain.len() - 1;
        if !self.left.is_empty() && self.maker.chance(50) {
            let blocks = std::mem::take(&mut self.left);
            let is_on_tip = blocks[0].header().prev_block == self.world.tip_hash();
            if is_on_tip {
                return self.world.reconsider(blocks);
            }
        }
        match self.maker.below(100) {
            0..=34 => self.submit(),
            35..=59 => {
                let count = 1 + self.maker.below(3);
                let percent = [0, 60, 100][self.maker.below(3)];
                self.grow(count, percent);
            }
            60..=79 => {
                let most = if self.maker.chance(20) { 30 } else { 4 };
                let depth = 1 + self.maker.below(most);
                let count = depth + self.maker.below(3);
                self.branch(tip - depth, count);
            }
            80..=91 => {
                let most = if self.maker.chance(20) { 20 } else { 4 };
                let depth = 1 + self.maker.below(most);
                let left = self.world.invalidate(tip + 1 - depth);
                self.left = left;
            }
            _ => {
                let is_kill = self.maker.chance(50);
                self.world.restart(is_kill);
                if is_kill {
                    // Blocks beside the chain may be lost.
                    self.left.clear();
                }
            }
        }
    }
}

fn tell(seed: u64) -> BTreeMap<String, u64> {
    let mut story = Story::new(seed);
    let trunk = TRUNKS[story.maker.below(TRUNKS.len())];
    story.grow(trunk, 0);
    story.asked.compare(&story.world, ALL);
    for _ in 0..STEPS {
        story.step();
        story.asked.compare(&story.world, ALL);
    }
    for kind in story.asked.kinds {
        story.world.count(kind);
    }
    story.world.counts
}

/// What stories have to have.
const KINDS: [&str; 18] = [
    "a coinbase that is repeated",
    "a transaction that is repeated",
    "a transaction that is repeated in the mempool",
    "an output that is too large to be spent",
    "back again",
    "branches beside",
    "chained in the mempool",
    "hundreds of outputs to one script",
    "invalidated",
    "killed",
    "left for a conflict",
    "mined from the mempool",
    "reorganised",
    "replaced",
    "restarted",
    "returned to the mempool",
    "several outputs to one script",
    "spent in its own block",
];

/// Stories in which all of that happens.
const STORIES: u64 = 60;

#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
fn every_answer_is_that_of_the_model() {
    let (first, last) = match setting("LYDIAN_QUERY_SEED") {
        Some(seed) => (seed, seed),
        None => (setting("LYDIAN_QUERY_FIRST_SEED").unwrap_or(FIRST_SEED), u64::MAX - 1),
    };
    let allowed = Duration::from_secs(setting("LYDIAN_QUERY_SECONDS").unwrap_or(SECONDS));
    let (start, mut told) = (Instant::now(), 0);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..=last {
        let result = std::panic::catch_unwind(|| tell(seed));
        let of_story = result.unwrap_or_else(|panic| {
            eprintln!("failed: LYDIAN_QUERY_SEED={seed} cargo test -p lydian-query --test all stories");
            std::panic::resume_unwind(panic);
        });
        for (what, count) in of_story {
            *counts.entry(what).or_default() += count;
        }
        told += 1;
        if start.elapsed() > allowed {
            break;
        }
    }
    for kind in KINDS {
        assert!(told < STORIES || counts.contains_key(kind), "no story has {kind}: {counts:?}");
    }
    eprintln!("{told} stories from seed {first}: {counts:?}");
}
