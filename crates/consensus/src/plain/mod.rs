//! The plain validator: one thread, one block at a time, a `BTreeMap` of coins, scripts in exact mode. It is the
//! specification that every faster validator is compared with, so its code is deliberately simple.
//!
//! Input: blocks in any order in which parents come first. Output: the result for each block and, at any time, the tip,
//! the coins and their hashes. Invariants: the coins are exactly those of the active chain; the active chain is the one
//! with the most work among the chains that are complete and valid, and among equals the one seen first. Memory: every
//! block and every coin. It must never read a clock or a file.

mod tree;

use crate::block::{CheckedBlock, Parent, check_block};
use crate::coins::{fund, outpoint};
use crate::deployment::is_bip30_unspendable;
use crate::params::Params;
use crate::rule::{Step, Violation};
use crate::scripts::{Mode, VerifiedBlock, verify_scripts};
use crate::stats::Stats;
use crate::u256::U256;
use crate::utxo_hash;
use crate::view::{Coin, CoinView};
use lydian_primitives::{Block, BlockHash, Height, OutPoint};
use lydian_script::is_unspendable;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use tree::{Body, HeaderId, Tree};

/// The validator.
#[derive(Debug)]
pub struct PlainValidator {
    params: Params,
    tree: Tree,
    coins: Coins,
    /// Coins spent by each block of the active chain.
    undo: HashMap<BlockHash, Vec<Coin>>,
    stats: Stats,
    /// Blocks that failed while being connected, in the order in which they were tried.
    failed: Vec<(BlockHash, Violation)>,
}

/// The result for a block that has broken no rule so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    pub hash: BlockHash,
    pub height: Height,
    /// Whether the block is on the active chain now.
    pub is_active: bool,
    /// Number of blocks disconnected from the active chain for it.
    pub disconnected: usize,
    /// Other blocks that turned out to break a rule during the search for the chain with the most work.
    pub invalid: Vec<(BlockHash, Violation)>,
}

/// Why a block was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// The block is already stored.
    Duplicate,
    /// The block is known to break a rule: Core's `duplicate-invalid`.
    DuplicateInvalid,
    Violation(Violation),
}

impl Rejected {
    /// The result that Core's `submitblock` returns.
    pub fn reason(&self) -> String {
        match self {
            Rejected::Duplicate => "duplicate".to_owned(),
            Rejected::DuplicateInvalid => "duplicate-invalid".to_owned(),
            Rejected::Violation(violation) => violation.reject_reason(),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::Violation(violation) => violation.fmt(f),
            other => f.write_str(&other.reason()),
        }
    }
}

impl std::error::Error for Rejected {}

impl From<Violation> for Rejected {
    fn from(violation: Violation) -> Rejected {
        Rejected::Violation(violation)
    }
}

impl PlainValidator {
    /// Creates a chain that consists of the genesis block.
    pub fn new(params: Params) -> PlainValidator {
        let genesis = match params.genesis_block().parse() {
            Ok(block) => block,
            Err(error) => unreachable!("the genesis block is built to parse: {error}"),
        };
        PlainValidator {
            tree: Tree::new(genesis.header(), genesis.hash()),
            params,
            coins: Coins::default(),
            undo: HashMap::new(),
            stats: Stats::default(),
            failed: Vec::new(),
        }
    }

