//! A chain without signatures whose shares resemble mainnet's: [`Mix`].
//!
//! Input: sizes. Output: blocks with the coins that they spend, and what they do to the scripts that are watched. A
//! transaction has 2.5 inputs and 2.7 outputs on average. Of the outputs, 42 % pay to a new script, 38 % to one of the
//! last million, and 20 % to a service: service `k` gets a share that falls with `1 / k`. Of the inputs, 41 % spend
//! outputs of the last 10 blocks, 35 % of the last 100, and the rest any older one. The same sizes give the same chain.

use crate::watched::{Change, Event, Watched};
use lydian_consensus::Coin;
use lydian_primitives::{Amount, Block, BlockHash, Height, OutPoint, RawBlock};
use lydian_stdx::SplitMix64;
use std::collections::VecDeque;

/// Scripts that were new lately.
const RECENT_SCRIPTS: u32 = 1_000_000;
/// Blocks whose outputs are young.
const YOUNG_BLOCKS: usize = 10;
const MIDDLE_BLOCKS: usize = 100;
/// The first coinbases have many outputs, so that there is something to spend.
const FIRST_BLOCKS: u32 = 20;
const FIRST_OUTPUTS: usize = 1_000;

/// The sizes of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The block at this height and those above are as large as mainnet's today.
    pub(crate) large_from: u32,
    pub(crate) transactions: usize,
    pub(crate) transactions_large: usize,
    pub(crate) services: u32,
}

/// A block as the engine hands it to a follower.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) height: u32,
    pub(crate) block: Block,
    pub(crate) spent: Vec<Spent>,
    pub(crate) events: Vec<Event>,
}

/// A coin that a block spends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) script: u32,
    pub(crate) height: u32,
    pub(crate) value: u32,
}

