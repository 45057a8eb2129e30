//! A node with its feed and its writer, and a front end on it.

use crate::link::Link;
use crate::memory::MemoryStore;
use crate::world::World;
use lydian_front::server::{FeedServer, FeedSettings, FeedSource};
use lydian_front::{Front, FrontError, FrontEvent, FrontLog, FrontSettings, NodeAddress};
use lydian_mempool::Mempool;
use lydian_primitives::{Transaction, Txid};
use lydian_query::{CallError, Calls, Chain, NodeChain, NodePool, Query};
use lydian_serve::{Event, Log, TlsIdentity};
use lydian_shared_index::{EngineBlocks, Step, Writer, WriterId};
use lydian_stdx::Current;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const TOKEN: &str = "0123456789abcdef";

#[allow(clippy::disallowed_methods, reason = "a test has a real clock")]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub fn clock() -> Duration {
    START.elapsed()
}

/// Waits for what must happen.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = clock();
    while !is_so() {
        assert!(clock().saturating_sub(start) < Duration::from_secs(60), "not within a minute: {what}");
        sleep(Duration::from_millis(2));
    }
}

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn event(&self, _: &Event<'_>) {}
}

/// The methods of a node that the tests need.
#[derive(Debug)]
pub struct NodeCalls {
    mempool: Arc<Mempool>,
    pub count: AtomicUsize,
    /// Refuses what is broadcast.
    pub refuses: AtomicBool,
}

impl Calls for NodeCalls {
    fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        self.count.fetch_add(1, Ordering::SeqCst);
        if method != "sendrawtransaction" || self.refuses.load(Ordering::SeqCst) {
            return Err(CallError { code: -26, message: format!("{method} is refused") });
        }
        let hex = params.trim_matches(['[', ']', '"']);
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        let tx = Transaction::parse(bytes).unwrap();
        let txid = tx.view().txid();
        match self.mempool.submit(Arc::new(tx), false) {
            Ok(_) => Ok(format!("\"{txid}\"")),
            // The other way to the same mempool was faster.
            Err(_) if self.mempool.snapshot().get(&txid).is_some() => Ok(format!("\"{txid}\"")),
            Err(error) => Err(CallError { code: -26, message: error.to_string() }),
        }
    }
}

/// A feed of a world.
#[derive(Debug)]
pub struct Feed {
    pub server: FeedServer,
    pub calls: Arc<NodeCalls>,
}

impl Feed {
    pub fn start(world: &World) -> Feed {
        Feed::start_with(world, None)
    }

    pub fn start_with(world: &World, tls: Option<Current<TlsIdentity>>) -> Feed {
        let (engine, ..) = world.parts();
        Feed::start_on(world, tls, Arc::new(NodeChain::new(&engine)))
    }

    /// With answers about the chain from elsewhere.
    pub fn start_on(world: &World, tls: Option<Current<TlsIdentity>>, chain: Arc<dyn Chain>) -> Feed {
        let (engine, mempool, _) = world.parts();
        let (count, refuses) = (AtomicUsize::new(0), AtomicBool::new(false));
        let calls = Arc::new(NodeCalls { mempool: Arc::clone(&mempool), count, refuses });
        let source = FeedSource {
            chain,
            pool: Arc::new(NodePool::new(&mempool, &engine)),
            engine,
            mempool,
            calls: Arc::clone(&calls) as Arc<dyn Calls>,
            genesis: world.params.genesis_hash,
        };
        let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let token = Some(TOKEN.to_owned());
        let settings = FeedSettings { addresses, allowed: Vec::new(), tls, token };
        Feed { server: FeedServer::start(source, settings, Arc::new(Silent)).unwrap(), calls }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }
}

#[derive(Debug, Default)]
pub struct Events(pub Mutex<Vec<FrontEvent>>);

impl FrontLog for Events {
    fn event(&self, event: &FrontEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Events {
    pub fn has(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|event| event.to_string().contains(text))
    }
}

/// Brings the store to what the index has. A new writer takes over from the one before.
/// Writes the index of a world to a store, which follows it down too.
pub fn index_writer(world: &World, store: &Arc<MemoryStore>) -> Writer {
    let (_, _, reader) = world.parts();
    let mut writer = Writer::open(Arc::clone(store) as Arc<_>, Box::new(reader), WriterId([1; 16])).unwrap();
    write_index(&mut writer, world);
    writer
}

/// The same for a store that gets the blocks too.
pub fn blocks_writer(world: &World, store: &Arc<MemoryStore>) -> Writer {
    let (engine, _, reader) = world.parts();
    let writer = Writer::open(Arc::clone(store) as Arc<_>, Box::new(reader), WriterId([2; 16])).unwrap();
    let mut writer = writer.with_blocks(Box::new(EngineBlocks::new(&engine)));
    write_index(&mut writer, world);
    writer
}

/// Writes until the store has all that the index of the world has.
pub fn write_index(writer: &mut Writer, world: &World) {
    let (_, _, reader) = world.parts();
    until("the index is written", || {
        let step = writer.step(0).unwrap();
        assert!(!matches!(step, Step::Waits(_)), "{step:?}");
        let tip = reader.tip().map(|tip| (tip.height.0, tip.hash));
        step == Step::Idle && writer.tip() == tip
    });
}

pub struct Settings<'a> {
    pub store: &'a Arc<MemoryStore>,
    pub links: &'a [&'a Link],
    pub clock: fn() -> Duration,
}

pub fn start_front(world: &World, settings: &Settings<'_>) -> (Result<Front, FrontError>, Arc<Events>) {
    let nodes = settings.links.iter().map(|link| link.address().parse::<NodeAddress>().unwrap()).collect();
    start_front_on(world, settings, nodes, None)
}

pub fn start_front_on(
    world: &World,
    settings: &Settings<'_>,
    nodes: Vec<NodeAddress>,
    roots: Option<Vec<u8>>,
) -> (Result<Front, FrontError>, Arc<Events>) {
    let events = Arc::new(Events::default());
    let settings = FrontSettings {
        store: Arc::clone(settings.store) as Arc<_>,
        nodes,
        token: Some(TOKEN.to_owned()),
        roots,
        genesis: world.params.genesis_hash,
        filter_bytes: 1 << 20,
        clock: settings.clock,
    };
    (Front::start(settings, Arc::clone(&events) as Arc<_>), events)
}

/// Whether the front end has the world's chain and mempool.
pub fn is_settled(query: &Query, world: &World) -> bool {
    let height = u32::try_from(world.chain.len() - 1).unwrap();
    let is_tip = |tip: lydian_engine::Tip| tip.hash == world.tip_hash() && tip.height.0 == height;
    let members: BTreeSet<Txid> = query.pool().recent(usize::MAX).iter().map(|row| row.txid).collect();
    let expected: BTreeSet<Txid> = world.pool.iter().map(|tx| tx.view().txid()).collect();
    query.chain().tip().is_ok_and(is_tip) && query.pool_tip().unwrap().is_some_and(is_tip) && members == expected
}