    /// Processes a block like Core's `ProcessNewBlock`. `now` is the current time in seconds since 1970.
    pub fn accept_block(&mut self, block: Block, now: u32) -> Result<Accepted, Rejected> {
        let (hash, header) = (block.hash(), *block.header());
        let known = self.tree.find(&hash);
        if let Some(id) = known {
            self.refuse_known(id, &block)?;
        }
        // A known header was not from the future when it was accepted, and the other header rules give the same result
        // again.
        let now = i64::from(if known.is_some() { header.time } else { now });
        let parent = self.tree.find(&header.prev_block);
        let result = {
            let branch = parent.map(|id| (self.tree.node(id), self.tree.branch(id)));
            let parent = match &branch {
                None => Parent::Unknown,
                Some((node, _)) if node.is_invalid => Parent::Invalid,
                Some((node, branch)) => Parent::At(node.height, branch),
            };
            CheckedBlock::check(block, parent, now, &self.params)
        };
        let enter = |tree: &mut Tree| known.or_else(|| parent.map(|parent| tree.insert(hash, header, parent)));
        match result {
            Ok(checked) => match enter(&mut self.tree) {
                Some(id) => self.take_body(id, checked),
                None => unreachable!("a checked block has a parent"),
            },
            Err(violation) => {
                // If the checks reached the body, the header was valid, so it is kept. It is marked invalid if the rule
                // depends on more than the bytes, which may be mutated.
                if violation.rule.info().step == Step::BlockInChain
                    && let Some(id) = enter(&mut self.tree)
                    && !violation.rule.is_of_the_bytes()
                {
                    self.tree.invalidate(id);
                }
                Err(violation.into())
            }
        }
    }

    /// Like Core, checks the bytes before it reports that the hash is known.
    fn refuse_known(&self, id: HeaderId, block: &Block) -> Result<(), Rejected> {
        let node = self.tree.node(id);
        match node.body {
            Body::Genesis => Err(Rejected::Duplicate),
            _ if node.is_invalid => {
                check_block(block, &self.params)?;
                Err(Rejected::DuplicateInvalid)
            }
            Body::Checked(_) => {
                check_block(block, &self.params)?;
                Err(Rejected::Duplicate)
            }
            Body::Missing => Ok(()),
        }
    }

    fn take_body(&mut self, id: HeaderId, checked: CheckedBlock) -> Result<Accepted, Rejected> {
        let (hash, height) = (checked.block().hash(), checked.height());
        self.tree.set_body(id, checked);
        let (disconnected, mut invalid) = self.activate_best_chain();
        if let Some(index) = invalid.iter().position(|(bad, _)| *bad == hash) {
            return Err(invalid.swap_remove(index).1.into());
        }
        Ok(Accepted { hash, height, is_active: self.tree.is_active(id), disconnected, invalid })
    }

    /// Switches to the chain with the most work. If a block on the way breaks a rule, tries the next best chain, and
    /// returns to the original chain if none is better. Core's `ActivateBestChain`.
    fn activate_best_chain(&mut self) -> (usize, Vec<(BlockHash, Violation)>) {
        let (mut disconnected, mut invalid) = (0, Vec::new());
        'search: loop {
            let candidates = self.tree.candidates();
            let Some(path) = candidates.into_iter().find_map(|id| self.tree.path_to(id)) else {
                return (disconnected, invalid);
            };
            let fork = self.tree.node(path[0]).parent;
            while fork != Some(self.tree.tip()) {
                self.disconnect_tip();
                disconnected += 1;
            }
            for id in path {
                if let Err(violation) = self.connect(id) {
                    invalid.push((self.tree.node(id).hash, violation));
                    self.failed.push((self.tree.node(id).hash, violation));
                    self.tree.invalidate(id);
                    continue 'search;
                }
            }
        }
    }

    /// Connects one block to the tip: Core's `ConnectTip`.
    fn connect(&mut self, id: HeaderId) -> Result<(), Violation> {
        let checked = match &self.tree.node(id).body {
            Body::Checked(checked) => checked.clone(),
            _ => unreachable!("only blocks with bodies are on a path"),
        };
        let funded = fund(checked, &self.coins, &self.tree.branch(self.tree.tip()), &self.params)?;
        let verified = verify_scripts(funded, Mode::Exact)?;
        self.stats.add(verified.funded());
        self.stats.add_checks(verified.checks());
        let spent = self.coins.apply(verified);
        self.undo.insert(self.tree.node(id).hash, spent);
        self.tree.push_active(id);
        Ok(())
    }

    /// Disconnects the tip: Core's `DisconnectTip`.
    fn disconnect_tip(&mut self) {
        let tip = self.tree.tip();
        let node = self.tree.node(tip);
        let spent = self.undo.remove(&node.hash).unwrap_or_default();
        match &node.body {
            Body::Checked(checked) => self.coins.undo(checked, spent),
            _ => unreachable!("the genesis block is never disconnected"),
        }
        self.tree.pop_active();
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Height and hash of the tip of the active chain.
    pub fn tip(&self) -> (Height, BlockHash) {
        let node = self.tree.node(self.tree.tip());
        (node.height, node.hash)
    }

    /// Work of the active chain.
    pub fn chain_work(&self) -> U256 {
        self.tree.node(self.tree.tip()).chain_work
    }

    /// Height of a block, if its header is known.
    pub fn height_of(&self, hash: &BlockHash) -> Option<Height> {
        self.tree.find(hash).map(|id| self.tree.node(id).height)
    }

    pub fn coin(&self, outpoint: &OutPoint) -> Option<&Coin> {
        self.coins.0.get(outpoint)
    }

    pub fn coin_count(&self) -> usize {
        self.coins.0.len()
    }

    /// Every block that broke a rule while being connected, in the order in which they were tried.
    pub fn failed(&self) -> &[(BlockHash, Violation)] {
        &self.failed
    }

    /// Counts of everything that was checked, including blocks that were disconnected later.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Core's `hash_serialized_3`, in internal byte order.
    pub fn hash_serialized_3(&self) -> [u8; 32] {
        utxo_hash::hash_serialized_3(self.coins.0.iter())
    }

    /// Core's `muhash`, in internal byte order.
    pub fn muhash(&self) -> [u8; 32] {
        utxo_hash::muhash(self.coins.0.iter())
    }
}