impl Spent {
    pub(crate) fn coin(&self) -> Coin {
        Coin {
            value: Amount(i64::from(self.value)),
            script_pubkey: script(self.script).into(),
            height: Height(self.height),
            is_coinbase: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Spendable {
    outpoint: OutPoint,
    number: u32,
    spent: Spent,
}

/// Makes the blocks.
#[derive(Debug)]
pub(crate) struct Mix {
    sizes: Sizes,
    watched: Watched,
    random: SplitMix64,
    height: u32,
    tip: BlockHash,
    /// The number of the next transaction.
    number: u32,
    /// The number of scripts.
    scripts: u32,
    old: Vec<Spendable>,
    /// The outputs of the last blocks that are not spent, the latest first.
    recent: VecDeque<Vec<Spendable>>,
}

impl Mix {
    pub(crate) fn new(sizes: Sizes, watched: Watched) -> Mix {
        Mix {
            sizes,
            watched,
            random: SplitMix64::new(1),
            height: 0,
            tip: BlockHash([0; 32]),
            number: 0,
            scripts: sizes.services,
            old: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    /// The next block, from the genesis block on.
    pub(crate) fn block(&mut self) -> Made {
        let is_large = self.height >= self.sizes.large_from;
        let count = if is_large { self.sizes.transactions_large } else { self.sizes.transactions };
        let inputs: Vec<Vec<Spendable>> = match self.height {
            0 => Vec::new(),
            _ => (0..count).map(|_| self.inputs()).take_while(|inputs| !inputs.is_empty()).collect(),
        };
        let (block, outputs) = self.assemble(&inputs);
        let mut made = Made { height: self.height, block, spent: Vec::new(), events: Vec::new() };
        self.note(&mut made, &inputs, &outputs);
        self.tip = made.block.hash();
        self.height += 1;
        self.number += u32::try_from(made.block.tx_count()).unwrap();
        made
    }

    /// The bytes of the block, parsed; and the scripts and values of the outputs of each transaction.
    fn assemble(&mut self, inputs: &[Vec<Spendable>]) -> (Block, Vec<Vec<(u32, u32)>>) {
        let mut bytes = vec![0; 80];
        bytes[4..36].copy_from_slice(&self.tip.0);
        bytes[68..72].copy_from_slice(&self.height.to_le_bytes());
        compact_size(1 + inputs.len(), &mut bytes);
        let coinbase =
            [Spendable { outpoint: OutPoint::NULL, number: 0, spent: Spent { script: 0, height: 0, value: 0 } }];
        let mut all = Vec::with_capacity(1 + inputs.len());
        for (position, inputs) in std::iter::once(&coinbase[..]).chain(inputs.iter().map(Vec::as_slice)).enumerate() {
            let outputs = match position {
                0 if (1..FIRST_BLOCKS).contains(&self.height) => FIRST_OUTPUTS,
                0 => 1,
                _ => self.output_count(),
            };
            let outputs: Vec<(u32, u32)> = (0..outputs).map(|_| (self.script(), self.value())).collect();
            bytes.extend_from_slice(&2_u32.to_le_bytes());
            compact_size(inputs.len(), &mut bytes);
            for input in inputs {
                bytes.extend_from_slice(&input.outpoint.txid.0);
                bytes.extend_from_slice(&input.outpoint.vout.to_le_bytes());
                // The height makes each coinbase unique.
                let height = self.height.to_le_bytes();
                let script_sig = if position == 0 { &height[..] } else { &[] };
                compact_size(script_sig.len(), &mut bytes);
                bytes.extend_from_slice(script_sig);
                bytes.extend_from_slice(&u32::MAX.to_le_bytes());
            }
            compact_size(outputs.len(), &mut bytes);
            for (id, value) in &outputs {
                bytes.extend_from_slice(&u64::from(*value).to_le_bytes());
                let script = script(*id);
                compact_size(script.len(), &mut bytes);
                bytes.extend_from_slice(&script);
            }
            bytes.extend_from_slice(&0_u32.to_le_bytes());
            all.push(outputs);
        }
        (RawBlock::new(bytes).parse().unwrap(), all)
    }

    /// Notes the coins that the block spends and creates, and the events of watched scripts.
    fn note(&mut self, made: &mut Made, inputs: &[Vec<Spendable>], outputs: &[Vec<(u32, u32)>]) {
        let (height, mut created) = (self.height, Vec::new());
        let mut events = Vec::new();
        let mut event = |script: u32, number: u32, vout: u32, change: Change| {
            if self.watched.has(script) {
                events.push(Event { height, script, number, vout, change });
            }
        };
        for (number, (position, tx)) in (self.number..).zip(made.block.txs().enumerate()) {
            let txid = tx.txid();
            for (vout, (script, value)) in (0..).zip(&outputs[position]).filter(|_| height > 0) {
                event(*script, number, vout, Change::Created { value: *value, txid });
                let spent = Spent { script: *script, height, value: *value };
                created.push(Spendable { outpoint: OutPoint { txid, vout }, number, spent });
            }
            for input in position.checked_sub(1).map_or(&[][..], |at| &inputs[at]) {
                let change = Change::Spent { spender: number, txid };
                event(input.spent.script, input.number, input.outpoint.vout, change);
                made.spent.push(input.spent);
            }
        }
        made.events = events;
        self.recent.push_front(created);
        if self.recent.len() > MIDDLE_BLOCKS {
            self.old.extend(self.recent.pop_back().unwrap());
        }
    }

    /// The coins that a transaction spends; none if there are none.
    fn inputs(&mut self) -> Vec<Spendable> {
        let count = match self.random.below(100) {
            0..60 => 1,
            60..82 => 2,
            _ => 3 + self.random.below(11),
        };
        (0..count).map_while(|_| self.spend()).collect()
    }

    fn output_count(&mut self) -> usize {
        match self.random.below(100) {
            0..15 => 1,
            15..82 => 2,
            _ => 3 + self.random.below(9),
        }
    }

    fn spend(&mut self) -> Option<Spendable> {
        let age = self.random.below(100);
        let blocks = if age < 41 { YOUNG_BLOCKS } else { MIDDLE_BLOCKS }.min(self.recent.len());
        let block = self.random.below(blocks.max(1));
        let recent = self.recent.get_mut(block).filter(|coins| !coins.is_empty());
        let coins = match recent {
            Some(coins) if age < 76 || self.old.is_empty() => coins,
            _ if !self.old.is_empty() => &mut self.old,
            _ => self.recent.iter_mut().find(|coins| !coins.is_empty())?,
        };
        let place = self.random.below(coins.len());
        Some(coins.swap_remove(place))
    }

    fn script(&mut self) -> u32 {
        let recent = (self.scripts - self.sizes.services).min(RECENT_SCRIPTS);
        match self.random.below(100) {
            0..42 => {
                self.scripts += 1;
                self.scripts - 1
            }
            42..80 if recent > 0 => self.scripts - 1 - u32::try_from(self.random.below(recent as usize)).unwrap(),
            _ => service(&mut self.random, self.sizes.services),
        }
    }

    /// In satoshis: of any size up to 20 bitcoins.
    fn value(&mut self) -> u32 {
        let bits = 10 + self.random.below(21);
        u32::try_from(self.random.below(1 << bits)).unwrap()
    }
}

/// A service: the lower its number, the more outputs it gets.
fn service(random: &mut SplitMix64, services: u32) -> u32 {
    let share = f64::from(u32::try_from(random.below(1 << 31)).unwrap()) / f64::from(1_u32 << 31);
    // At least 1, and below the number of services.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range of the services")]
    let service = f64::from(services).powf(share) as u32;
    service.min(services - 1)
}

/// The script with a number: pay to witness public key hash.
pub(crate) fn script(number: u32) -> [u8; 22] {
    let mut script = [0x5a; 22];
    script[..2].copy_from_slice(&[0, 20]);
    script[2..6].copy_from_slice(&number.to_le_bytes());
    script
}

fn compact_size(number: usize, out: &mut Vec<u8>) {
    match number {
        0..253 => out.push(u8::try_from(number).unwrap()),
        _ => {
            out.push(253);
            out.extend_from_slice(&u16::try_from(number).unwrap().to_le_bytes());
        }
    }
}
