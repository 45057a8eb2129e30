//! Two nodes whose chains differ: one writes the index, the front end follows the other one, which is behind, on
//! another branch, or silent. Answers are those of one block that the index and a node both had, and never an error.

use crate::compare::{Asked, Extent};
use crate::details::compare_pages;
use crate::draft::{Maker, Shape};
use crate::link::Link;
use crate::memory::MemoryStore;
use crate::node::{Events, Feed, Settings, clock, index_writer, is_settled, start_front, until, write_index};
use crate::world::{FULL, World};
use lydian_front::timing::APART_MAX;
use lydian_front::{Front, Health};
use lydian_index::ScriptHash;
use lydian_primitives::{Block, Transaction, Txid};
use lydian_query::{PoolScript, Query, QueryError};
use lydian_shared_index::Writer;
use lydian_stdx::SplitMix64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const TRUNK: usize = 106;

const ALL: Extent = Extent { scripts: 1, txids: 1 };

/// The time that each test adds to its clock, in milliseconds. The clock stands until then: a node stays on another
/// block for as long as the test takes.
static LATER: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn later<const TEST: usize>() -> Duration {
    match LATER[TEST].load(Ordering::SeqCst) {
        0 => Duration::ZERO,
        millis => clock() + Duration::from_millis(millis),
    }
}

/// The front end names the other node first.
struct Pair {
    writing: World,
    other: World,
    maker: Maker,
    asked: Asked,
    store: Arc<MemoryStore>,
    writer: Writer,
    links: [Link; 2],
    feeds: [Feed; 2],
    front: Front,
    events: Arc<Events>,
}

const OTHER: usize = 0;
const WRITING: usize = 1;

impl Pair {
    fn new(seed: u64, clock: fn() -> Duration) -> Pair {
        let mut worlds = [World::new(seed, FULL), World::new(seed, FULL)];
        let shape = Shape { txs: 3, fresh_percent: 20, fan_percent: 0, has_witness: true };
        let mut maker = Maker::new(seed, shape, worlds[0].params.clone());
        for _ in 0..TRUNK {
            let block = maker.block(&worlds[0].chain, &[], 0);
            worlds.iter_mut().for_each(|world| world.connect(block.clone()));
        }
        let [writing, other] = worlds;
        let store = Arc::new(MemoryStore::default());
        let writer = index_writer(&writing, &store);
        let (links, feeds) = ([Link::new(), Link::new()], [Feed::start(&other), Feed::start(&writing)]);
        links.iter().zip(&feeds).for_each(|(link, feed)| link.lead_to(Some(feed.address())));
        let (front, events) = start_front(&writing, &Settings { store: &store, links: &links.each_ref(), clock });
        let (front, asked) = (front.unwrap(), Asked::new(seed));
        let mut pair = Pair { writing, other, maker, asked, store, writer, links, feeds, front, events };
        pair.submit(8);
        assert!(pair.front.figures().nodes[OTHER].is_followed);
        pair.settle();
        pair
    }

    /// Both nodes get the same transactions.
    fn submit(&mut self, count: usize) {
        let before = self.writing.pool.len();
        while self.writing.pool.len() < before + count {
            let Some(tx) = self.maker.unconfirmed(&self.writing.chain, &self.writing.pool) else { continue };
            let same = Transaction::parse(tx.as_bytes().to_vec()).unwrap();
            let taken = [self.writing.submit(tx), self.other.submit(same)];
            assert_eq!(taken[0], taken[1]);
        }
    }

    fn query(&self) -> Arc<Query> {
        self.front.source().query
    }

    /// A block on the chain of the writing node.
    fn next_block(&mut self) -> Block {
        self.maker.block(&self.writing.chain, &self.writing.pool, 60)
    }

    /// The front end has what both nodes have.
    fn settle(&mut self) {
        let query = self.query();
        until("the front end has what the nodes have", || is_settled(&query, &self.writing));
        assert_eq!(self.writing.tip_hash(), self.other.tip_hash());
        self.compare(WRITING);
    }

    /// The commit row was read, and what was found was judged.
    fn row_is_read(&self) {
        let before = self.store.commits.load(Ordering::SeqCst);
        until("the row is read", || self.store.commits.load(Ordering::SeqCst) > before + 2);
    }

    /// Every answer is that of this node.
    fn compare(&mut self, node: usize) {
        let (query, world) = (self.query(), if node == OTHER { &self.other } else { &self.writing });
        self.asked.compare_elsewhere(&query, world, ALL);
        for script in &self.asked.scripts {
            let script = ScriptHash::of(script);
            assert_eq!(query.status(&script), world.query().status(&script));
        }
    }