/// The unspent outputs of the active chain.
#[derive(Debug, Default)]
struct Coins(BTreeMap<OutPoint, Coin>);

impl CoinView for Coins {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        outpoints.iter().map(|outpoint| self.0.get(outpoint).cloned()).collect()
    }

    fn has_any(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| self.0.contains_key(outpoint))
    }
}

impl Coins {
    /// Removes the coins that the block spends and adds the spendable ones that it creates. Returns the spent coins.
    /// Core's `UpdateCoins`, transaction by transaction.
    fn apply(&mut self, verified: VerifiedBlock) -> Vec<Coin> {
        let (checked, spent) = Arc::unwrap_or_clone(verified.into_funded()).into_parts();
        for tx in checked.block().txs() {
            if !tx.is_coinbase() {
                for input in tx.inputs() {
                    assert!(self.0.remove(&input.prevout).is_some(), "a funded block spends coins that are there");
                }
            }
            for (vout, output) in tx.outputs().enumerate() {
                if !is_unspendable(output.script_pubkey) {
                    let coin = Coin::new(output, checked.height(), tx.is_coinbase());
                    self.0.insert(outpoint(tx.txid(), vout), coin);
                }
            }
        }
        spent
    }

    /// Reverses `apply`, starting with the last transaction. Core's `DisconnectBlock`: a coin that was overwritten (two
    /// coinbases of 2010) is not restored, and the outputs of the block that created it may be missing.
    fn undo(&mut self, checked: &CheckedBlock, mut spent: Vec<Coin>) {
        let block = checked.block();
        let is_excepted = is_bip30_unspendable(checked.height(), &block.hash());
        for index in (0..block.tx_count()).rev() {
            let tx = block.tx(index);
            for (vout, output) in tx.outputs().enumerate().filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
                let created = Coin::new(output, checked.height(), tx.is_coinbase());
                let removed = self.0.remove(&outpoint(tx.txid(), vout));
                assert!(removed == Some(created) || (tx.is_coinbase() && is_excepted), "a block finds its outputs");
            }
            if tx.is_coinbase() {
                continue;
            }
            for input in (0..tx.input_count()).rev() {
                match spent.pop() {
                    Some(coin) => {
                        assert!(self.0.insert(tx.input(input).prevout, coin).is_none(), "a spent coin was there")
                    }
                    None => unreachable!("one coin for each input"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Chain;
    use crate::view::Ancestor;
    use lydian_primitives::RawBlock;

    struct Nothing;

    impl crate::view::HeaderView for Nothing {
        fn ancestor(&self, _: Height) -> Option<Ancestor> {
            None
        }
    }

    fn real_block(name: &str, height: u32) -> CheckedBlock {
        let path = format!("{}/../../testdata/blocks/with_prevouts/{name}.block.zst", env!("CARGO_MANIFEST_DIR"));
        #[allow(clippy::disallowed_methods, reason = "tests read their data themselves")]
        let bytes = zstd::decode_all(&std::fs::read(path).unwrap()[..]).unwrap();
        let block = RawBlock::new(bytes).parse().unwrap();
        let params = Params::new(Chain::Main);
        CheckedBlock::check_without_ancestors(block, Height(height), &Nothing, i64::MAX / 2, &params).unwrap()
    }

    const OVERWRITTEN: &str = "main-091722-00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e";

    /// The coinbase of block 91722 was repeated in block 91880 and overwritten there. Undoing 91880 removes the coin
    /// for good, as in Core, so undoing 91722 does not find it and must accept that.
    /// checklist: 5
    #[test]
    fn the_overwritten_coinbase_may_be_missing() {
        let mut coins = Coins::default();
        coins.undo(&real_block(OVERWRITTEN, 91_722), Vec::new());
        assert!(coins.0.is_empty());
        // A later coin under the same outpoint is removed.
        let block = real_block(OVERWRITTEN, 91_722);
        let tx = block.block().tx(0);
        let later = Coin::new(tx.output(0), Height(91_880), true);
        coins.0.insert(outpoint(tx.txid(), 0), later);
        coins.undo(&block, Vec::new());
        assert!(coins.0.is_empty());
    }

    struct NoCoins;

    impl CoinView for NoCoins {
        fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
            vec![None; outpoints.len()]
        }

        fn has_any(&self, _: &[OutPoint]) -> bool {
            false
        }
    }

    /// Connects a coinbase and its repetition at another height and undoes both. The second overwrites the first, and
    /// undoing it removes both.
    /// checklist: 5
    #[test]
    fn an_overwritten_coinbase_is_not_restored() {
        let first = real_block(OVERWRITTEN, 91_722);
        let mut params = Params::new(Chain::Main);
        params.pow_limit = Params::new(Chain::Regtest).pow_limit;
        let mut twin = lydian_primitives::build::MutBlock::from(first.block());
        twin.header.bits = 0x207f_ffff;
        while !crate::pow::is_proof_of_work(&twin.header.hash(), twin.header.bits, &params) {
            twin.header.nonce += 1;
        }
        let twin = RawBlock::new(twin.encode()).parse().unwrap();
        let twin =
            CheckedBlock::check_without_ancestors(twin, Height(91_880), &Nothing, i64::MAX / 2, &params).unwrap();
        let verified = |checked: &CheckedBlock| {
            verify_scripts(fund(checked.clone(), &NoCoins, &Nothing, &params).unwrap(), Mode::Exact).unwrap()
        };
        let mut coins = Coins::default();
        coins.apply(verified(&first));
        assert_eq!(coins.0.values().next().unwrap().height, Height(91_722));
        coins.apply(verified(&twin));
        let heights: Vec<_> = coins.0.values().map(|coin| coin.height).collect();
        assert_eq!(heights, [Height(91_880)]);
        coins.undo(&twin, Vec::new());
        assert!(coins.0.is_empty(), "not restored");
        coins.undo(&first, Vec::new());
        assert!(coins.0.is_empty());
    }

    /// Any other block must find its outputs.
    /// checklist: 5
    #[test]
    #[should_panic(expected = "a block finds its outputs")]
    fn another_missing_coinbase_is_our_bug() {
        let name = "main-072576-00000000002897d721b6b31ad519e3e54a90741a24a019f23e41911a8c8b0d25";
        Coins::default().undo(&real_block(name, 72_576), Vec::new());
    }
}
