//! The plain validator's answers to a story: the specification. Input: a story and the order of its blocks. Output: the
//! answer to each block, and the state after some of them. Nothing here depends on the engine.

use crate::story::{NOW, Story, header_only};
use lydian_chains::rng::Random;
use lydian_consensus::{Accepted, Params, PlainValidator, Rejected, Rule, Violation, is_block_mutated};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Block, BlockHash, Height, RawBlock};
use std::collections::HashMap;

/// The verdict on a block.
pub type Answer = Result<Accepted, Rejected>;

/// The state of a validator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    pub height: Height,
    pub hash: BlockHash,
    pub hash_serialized_3: [u8; 32],
}

/// The order in which blocks are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As they were made.
    File,
    /// In any order; a block without its parent is submitted again later. Some are submitted twice.
    Shuffled,
    /// All headers first, then the blocks in any order.
    HeadersFirst,
}

impl Order {
    pub const ALL: [Order; 3] = [Order::File, Order::Shuffled, Order::HeadersFirst];
}

/// A submitted block, with the answer to it.
#[derive(Clone, Debug)]
pub struct Fed {
    pub block: Vec<u8>,
    pub note: String,
    /// The time when it was submitted.
    pub now: u32,
    pub answer: Answer,
    pub tip: (Height, BlockHash),
    /// The state, after some blocks only.
    pub state: Option<State>,
}

/// The plain validator's results for a story.
#[derive(Debug)]
pub struct Expected {
    pub fed: Vec<Fed>,
    pub end: State,
    pub muhash: [u8; 32],
    /// Every block that broke a rule in the chain, and the rule.
    pub violations: HashMap<BlockHash, Violation>,
    /// Hashes that came with bytes they do not commit to, and the violation found in those bytes.
    pub mutated: HashMap<BlockHash, Violation>,
    params: Params,
}

impl Expected {
    /// The reason why a block is invalid for the plain validator. It may not have tried a block that others try because
    /// they got the blocks at other times. In that case, a plain validator that gets only this branch is asked.
    pub fn violation_of(&self, hash: &BlockHash) -> Option<Violation> {
        if let Some(violation) = self.violations.get(hash) {
            return Some(*violation);
        }
        let blocks = self.fed.iter().map(|fed| parse(&fed.block)).filter(|block| !is_block_mutated(block, true));
        let by_hash: HashMap<BlockHash, Block> = blocks.map(|block| (block.hash(), block)).collect();
        let mut path = Vec::new();
        let mut at = *hash;
        while at != self.params.genesis_hash {
            let block = by_hash.get(&at)?;
            at = block.header().prev_block;
            path.push(block.clone());
        }
        let mut plain = PlainValidator::new(self.params.clone());
        match path.into_iter().rev().map(|block| plain.accept_block(block, NOW)).last() {
            Some(Err(Rejected::Violation(violation))) => Some(violation),
            _ => None,
        }
    }
}

/// The number of blocks after which the coins are compared.
const STATE_INTERVAL: usize = 11;

impl Expected {
    pub fn new(story: &Story, order: Order, random: &mut Random) -> Expected {
        let mut feeding = Feeding::new(story.params.clone());
        match order {
            Order::File => (0..story.blocks.len()).for_each(|index| drop(feeding.feed_made(story, index))),
            Order::Shuffled => feeding.shuffled(story, random),
            Order::HeadersFirst => {
                for made in &story.blocks {
                    let block = MutBlock::from(&parse(&made.bytes));
                    feeding.feed(header_only(&block).encode(), format!("header of: {}", made.note), NOW).ok();
                }
                feeding.shuffled(story, random);
            }
        }
        feeding.finish()
    }

    /// The plain validator's results for these blocks: bytes, a note and the time of each.
    pub fn of(params: &Params, blocks: impl IntoIterator<Item = (Vec<u8>, String, u32)>) -> Expected {
        let mut feeding = Feeding::new(params.clone());
        for (bytes, note, now) in blocks {
            feeding.feed(bytes, note, now).ok();
        }
        feeding.finish()
    }
}

pub fn parse(bytes: &[u8]) -> Block {
    RawBlock::new(bytes.to_vec()).parse().unwrap()
}

pub fn state_of(plain: &PlainValidator) -> State {
    let (height, hash) = plain.tip();
    State { height, hash, hash_serialized_3: plain.hash_serialized_3() }
}

struct Feeding {
    plain: PlainValidator,
    fed: Vec<Fed>,
    violations: HashMap<BlockHash, Violation>,
    mutated: HashMap<BlockHash, Violation>,
}

