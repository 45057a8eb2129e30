//! A front end in the process of the test: its index is in a store in memory, its nodes are programs. The index that
//! the store gets is made here, of the blocks of the first node; what a node and a front end do beside it is theirs.

use crate::front_nodes::{Node, coinbase, copy_blocks};
use crate::front_wallets::{Stage, tell};
use crate::indexes::mine;
use crate::memory::MemoryStore;
use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_electrum::{Clock, Identity, Live, Server, Settings};
use lydian_engine::{Engine, Layout, Settings as EngineSettings, Unobserved};
use lydian_front::{Front, FrontEvent, FrontLog, FrontSettings};
use lydian_index::{Profile, TxIndex};
use lydian_primitives::{BlockHash, OutPoint, RawBlock, hex};
use lydian_serve::{Event, Log};
use lydian_shared_index::{Step, Writer, WriterId};
use lydian_stdx::Current;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Blocks before the story: 40 coinbases can be spent.
const BLOCKS: u32 = 140;

/// Later than every block.
const NOW: i64 = 4_000_000_000;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn clock() -> Duration {
    START.elapsed()
}

/// The index of a node's chain, and the writer that keeps it in the store.
struct Index {
    engine: Arc<Engine>,
    writer: Writer,
}

impl Index {
    fn new(params: Params, store: &Arc<MemoryStore>) -> Index {
        let disk = Arc::new(SimDisk::new(22));
        let profile = Profile { has_scripts: true, has_txids: false };
        let (index, reader) =
            TxIndex::open(disk.clone(), Path::new("tables"), params.genesis_hash, profile, || [5, 6]).unwrap();
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let engine = Engine::open(disk, &layout, params, EngineSettings::new(2), vec![Box::new(index)]).unwrap();
        let writer = Writer::open(Arc::clone(store) as Arc<_>, Box::new(reader), WriterId([1; 16])).unwrap();
        Index { engine: Arc::new(engine.engine), writer }
    }

    /// Takes the blocks of the node's chain that it lacks, and writes what they change.
    fn follow(&mut self, node: &Node) {
        let mut lacking = Vec::new();
        let mut hash: BlockHash = node.server.result("getbestblockhash", "[]").as_str().unwrap().parse().unwrap();
        while self.engine.header_info(&hash).is_none() {
            let raw = node.server.result("getblock", &json!([hash.to_string(), 0]).to_string());
            let block = RawBlock::new(hex(raw.as_str().unwrap()).unwrap()).parse().unwrap();
            hash = block.header().prev_block;
            lacking.push(block);
        }
        for block in lacking.into_iter().rev() {
            self.engine.accept_block(block, NOW, &Unobserved).unwrap().unwrap();
        }
        self.engine.finish_catch_up();
        while !matches!(self.writer.step(0).unwrap(), Step::Idle) {}
    }
}

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn event(&self, _: &Event<'_>) {}
}

impl FrontLog for Silent {
    fn event(&self, _: &FrontEvent) {}
}

/// The clock of the server. Answers cost what they cost without the time of the processor.
#[derive(Debug)]
struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> Duration {
        clock()
    }

    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// The store is not named: it goes when the front end and the writer do.
struct InMemory {
    // Declared, and so dropped, before what they use.
    server: Server,
    front: Front,
    index: Index,
    nodes: [Node; 2],
    coins: Vec<OutPoint>,
}

impl InMemory {
    fn new(name: &str) -> InMemory {
        let nodes = [(); 2].map(|()| Node::start(name, &[]));
        mine(&nodes[0].server, BLOCKS, 1);
        copy_blocks(&nodes[0], &nodes[1]);
        let coins = (1..=u64::from(BLOCKS - 100)).map(|height| coinbase(&nodes[0], height)).collect();
        let params = Params::new(Chain::Regtest);
        let genesis = params.genesis_hash;
        let store = Arc::new(MemoryStore::default());
        let mut index = Index::new(params, &store);
        index.follow(&nodes[0]);
        let settings = FrontSettings {
            store,
            nodes: nodes.iter().map(|node| format!("127.0.0.1:{}", node.feed).parse().unwrap()).collect(),
            token: None,
            roots: None,
            genesis,
            filter_bytes: 1 << 20,
            clock,
        };
        let front = Front::start(settings, Arc::new(Silent)).unwrap();
        let settings = Settings {
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            tls: None,
            allowed: Vec::new(),
            proxies: Vec::new(),
            identity: Identity { name: "test".to_owned(), genesis, chain: Chain::Regtest },
            live: Current::new(Live::default()),
            clock: Arc::new(TestClock),
            origin: None,
        };
        let server = Server::start(front.source(), settings, Arc::new(Silent), |_| {}).unwrap();
        InMemory { server, front, index, nodes, coins }
    }
}

impl Stage for InMemory {
    fn electrum(&self) -> u16 {
        self.server.addresses()[0].port()
    }

    fn nodes(&mut self) -> &mut [Node; 2] {
        &mut self.nodes
    }

    fn coin(&mut self) -> OutPoint {
        self.coins.remove(0)
    }

    fn followed(&self) -> Option<usize> {
        self.front.figures().nodes.iter().position(|node| node.is_followed)
    }

    fn work(&mut self) {
        if self.nodes[0].server.is_running() {
            self.index.follow(&self.nodes[0]);
        }
    }
}

#[test]
fn wallets_on_a_front_end_follow_blocks_and_nodes() {
    tell(&mut InMemory::new("wallets_on_a_front_end_follow_blocks_and_nodes"));
}