    fn followed(&self) -> Option<usize> {
        self.front.figures().nodes.iter().position(|node| node.is_followed)
    }

    /// The node that is followed stays on another block than the row for longer than it may.
    fn leave_other(&self, test: usize) {
        let time = APART_MAX + Duration::from_secs(1);
        LATER[test].store(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
        until("the writing node is followed", || self.followed() == Some(WRITING));
        assert!(self.events.has("the node stays on another block than the index"), "{:?}", self.events);
    }
}

/// All nodes are silent, and the index takes a block before that is noticed. It was an error for a minute.
#[test]
fn a_block_that_comes_when_all_nodes_are_silent_waits() {
    let mut pair = Pair::new(51, clock);
    let query = pair.query();
    let scripts: Vec<ScriptHash> = pair.asked.scripts.iter().map(|script| ScriptHash::of(script)).collect();
    let answers = || -> Vec<_> {
        scripts.iter().map(|script| Ok::<_, QueryError>((query.status(script)?, query.balance(script)?))).collect()
    };
    let before = answers();
    assert!(before.iter().all(Result::is_ok));
    let block = pair.next_block();
    pair.links.iter().for_each(|link| link.set_silent(true));
    pair.writing.connect(block.clone());
    write_index(&mut pair.writer, &pair.writing);
    pair.other.connect(block);
    pair.row_is_read();
    assert_eq!(pair.followed(), Some(OTHER), "the silence is not noticed yet");
    until("the silence is noticed", || {
        assert_eq!(answers(), before);
        matches!(pair.front.health(), Health::Stale { .. })
    });
    assert_eq!(query.chain().tip().unwrap().height.0, 106);
    // And after it.
    assert_eq!(answers(), before);
    pair.links.iter().for_each(|link| link.set_silent(false));
    pair.settle();
    until("it is fresh", || pair.front.health() == Health::Fresh { height: 107 });
}

#[test]
fn a_node_that_is_behind_is_waited_for_and_then_left() {
    let mut pair = Pair::new(52, later::<0>);
    let block = pair.next_block();
    pair.writing.connect(block.clone());
    write_index(&mut pair.writer, &pair.writing);
    pair.row_is_read();
    pair.compare(OTHER);
    assert_eq!(pair.query().chain().tip().unwrap().hash, pair.other.tip_hash());
    pair.other.connect(block);
    pair.settle();
    assert_eq!(pair.followed(), Some(OTHER));
    // Now it stays behind.
    let block = pair.next_block();
    pair.writing.connect(block.clone());
    write_index(&mut pair.writer, &pair.writing);
    pair.row_is_read();
    pair.compare(OTHER);
    // It says so after 3 seconds, which may be over by now.
    let health = pair.front.health();
    assert!(matches!(health, Health::Fresh { height: 107 } | Health::Stale { .. }), "{health:?}");
    pair.leave_other(0);
    let query = pair.query();
    until("the front end has the block", || is_settled(&query, &pair.writing));
    pair.compare(WRITING);
    // One that has nothing but the node behind: headers near the tip are those that the node has.
    let settings = Settings { store: &pair.store, links: &[&pair.links[OTHER]], clock };
    let late = start_front(&pair.writing, &settings).0.unwrap();
    let query = late.source().query;
    assert_eq!(query.chain().tip().unwrap().hash, pair.writing.tip_hash());
    for height in [97, 105, 107] {
        assert_eq!(query.header(height), Ok(*pair.writing.chain[height as usize].header()));
    }
    pair.other.connect(block);
    pair.settle();
}

/// The writing node leaves some blocks for a longer branch, which the followed node does not know.
#[test]
fn a_node_on_the_branch_that_the_index_has_left_is_left() {
    let mut pair = Pair::new(53, later::<1>);
    for _ in 0..2 {
        let block = pair.next_block();
        pair.writing.connect(block.clone());
        pair.other.connect(block);
        write_index(&mut pair.writer, &pair.writing);
    }
    pair.submit(3);
    pair.settle();
    let fork = pair.writing.chain.len() - 3;
    let (mut chain, mut branch) = (pair.writing.chain[..=fork].to_vec(), Vec::new());
    let left = pair.writing.chain[fork + 1..].iter().flat_map(|block| block.txs().skip(1));
    let mut pool: Vec<Arc<Transaction>> = left.map(|tx| Arc::new(Transaction::parse(tx.bytes()).unwrap())).collect();
    for _ in 0..3 {
        let block = pair.maker.block(&chain, &pool, 50);
        pool.retain(|tx| block.txs().all(|mined| mined.txid() != tx.view().txid()));
        chain.push(block.clone());
        branch.push(block);
    }
    pair.writing.branch(fork, branch.clone());
    write_index(&mut pair.writer, &pair.writing);
    pair.row_is_read();
    assert_ne!(pair.writing.tip_hash(), pair.other.tip_hash());
    // The index stays with the node; a block of its branch is found, too.
    pair.compare(OTHER);
    pair.leave_other(1);
    let query = pair.query();
    until("the front end has the branch", || is_settled(&query, &pair.writing));
    pair.compare(WRITING);
    // The other node comes after.
    pair.other.branch(fork, branch);
    pair.settle();
    pair.links[WRITING].lead_to(None);
    until("the other node is followed", || pair.followed() == Some(OTHER));
    pair.compare(OTHER);
    pair.links[WRITING].lead_to(Some(pair.feeds[WRITING].address()));
}

/// Both nodes leave three blocks, and the writer of the index is late: each block comes from a node that answers.
#[test]
fn blocks_that_both_nodes_have_left_come_from_the_one_that_answers() {
    let mut pair = Pair::new(55, clock);
    for _ in 0..3 {
        let block = pair.next_block();
        pair.writing.connect(block.clone());
        pair.other.connect(block);
        write_index(&mut pair.writer, &pair.writing);
    }
    pair.settle();
    let old = pair.writing.chain.clone();
    let fork = old.len() - 4;
    let (mut chain, mut branch) = (old[..=fork].to_vec(), Vec::new());
    for _ in 0..4 {
        let block = pair.maker.block(&chain, &[], 0);
        chain.push(block.clone());
        branch.push(block);
    }
    pair.other.branch(fork, branch.clone());
    pair.writing.branch(fork, branch);
    let query = pair.query();
    let last = |height: usize| old[height].txs().last().unwrap();
    let transaction = |height: usize| query.transaction(&last(height).txid());
    // The followed one fails, the other one, and then both: nothing is made up.
    for (height, broken) in (fork + 1..).zip([&[OTHER][..], &[WRITING], &[OTHER, WRITING]]) {
        broken.iter().for_each(|node| pair.links[*node].cut_answers_at(1));
        if broken.len() == 2 {
            let error = transaction(height).unwrap_err().to_string();
            assert!(error.starts_with("no node answers, try again: "), "{error}");
        } else {
            assert_eq!(
                transaction(height).unwrap().as_bytes(),
                last(height).bytes(),
                "from another node than {broken:?}"
            );
            assert_eq!(query.header(u32::try_from(height).unwrap()), Ok(*old[height].header()));
        }
        broken.iter().for_each(|node| pair.links[*node].cut_answers_at(0));
        assert_eq!(transaction(height).unwrap().as_bytes(), last(height).bytes());
    }
    assert!(pair.links.iter().all(|link| link.cuts() > 0));
    write_index(&mut pair.writer, &pair.writing);
    pair.settle();
}

/// The rows of a script in the mempool, as they come.
fn of_script(query: &Query, script: &ScriptHash) -> PoolScript {
    query.pool().of_script(script).unwrap()
}

/// Nothing sorts what the mempool has of a script: pages of transactions begin with the one that came last.
#[test]
fn rows_of_the_mempool_are_in_the_order_of_the_node() {
    let mut pair = Pair::new(54, clock);
    let mut random = SplitMix64::new(54);
    let mut longest = 0;
    for round in 0..6 {
        pair.submit(6);
        if round % 2 == 1 {
            let block = pair.next_block();
            pair.writing.connect(block.clone());
            pair.other.connect(block);
            write_index(&mut pair.writer, &pair.writing);
        }
        pair.settle();
        if round == 3 {
            // From the snapshot of the other one from now on, which has the same order.
            pair.links[OTHER].lead_to(None);
            until("the writing node is followed", || pair.followed() == Some(WRITING));
            pair.settle();
        }
        let (query, model) = (pair.query(), pair.writing.model());
        for script in &pair.asked.scripts {
            let hash = ScriptHash::of(script);
            let found = of_script(&query, &hash);
            longest = longest.max(found.transactions.len());
            assert_eq!(found, of_script(pair.writing.query(), &hash), "of script {script:02x?}");
            compare_pages(&query, &model, script, &mut random);
        }
        let recent: Vec<Txid> = query.pool().recent(usize::MAX).iter().map(|row| row.txid).collect();
        let of_node = pair.writing.query().pool().recent(usize::MAX);
        assert_eq!(recent, of_node.iter().map(|row| row.txid).collect::<Vec<_>>());
    }
    assert!(longest > 2, "no script has several transactions: {longest}");
}