impl Feeding {
    fn new(params: Params) -> Feeding {
        Feeding {
            plain: PlainValidator::new(params),
            fed: Vec::new(),
            violations: HashMap::new(),
            mutated: HashMap::new(),
        }
    }

    fn finish(self) -> Expected {
        let (end, muhash) = (state_of(&self.plain), self.plain.muhash());
        // Also those that were found while another block was refused.
        let mut violations = self.violations;
        violations.extend(self.plain.failed().iter().copied());
        let params = self.plain.params().clone();
        Expected { fed: self.fed, end, muhash, violations, mutated: self.mutated, params }
    }

    fn feed_made(&mut self, story: &Story, index: usize) -> Answer {
        let made = &story.blocks[index];
        self.feed(made.bytes.clone(), made.note.clone(), NOW)
    }

    fn feed(&mut self, bytes: Vec<u8>, note: String, now: u32) -> Answer {
        let block = parse(&bytes);
        let hash = block.hash();
        let answer = self.plain.accept_block(block, now);
        match &answer {
            Ok(accepted) => self.violations.extend(accepted.invalid.iter().copied()),
            // A fault in these bytes says nothing about other bytes with the same hash.
            Err(Rejected::Violation(violation)) => {
                let of = if violation.rule.is_of_the_bytes() { &mut self.mutated } else { &mut self.violations };
                of.insert(hash, *violation);
            }
            Err(_) => {}
        }
        let is_compared = self.fed.len().is_multiple_of(STATE_INTERVAL);
        let state = is_compared.then(|| state_of(&self.plain));
        self.fed.push(Fed { block: bytes, note, now, answer: answer.clone(), tip: self.plain.tip(), state });
        answer
    }

    /// Submits every block until its parent is known. Most of the time the trunk stays in order, since little happens
    /// before it is complete.
    fn shuffled(&mut self, story: &Story, random: &mut Random) {
        let first = if random.chance(700) { story.trunk } else { 0 };
        (0..first).for_each(|index| drop(self.feed_made(story, index)));
        let mut open: Vec<usize> = (first..story.blocks.len()).collect();
        for _ in 0..3 {
            shuffle(&mut open, random);
            let mut orphans = Vec::new();
            for index in open {
                if is_orphan(&self.feed_made(story, index)) {
                    orphans.push(index);
                }
                if random.chance(50) {
                    let again = random.index(story.blocks.len());
                    let _ = self.feed_made(story, again);
                }
            }
            open = orphans;
        }
        open.sort_unstable();
        open.into_iter().for_each(|index| drop(self.feed_made(story, index)));
    }
}

fn is_orphan(answer: &Answer) -> bool {
    matches!(answer, Err(Rejected::Violation(violation)) if violation.rule == Rule::PrevBlkNotFound)
}

pub fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for end in (1..items.len()).rev() {
        items.swap(end, random.index(end + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::Step;
    use std::collections::BTreeMap;

    /// The stories cover every outcome, and most blocks are accepted.
    #[test]
    fn stories_have_everything() {
        let (mut steps, mut rules, mut notes) =
            (BTreeMap::<Step, u32>::new(), BTreeMap::<_, u32>::new(), BTreeMap::new());
        let (mut fed, mut accepted, mut disconnected, mut deepest, mut later) = (0, 0, 0, 0, 0);
        for seed in 0..200 {
            let story = Story::new(seed);
            let mut random = Random::new(seed, "order");
            let order = Order::ALL[random.index(3)];
            for one in Expected::new(&story, order, &mut random).fed {
                fed += 1;
                match &one.answer {
                    Ok(answer) => {
                        accepted += 1;
                        disconnected += answer.disconnected;
                        deepest = deepest.max(answer.disconnected);
                        later += answer.invalid.len();
                    }
                    Err(Rejected::Violation(violation)) => {
                        *steps.entry(violation.rule.info().step).or_default() += 1;
                        *rules.entry(violation.rule).or_default() += 1;
                    }
                    Err(_) => {}
                }
                *notes.entry((one.note, one.answer.err().map(|error| error.reason()))).or_insert(0_u32) += 1;
            }
        }
        eprintln!(
            "{fed} blocks, {accepted} accepted, {disconnected} disconnected, at most {deepest} at once, {later} found invalid later"
        );
        eprintln!("{steps:?}\n{rules:?}");
        if std::env::var_os("LYDIAN_ENGINE_NOTES").is_some() {
            notes.iter().for_each(|(note, count)| eprintln!("{note:?} {count}"));
        }
        assert_eq!(steps.len(), 7, "{steps:?}");
        assert!(rules.len() >= 28, "{rules:?}");
        assert!(deepest >= 15 && later > 10 && accepted * 3 > fed);
    }
}
