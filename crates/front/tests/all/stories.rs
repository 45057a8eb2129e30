//! Random stories of two nodes and a front end: every answer of the front end is that of the model, and its mempool is
//! that of the node. Blocks come to the store before the node announces them or after, nodes are left and come back,
//! and start again with an empty mempool.

use crate::compare::{Asked, Extent};
use crate::draft::{Maker, Shape};
use crate::faults::grow;
use crate::link::Link;
use crate::memory::MemoryStore;
use crate::node::{Events, Feed, Settings, clock, index_writer, is_settled, start_front, until, write_index};
use crate::world::{COMPACT, FULL, World};
use lydian_front::{Front, Health};
use lydian_index::ScriptHash;
use lydian_primitives::{Block, Transaction, Txid};
use lydian_query::{FeeRow, PoolScript, PoolTouched, Query, Touched};
use lydian_shared_index::Writer;
use lydian_stdx::SplitMix64;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

const SEEDS: [u64; 2] = [41, 42];
const STEPS: usize = 24;
const TRUNK: usize = 106;

/// Every fourth script and transaction in each step; all at the end.
const SOME: Extent = Extent { scripts: 4, txids: 7 };
const ALL: Extent = Extent { scripts: 1, txids: 1 };

struct Story {
    world: World,
    maker: Maker,
    asked: Asked,
    store: Arc<MemoryStore>,
    writer: Writer,
    links: [Link; 2],
    feeds: Vec<Feed>,
    front: Front,
    events: Arc<Events>,
    left: Vec<Block>,
    counts: BTreeMap<&'static str, usize>,
}

fn of_script(query: &Query, script: &ScriptHash) -> PoolScript {
    let mut found = query.pool().of_script(script).unwrap();
    found.transactions.sort_by_key(|(row, ..)| row.txid);
    found
}

impl Story {
    fn new(seed: u64) -> Story {
        let mut random = SplitMix64::new(seed);
        let shape = Shape { txs: 3, fresh_percent: 20, fan_percent: 0, has_witness: random.below(2) == 0 };
        let mut world = World::new(seed, if seed.is_multiple_of(2) { FULL } else { COMPACT });
        let maker = grow(&mut world, random.next_u64(), shape, TRUNK);
        let asked = Asked::new(random.next_u64());
        let store = Arc::new(MemoryStore::default());
        let writer = index_writer(&world, &store);
        let links = [Link::new(), Link::new()];
        let feeds: Vec<Feed> = links.iter().map(|_| Feed::start(&world)).collect();
        links.iter().zip(&feeds).for_each(|(link, feed)| link.lead_to(Some(feed.address())));
        let settings = Settings { store: &store, links: &links.each_ref(), clock };
        let (front, events) = start_front(&world, &settings);
        let (left, counts) = (Vec::new(), BTreeMap::new());
        Story { world, maker, asked, store, writer, links, feeds, front: front.unwrap(), events, left, counts }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn followed(&self) -> Option<usize> {
        self.front.figures().nodes.iter().position(|node| node.is_followed)
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let block = self.maker.block(&self.world.chain, &self.world.pool, 60);
            self.world.connect(block);
        }
    }

    fn branch(&mut self, depth: usize, count: usize) {
        let fork = self.world.chain.len() - 1 - depth;
        let mut chain = self.world.chain[..=fork].to_vec();
        let left = self.world.chain[fork + 1..].iter().flat_map(|block| block.txs().skip(1));
        let mut pool: Vec<Arc<Transaction>> =
            left.map(|tx| Arc::new(Transaction::parse(tx.bytes()).unwrap())).collect();
        pool.extend(self.world.pool.iter().cloned());
        let mut blocks = Vec::new();
        for _ in 0..count {
            let block = self.maker.block(&chain, &pool, 50);
            pool.retain(|tx| block.txs().all(|mined| mined.txid() != tx.view().txid()));
            chain.push(block.clone());
            blocks.push(block);
        }
        self.world.branch(fork, blocks);
    }

    fn submit(&mut self) {
        for _ in 0..1 + self.maker.below(8) {
            if let Some(tx) = self.maker.unconfirmed(&self.world.chain, &self.world.pool) {
                self.world.submit(tx);
            }
        }
    }

    /// The node that is followed goes away, and comes back later. Nothing else happens.
    fn change_node(&mut self) {
        let query = self.front.source().query;
        assert_eq!(query.pool().take_touched().unwrap(), PoolTouched::These(Touched::default()));
        until("a node is followed", || self.followed().is_some());
        let followed = self.followed().unwrap();
        self.links[followed].lead_to(None);
        until("another node is followed", || self.followed().is_some_and(|now| now != followed));
        assert!(is_settled(&query, &self.world));
        assert_eq!(query.pool().take_touched().unwrap(), PoolTouched::These(Touched::default()));
        self.links[followed].lead_to(Some(self.feeds[followed].address()));
        self.count("node changed");
    }

