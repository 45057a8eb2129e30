//! Small random regtest chains from a seed: a tree of blocks with forks, ties and reorganisations of any depth, of
//! valid blocks and blocks that break a rule at every stage.
//!
//! Input: a seed. Output: blocks in the order in which they were made, parents first. Invariants: the same seed gives
//! the same bytes everywhere; validity is not decided here (the plain validator does that). Cost: about 5 ms per chain.

mod coin;
mod draft;
mod faults;

use coin::Own;
use draft::Draft;
pub use faults::{Fault, header_only};
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint, RawBlock};
use lydian_script::ScriptBuilder;
use std::rc::Rc;

/// The clock of all stories: later than all blocks except those from the future.
pub const NOW: u32 = 1_700_000_000;
const START: u32 = NOW - 1_000_000;

/// A block of a story.
#[derive(Clone, Debug)]
pub struct Made {
    pub bytes: Vec<u8>,
    /// The faults of the block, if any.
    pub note: String,
}

/// A chain from a seed.
#[derive(Debug)]
pub struct Story {
    pub params: Params,
    pub blocks: Vec<Made>,
    /// The number of blocks of the trunk, below all branches.
    pub trunk: usize,
}

/// The parameters of a story.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks beyond the trunk.
    pub blocks: usize,
    /// Coinbases carry no height, so that transactions may repeat (BIP-0030).
    pub repeats: bool,
    /// Blocks per thousand that break a rule.
    pub faults_per_mille: u64,
    /// Coins per thousand that need real signatures.
    pub keys_per_mille: u64,
    /// The most transactions in a block.
    pub txs: u64,
    /// Faults are of coins and scripts only, and the branch continues on a faulty block: many blocks of one branch
    /// fail, and the lowest one counts.
    pub is_rotten: bool,
}

impl Shape {
    /// A random shape: mostly small, some large, some of each kind.
    pub fn random(random: &mut Random) -> Shape {
        let repeats = random.chance(100);
        let blocks = match random.below(10) {
            0..=5 => random.between(12, 36),
            6..=8 => random.between(30, 70),
            _ => random.between(70, 150),
        };
        let blocks = if repeats { blocks + 100 } else { blocks };
        let is_rotten = random.chance(250);
        Shape {
            blocks: usize::try_from(blocks).unwrap(),
            repeats,
            faults_per_mille: if is_rotten { 400 } else { [0, 60, 150, 350][random.index(4)] },
            keys_per_mille: [0, 20, 60, 250][random.index(4)],
            txs: if is_rotten { 6 } else { [1, 3, 6, 12][random.index(4)] },
            is_rotten,
        }
    }
}

impl Story {
    /// The story of a seed.
    pub fn new(seed: u64) -> Story {
        let mut random = Random::new(seed, "story");
        let shape = Shape::random(&mut random);
        Story::with_shape(seed, shape)
    }

    pub fn with_shape(seed: u64, shape: Shape) -> Story {
        let mut builder = StoryBuilder::new(seed, shape);
        builder.build();
        builder.finish()
    }
}

/// A block of the tree, with the data needed to extend it.
#[derive(Clone, Debug)]
struct Node {
    hash: BlockHash,
    parent: usize,
    height: u32,
    time: u32,
    is_sound: bool,
    /// Coins after it, the oldest first.
    coins: Rc<Vec<Own>>,
    /// Coins it spent.
    spent: Rc<Vec<Own>>,
    txs: Rc<Vec<MutTx>>,
}

struct StoryBuilder {
    random: Random,
    shape: Shape,
    params: Params,
    nodes: Vec<Node>,
    blocks: Vec<Made>,
    trunk: usize,
    /// Makes coinbases differ.
    nonce: u64,
}

impl StoryBuilder {
    fn new(seed: u64, shape: Shape) -> StoryBuilder {
        let mut params = Params::new(Chain::Regtest);
        if shape.repeats {
            params = params.with_activation_height("bip34@10000").unwrap();
        }
        let genesis = params.genesis_block().parse().unwrap();
        let node = Node {
            hash: genesis.hash(),
            parent: 0,
            height: 0,
            time: genesis.header().time,
            is_sound: true,
            coins: Rc::default(),
            spent: Rc::default(),
            txs: Rc::default(),
        };
        StoryBuilder {
            random: Random::new(seed, "teller"),
            shape,
            params,
            nodes: vec![node],
            blocks: Vec::new(),
            trunk: 0,
            nonce: 0,
        }
    }

    fn build(&mut self) {
        let trunk = self.random.between(100, 104);
        for _ in 0..trunk {
            let parent = self.nodes.len() - 1;
            let block = Draft::new(self, parent).finish(self, &[]);
            self.enter(parent, block, true);
        }
        self.trunk = self.blocks.len();
        let mut current = self.nodes.len() - 1;
        for _ in 0..self.shape.blocks {
            current = self.choose_parent(current);
            current = self.step(current);
        }
    }

