//! What the transactions of a block spend comes from the node's undo data, as far as these can be those of the block.

use crate::draft::Shape;
use crate::faults::grow;
use crate::link::Link;
use crate::memory::MemoryStore;
use crate::node::{Feed, Settings, clock, index_writer, is_settled, start_front};
use crate::world::{FULL, World};
use lydian_chain::UndoParts;
use lydian_engine::Tip;
use lydian_front::Front;
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, Transaction, Txid};
use lydian_query::{BlockInfo, Chain, NodeChain, QueryError, SpentOutput};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The chain of a node, which counts what it is asked, and has the undo data of other blocks for some.
#[derive(Debug)]
struct Told {
    own: NodeChain,
    false_undo: Mutex<HashMap<BlockHash, BlockHash>>,
    undos: AtomicUsize,
    /// Transactions that were read.
    transactions: AtomicUsize,
}

impl Chain for Told {
    fn tip(&self) -> Result<Tip, QueryError> {
        self.own.tip()
    }

    fn headers(&self, from: Height, count: usize) -> Result<Vec<Header>, QueryError> {
        self.own.headers(from, count)
    }

    fn hashes(&self, from: Height, count: usize) -> Result<Vec<BlockHash>, QueryError> {
        self.own.hashes(from, count)
    }

    fn txids(&self, height: Height) -> Result<Option<(BlockHash, Vec<Txid>)>, QueryError> {
        self.own.txids(height)
    }

    fn block_info(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, QueryError> {
        self.own.block_info(hash)
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Block>, QueryError> {
        self.own.block(hash)
    }

    fn spent(&self, hash: &BlockHash, block: &Block) -> Result<Option<Vec<SpentOutput>>, QueryError> {
        self.own.spent(hash, block)
    }

    fn undo(&self, hash: &BlockHash, bytes_max: usize) -> Result<Option<UndoParts>, QueryError> {
        self.undos.fetch_add(1, Ordering::SeqCst);
        let of = self.false_undo.lock().unwrap().get(hash).copied();
        self.own.undo(&of.unwrap_or(*hash), bytes_max)
    }

    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError> {
        self.own.transaction(place)
    }

    fn transactions(&self, places: &[Place]) -> Result<Vec<Option<Transaction>>, QueryError> {
        self.transactions.fetch_add(places.len(), Ordering::SeqCst);
        self.own.transactions(places)
    }
}

struct Fixture {
    world: World,
    told: Arc<Told>,
    front: Front,
    _feed: Feed,
}

impl Fixture {
    fn new(seed: u64) -> Fixture {
        let mut world = World::new(seed, FULL);
        let shape = Shape { txs: 4, fresh_percent: 20, fan_percent: 30, has_witness: true };
        grow(&mut world, seed, shape, 130);
        let store = Arc::new(MemoryStore::default());
        let _writer = index_writer(&world, &store);
        let (engine, ..) = world.parts();
        let told = Told {
            own: NodeChain::new(&engine),
            false_undo: Mutex::default(),
            undos: AtomicUsize::new(0),
            transactions: AtomicUsize::new(0),
        };
        let told = Arc::new(told);
        let feed = Feed::start_on(&world, None, Arc::clone(&told) as Arc<dyn Chain>);
        let link = Link::new();
        link.lead_to(Some(feed.address()));
        let (front, _) = start_front(&world, &Settings { store: &store, links: &[&link], clock });
        let front = front.unwrap();
        assert!(is_settled(&front.source().query, &world));
        Fixture { world, told, front, _feed: feed }
    }

    /// The blocks with transactions besides the coinbase.
    fn blocks(&self) -> Vec<&Block> {
        let blocks: Vec<&Block> = self.world.chain.iter().filter(|block| block.tx_count() > 1).collect();
        assert!(blocks.len() > 8, "{}", blocks.len());
        blocks
    }

    /// The front end's details of each transaction of a block are those of the node. Returns how many blocks' undo data
    /// and how many transactions the node was asked for.
    fn compare(&self, block: &Block) -> (usize, usize) {
        let query = self.front.source().query;
        let counts = || [&self.told.undos, &self.told.transactions].map(|count| count.load(Ordering::SeqCst));
        let before = counts();
        for tx in block.txs().skip(1) {
            let [found, own] = [&*query, self.world.query()].map(|of| of.detailed(&tx.txid()).unwrap());
            assert_eq!(found.spent, own.spent, "{}", tx.txid());
            assert!(found.spent.iter().all(Option::is_some));
        }
        let after = counts();
        (after[0] - before[0], after[1] - before[1])
    }
}

/// Each transaction is read, and none that it spends from.
#[test]
fn undo_data_are_read_once() {
    let fixture = Fixture::new(61);
    for block in fixture.blocks() {
        assert_eq!(fixture.compare(block), (1, block.tx_count() - 1));
        assert_eq!(fixture.compare(block), (0, block.tx_count() - 1));
    }
    assert_eq!(fixture.front.figures().nodes[0].failures, 0);
}

/// Those of another block are not used if they show it: another number of transactions, if the block's is known, or of
/// the inputs of one.
#[test]
fn undo_data_of_another_block_are_not_used() {
    let fixture = Fixture::new(62);
    let blocks = fixture.blocks();
    let inputs = |block: &Block| -> Vec<usize> { block.txs().skip(1).map(|tx| tx.input_count()).collect() };
    let query = fixture.front.source().query;
    let (mut shorter, mut other) = (0, 0);
    for (number, block) in blocks.iter().enumerate() {
        let own = inputs(block);
        // Whatever the block, all of its transactions have other numbers of inputs there.
        let is_false = |of: &&&Block| inputs(of).iter().zip(&own).all(|(found, own)| found != own);
        let Some(of) = blocks.iter().find(is_false) else { continue };
        fixture.told.false_undo.lock().unwrap().insert(block.hash(), of.hash());
        if number % 2 == 0 {
            // The txids of the block are known from now on.
            let height = fixture.world.chain.iter().position(|one| one.hash() == block.hash()).unwrap();
            query.merkle_at(u32::try_from(height).unwrap(), 0).unwrap();
        }
        let (asked, read) = fixture.compare(block);
        assert!(asked > 0 && read > block.tx_count() - 1, "they are looked up: {asked}, {read}");
        if inputs(of).len() == own.len() { other += 1 } else { shorter += 1 }
    }
    assert!(shorter > 0 && other > 0, "{shorter}, {other}");
}