    /// Both nodes stop, and start with an empty mempool.
    fn restart(&mut self) {
        self.links.iter().for_each(|link| link.lead_to(None));
        self.feeds.clear();
        self.world.restart(false);
        self.writer = index_writer(&self.world, &self.store);
        self.feeds = self.links.iter().map(|_| Feed::start(&self.world)).collect();
        self.links.iter().zip(&self.feeds).for_each(|(link, feed)| link.lead_to(Some(feed.address())));
        self.count("restarted");
    }

    fn step(&mut self) {
        let tip = self.world.tip_hash();
        match self.maker.below(100) {
            0..=34 => self.submit(),
            35..=54 => {
                let count = 1 + self.maker.below(2);
                self.grow(count);
            }
            55..=69 => {
                let depth = 1 + self.maker.below(6);
                let count = depth + self.maker.below(3);
                self.branch(depth, count);
            }
            70..=77 if self.left.is_empty() => {
                let height = self.world.chain.len() - 1 - self.maker.below(3);
                self.left = self.world.invalidate(height);
            }
            70..=77 => {
                let blocks = std::mem::take(&mut self.left);
                if blocks[0].header().prev_block == self.world.tip_hash() {
                    self.world.reconsider(blocks);
                }
            }
            78..=89 => self.change_node(),
            _ => {
                self.restart();
                self.left.clear();
            }
        }
        let query = self.front.source().query;
        if self.world.tip_hash() != tip && self.maker.chance(50) {
            // The index does not have the block: chain and mempool stay on the one before.
            sleep(Duration::from_millis(60));
            assert_eq!(query.pool_tip().unwrap().unwrap().hash, tip);
            assert_eq!(query.chain().tip().unwrap().hash, tip);
            self.count("held back");
        }
        write_index(&mut self.writer, &self.world);
        until("the front end has what the node has", || is_settled(&query, &self.world));
    }

    fn compare(&mut self, extent: Extent) {
        let query = self.front.source().query;
        self.compare_pool(&query);
        self.asked.compare_elsewhere(&query, &self.world, extent);
        assert!(matches!(self.front.health(), Health::Fresh { .. } | Health::Stale { .. }));
    }

    fn compare_pool(&self, query: &Query) {
        let own = self.world.query();
        for script in &self.asked.scripts {
            let hash = ScriptHash::of(script);
            assert_eq!(of_script(query, &hash), of_script(own, &hash), "of script {script:02x?}");
        }
        let (pool, of_node) = (query.pool(), own.pool());
        assert_eq!((pool.totals(), pool.fees()), (of_node.totals(), of_node.fees()));
        assert_eq!((pool.txids(), pool.chunks()), (of_node.txids(), of_node.chunks()));
        for target in [1, 6, 1_008] {
            assert_eq!(pool.estimate(target, true), of_node.estimate(target, true));
        }
        for count in [0, 3, usize::MAX] {
            // Of transactions that came back from a block, none is newer than another.
            let numbers =
                |rows: Vec<FeeRow>| -> Vec<u64> { rows.iter().map(|row| self.world.sequence(&row.txid)).collect() };
            assert_eq!(numbers(pool.recent(count)), numbers(of_node.recent(count)));
        }
        assert!(pool.transaction(&Txid([9; 32])).is_none());
    }
}

fn tell(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut story = Story::new(seed);
    story.compare(ALL);
    for _ in 0..STEPS {
        story.step();
        story.compare(SOME);
    }
    story.change_node();
    story.compare(ALL);
    assert!(!story.events.has("do not fit"), "{:?}", story.events);
    let mut counts = story.counts;
    for what in ["reorganised", "replaced", "mined from the mempool"] {
        *counts.entry(what).or_default() +=
            story.world.counts.get(what).map_or(0, |count| usize::try_from(*count).unwrap());
    }
    counts
}

#[test]
fn a_front_end_answers_as_its_node() {
    let seeds = match std::env::var("LYDIAN_FRONT_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => SEEDS.to_vec(),
    };
    let is_all = seeds.len() > 1;
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in seeds {
        eprintln!("LYDIAN_FRONT_SEED={seed}");
        for (what, count) in tell(seed) {
            *counts.entry(what).or_default() += count;
        }
    }
    eprintln!("{counts:?}");
    for what in ["held back", "node changed", "restarted", "reorganised", "replaced", "mined from the mempool"] {
        assert!(!is_all || counts.get(what).is_some_and(|count| *count > 0), "no story has {what}: {counts:?}");
    }
}