    /// Continues on the last block or elsewhere: on an abandoned branch, next to the best tip, deep in the chain.
    fn choose_parent(&mut self, current: usize) -> usize {
        let last = self.nodes.len() - 1;
        let first = self.trunk.saturating_sub(4);
        let sound = |node: &usize| self.nodes[*node].is_sound;
        let best = (0..=last).filter(sound).max_by_key(|node| self.nodes[*node].height).unwrap_or(last);
        match self.random.below(100) {
            0..=3 => first + self.random.index(last - first + 1),
            4..=7 => last.saturating_sub(self.random.index(8)),
            8..=10 => self.nodes[best].parent,
            11..=16 => best,
            17..=19 if self.nodes[current].is_sound => self.nodes[self.nodes[current].parent].parent,
            _ if !self.nodes[current].is_sound && self.random.chance(if self.shape.is_rotten { 120 } else { 350 }) => {
                best
            }
            _ => current,
        }
    }

    /// Makes a block on `parent`; returns its node.
    fn step(&mut self, parent: usize) -> usize {
        let mut draft = Draft::new(self, parent);
        let count = self.random.below(self.shape.txs + 1);
        for _ in 0..count {
            draft.add_random_tx(self);
        }
        if self.shape.repeats && self.random.chance(300) {
            draft.repeat_tx(self);
        }
        let faults: Vec<Fault> = match self.random.below(1000) {
            point if point < self.shape.faults_per_mille / 5 => vec![Fault::random(self), Fault::random(self)],
            point if point < self.shape.faults_per_mille => vec![Fault::random(self)],
            _ => Vec::new(),
        };
        let faults: Vec<Fault> = faults.into_iter().filter(|fault| draft.apply(*fault, self)).collect();
        if !faults.is_empty() {
            (0..self.random.below(3)).for_each(|_| draft.add_random_tx(self));
        }
        let block = draft.finish(self, &faults);
        self.enter(parent, block, faults.is_empty())
    }

    /// Adds a finished block, sometimes preceded by a twin with other bytes.
    fn enter(&mut self, parent: usize, finished: draft::Finished, is_sound: bool) -> usize {
        let draft::Finished { block, coins, spent, note } = finished;
        if self.trunk > 0 && self.random.chance(30) {
            let twin = faults::twin(&block, &mut self.random);
            self.push(&twin, format!("twin, {note}"));
        }
        self.push(&block, note);
        let above = &self.nodes[parent];
        self.nodes.push(Node {
            hash: block.header.hash(),
            parent,
            height: above.height + 1,
            time: block.header.time,
            is_sound: is_sound && above.is_sound,
            coins: Rc::new(coins),
            spent: Rc::new(spent),
            txs: Rc::new(block.txs),
        });
        self.nodes.len() - 1
    }

    /// Adds the bytes of a block; blocks that do not parse never reach a validator.
    fn push(&mut self, block: &MutBlock, note: String) {
        let bytes = block.encode();
        if RawBlock::new(bytes.clone()).parse().is_ok() {
            self.blocks.push(Made { bytes, note });
        }
    }

    fn finish(mut self) -> Story {
        // With the matching hash at BIP-0034's height, BIP-0030 is no longer checked.
        if !self.shape.repeats && self.random.chance(500) {
            self.params.bip34_hash = self.nodes[1].hash;
        }
        Story { params: self.params, blocks: self.blocks, trunk: self.trunk }
    }

    /// Median of the times of the last eleven blocks up to a node.
    fn median_time_past(&self, node: usize) -> u32 {
        let mut times = Vec::new();
        let mut at = node;
        while times.len() < 11 {
            times.push(self.nodes[at].time);
            if at == 0 {
                break;
            }
            at = self.nodes[at].parent;
        }
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn ancestor(&self, node: usize, height: u32) -> usize {
        let mut at = node;
        while self.nodes[at].height > height {
            at = self.nodes[at].parent;
        }
        at
    }
}

impl Story {
    /// A valid block without transactions on a tip.
    pub fn block_on(&self, tip: BlockHash, height: u32) -> Vec<u8> {
        sealed(tip, height, b"decides", Vec::new()).encode()
    }
}

/// A sealed block on a tip, with transactions; `tag` makes it differ from others.
pub fn sealed(tip: BlockHash, height: u32, tag: &[u8], txs: Vec<MutTx>) -> MutBlock {
    let script_sig = ScriptBuilder::new().push_int(i64::from(height) + 1).push_slice(tag).into_bytes();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let output = MutOutput { value: Amount(1_000_000), script_pubkey: vec![0x51] };
    let coinbase = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let time = if tag == b"decides" { NOW } else { START + height * 600 };
    let (merkle_root, bits) = ([0; 32], draft::REGTEST_BITS);
    let header = Header { version: 0x2000_0000, prev_block: tip, merkle_root, time, bits, nonce: 0 };
    let mut block = MutBlock { header, txs: std::iter::once(coinbase).chain(txs).collect() };
    block.seal_on_regtest();
    block
}
