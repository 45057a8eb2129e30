//! Nodes that send garbage, stop in the middle of an answer, are silent, are of another chain, are gone; a store that
//! is gone; and a node that refuses what another one takes.

use crate::draft::{Maker, Shape};
use crate::link::Link;
use crate::memory::MemoryStore;
use crate::node::{
    Feed, Settings, TOKEN, clock, index_writer, is_settled, start_front, start_front_on, until, write_index,
};
use crate::world::{COMPACT, FULL, World};
use lydian_front::limits::SILENCE_MAX;
use lydian_front::message::{FEED_VERSION, Hello, Message};
use lydian_front::timing::{APART_MAX, STALE_MAX};
use lydian_front::wire::encode;
use lydian_front::{Front, FrontError, Health};
use lydian_index::{Profile, ScriptHash};
use lydian_primitives::{BlockHash, Height, Transaction, Txid};
use lydian_query::{Query, QueryError};
use lydian_serve::TlsIdentity;
use lydian_shared_index::Writer;
use lydian_stdx::Current;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A node with its index in a store, and transactions in its mempool.
pub struct Fixture {
    pub world: World,
    pub maker: Maker,
    pub store: Arc<MemoryStore>,
    pub writer: Writer,
}

/// Connects so many blocks of a new maker.
pub fn grow(world: &mut World, seed: u64, shape: Shape, blocks: usize) -> Maker {
    let mut maker = Maker::new(seed, shape, world.params.clone());
    for _ in 0..blocks {
        let block = maker.block(&world.chain, &[], 0);
        world.connect(block);
    }
    maker
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::of_seed(8)
    }

    fn of_seed(seed: u64) -> Fixture {
        Fixture::of(seed, FULL)
    }

    fn of(seed: u64, profile: Profile) -> Fixture {
        let mut world = World::new(7, profile);
        let shape = Shape { txs: 2, fresh_percent: 30, fan_percent: 0, has_witness: false };
        let maker = grow(&mut world, seed, shape, 106);
        let store = Arc::new(MemoryStore::default());
        let writer = index_writer(&world, &store);
        let mut fixture = Fixture { world, maker, store, writer };
        while fixture.world.pool.len() < 3 {
            let tx = fixture.new_tx();
            fixture.world.submit(tx);
        }
        fixture
    }

    fn new_tx(&mut self) -> Transaction {
        loop {
            if let Some(tx) = self.maker.unconfirmed(&self.world.chain, &self.world.pool) {
                return tx;
            }
        }
    }

    /// A link to a feed of this node.
    pub fn feed(&self) -> (Feed, Link) {
        let (feed, link) = (Feed::start(&self.world), Link::new());
        link.lead_to(Some(feed.address()));
        (feed, link)
    }

    pub fn front(&self, links: &[&Link], clock: fn() -> Duration) -> Result<Front, FrontError> {
        start_front(&self.world, &Settings { store: &self.store, links, clock }).0
    }

    fn a_script(&self) -> ScriptHash {
        let tx = self.world.pool[0].view();
        ScriptHash::of(tx.output(0).script_pubkey)
    }
}

/// What a false node answers to everything.
fn false_node(answer: Vec<u8>, stays: bool) -> Link {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || {
                let _ = (stream.read(&mut [0; 4_096]), stream.write_all(&answer));
                while stays && stream.read(&mut [0; 4_096]).is_ok_and(|count| count > 0) {}
            });
        }
    });
    let link = Link::new();
    link.lead_to(Some(address));
    link
}

/// The head of a stream, and these bytes as one piece.
fn stream_of(bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        bytes.len()
    );
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

fn hello(genesis: BlockHash) -> Vec<u8> {
    encode(&Message::Hello(Hello { version: FEED_VERSION, genesis, epoch: 5 }))
}

/// A stream that is silent for longer than the limit is left; at the limit, the real one is followed all the time.
///
/// limit: SILENCE_MAX at
/// limit: SILENCE_MAX above
#[test]
fn nodes_that_are_no_use_are_left_for_one_that_is() {
    let fixture = Fixture::new();
    let genesis = fixture.world.params.genesis_hash;
    let mut version = hello(genesis);
    version[5] = 9;
    let truncated = [hello(genesis), encode(&Message::Reset)[..3].to_vec()].concat();
    let wrong = [
        (Link::new(), "connect"),
        (false_node(b"SSH-2.0-none\r\n".to_vec(), false), "broke"),
        (false_node(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\n\r\nno no".to_vec(), false), "no no (401)"),
        (false_node(stream_of(&[9; 100]), true), "a message of 151587081 bytes is larger"),
        (false_node(stream_of(&version), true), "version 9"),
        (false_node(stream_of(&encode(&Message::Reset)), true), "does not begin with a greeting"),
        (false_node(stream_of(&hello(BlockHash([3; 32]))), true), "the node has the chain with genesis block 0303"),
        (false_node(stream_of(&[hello(genesis), hello(genesis)].concat()), true), "does not belong there"),
        (false_node(stream_of(&truncated), false), "broke"),
        (false_node(stream_of(&hello(genesis)), true), "silent for 3 seconds"),
    ];
    let (_feed, good) = fixture.feed();
    let links: Vec<&Link> = wrong.iter().map(|(link, _)| link).chain([&good]).collect();
    let (front, events) = start_front(&fixture.world, &Settings { store: &fixture.store, links: &links, clock });
    let front = front.unwrap();
    assert!(is_settled(&front.source().query, &fixture.world));
    let figures = front.figures();
    for (node, (link, reason)) in figures.nodes.iter().zip(&wrong) {
        assert_eq!((node.address.as_str(), node.is_followed), (link.address().as_str(), false));
        let found = node.last_failure.as_deref().unwrap_or_default();
        // A link to nothing accepts and ends the connection.
        let is_so = found.contains(reason) || *reason == "connect" && found.contains("broke");
        assert!(is_so, "{found:?} is not {reason:?}");
    }
    assert!(figures.nodes.last().unwrap().is_followed && events.has("following the mempool"));
    assert_eq!((figures.mempool_count, figures.height), (fixture.world.pool.len(), Some(106)));
    assert!(figures.mempool_bytes > 0 && figures.store_reads > 0 && figures.commit_sequence > 0);
    let left = format!("left the feed of {}: ", good.address());
    thread::sleep(SILENCE_MAX);
    assert!(front.figures().nodes.last().unwrap().is_followed && !events.has(&left));
    // The thread that judges it may be late.
    until("it is fresh", || front.health() == Health::Fresh { height: 106 });
}

#[test]
fn a_start_without_any_node_says_why() {
    let fixture = Fixture::new();
    let other = BlockHash([3; 32]);
    let of_chain = false_node(stream_of(&hello(other)), true);
    let denied = false_node(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nwrong token.".to_vec(), false);
    let error = fixture.front(&[&of_chain, &denied], clock).unwrap_err();
    let own = fixture.world.params.genesis_hash;
    assert_eq!(
        error.to_string(),
        format!(
            "no node can be used: {}: the node has the chain with genesis block {other}, not with {own}; {}: wrong \
             token (401)",
            of_chain.address(),
            denied.address()
        )
    );
    let nothing = Link::new();
    let error = fixture.front(&[&nothing], clock).unwrap_err().to_string();
    let expected = format!("no node sent its mempool within 10 seconds: {}: the connection broke", nothing.address());
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(fixture.front(&[], clock).unwrap_err(), FrontError::NoNodes);
    let empty = Settings { store: &Arc::default(), links: &[&nothing], clock };
    let error = start_front(&fixture.world, &empty).0.unwrap_err().to_string();
    assert!(error.starts_with("memory has no index: start a node that writes its index there"), "{error}");
}

#[test]
fn a_question_goes_on_with_the_next_node() {
    let mut fixture = Fixture::new();
    let (feed, first) = fixture.feed();
    let (_other, second) = fixture.feed();
    let front = fixture.front(&[&first, &second], clock).unwrap();
    assert!(front.figures().nodes[0].is_followed);
    let query = front.source().query;
    let answers = |query: &Query, height: u32| {
        let (block, header) = (fixture.world.chain[height as usize].clone(), query.header(height).unwrap());
        assert_eq!(header, *block.header());
        assert_eq!(query.merkle_at(height, 0).unwrap().0, block.tx(0).txid());
        let found = query.chain().block(&block.hash()).unwrap().unwrap();
        assert_eq!(found.as_bytes(), block.as_bytes());
    };
    answers(&query, 5);
    // The first one dies in the middle of each answer, in its head or behind it.
    for (height, bytes) in [(30, 10), (50, 150)] {
        first.cut_answers_at(bytes);
        let cuts = first.cuts();
        answers(&query, height);
        until("the first one was asked", || first.cuts() > cuts);
    }
    first.cut_answers_at(0);
    answers(&query, 70);
    // It hangs.
    first.set_silent(true);
    answers(&query, 90);
    until("the other one is followed", || front.figures().nodes[1].is_followed);
    first.set_silent(false);
    // What is broadcast goes to both, and the one that takes it decides.
    let tx = fixture.new_tx();
    let hex: String = tx.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let calls = front.source().calls;
    feed.calls.refuses.store(true, Ordering::SeqCst);
    let params = format!("[\"{hex}\"]");
    let txid = tx.view().txid();
    let began = clock();
    let send = || assert_eq!(calls.call("sendrawtransaction", &params).unwrap(), format!("\"{txid}\""));
    send();
    // The call waits for it, but not for longer than a moment.
    let is_late = clock() - began >= Duration::from_millis(500);
    assert!(query.pool().transaction(&txid).is_some() || is_late, "the wallet finds its transaction");
    until("the transaction is seen", || query.pool().transaction(&txid).is_some());
    // The first one is not asked for some seconds if its silence was longer than an answer may take.
    let mut sent = 1;
    until("both were asked", || {
        let is_asked = feed.calls.count.load(Ordering::SeqCst) > 0;
        if !is_asked {
            send();
            sent += 1;
        }
        is_asked
    });
    assert!(feed.calls.count.load(Ordering::SeqCst) <= sent);
    _other.calls.refuses.store(true, Ordering::SeqCst);
    let error = calls.call("sendrawtransaction", &params).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-26, "sendrawtransaction is refused"));
    let error = calls.call("stop", "[]").unwrap_err();
    assert!(error.code == -9 && error.message.contains("does not call the method \"stop\""), "{error:?}");
    assert!(!error.message.contains(TOKEN));
}

/// The time that a test adds to the clock, in milliseconds.
static LATER: AtomicU64 = AtomicU64::new(0);

fn later() -> Duration {
    clock() + Duration::from_millis(LATER.load(Ordering::SeqCst))
}

#[test]
fn without_nodes_the_last_mempool_answers_for_a_minute() {
    let mut fixture = Fixture::new();
    let (feed, link) = fixture.feed();
    let front = fixture.front(&[&link], later).unwrap();
    let query = front.source().query;
    let script = fixture.a_script();
    let before = (query.status(&script).unwrap(), query.pool().recent(usize::MAX));
    assert!(before.0.is_some());
    link.lead_to(None);
    until("the node is missed", || matches!(front.health(), Health::Stale { .. }));
    // The index goes on without the node: the front end stays on the block of its mempool.
    let block = fixture.maker.block(&fixture.world.chain, &fixture.world.pool, 100);
    fixture.world.connect(block);
    write_index(&mut fixture.writer, &fixture.world);
    thread::sleep(Duration::from_millis(600));
    assert_eq!((query.status(&script).unwrap(), query.pool().recent(usize::MAX)), before);
    let Health::Stale { since, reason } = front.health() else { panic!("not stale: {:?}", front.health()) };
    assert!(reason.starts_with(&format!("no node sends its mempool: {}: ", link.address())), "{reason}");
    // Questions to nodes fail with a sentence.
    let error = query.header(17).unwrap_err();
    let QueryError::Failed(text) = &error else { panic!("{error:?}") };
    assert!(text.starts_with("no node answers, try again: "), "{text}");
    let jump = |time: Duration| LATER.store(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    jump(STALE_MAX - Duration::from_secs(20));
    assert!(matches!(front.health(), Health::Stale { since: same, .. } if same == since));
    jump(STALE_MAX + Duration::from_secs(1));
    let Health::Gone { reason } = front.health() else { panic!("not gone") };
    assert!(reason.starts_with("no node sends its mempool: "), "{reason}");
    assert!(front.figures().lag > STALE_MAX);
    link.lead_to(Some(feed.address()));
    until("it is back", || matches!(front.health(), Health::Fresh { height: 107 }));
    assert!(is_settled(&query, &fixture.world));
}

#[test]
fn a_store_that_is_gone_is_an_error_and_never_an_empty_answer() {
    let mut fixture = Fixture::new();
    let (_feed, link) = fixture.feed();
    let (front, events) = start_front(&fixture.world, &Settings { store: &fixture.store, links: &[&link], clock });
    let front = front.unwrap();
    let query = front.source().query;
    fixture.store.is_down.store(true, Ordering::SeqCst);
    let missed = "no replica can be reached; try again later";
    until("it is missed", || matches!(front.health(), Health::Stale { reason, .. } if reason.contains(missed)));
    // Transactions come and are seen; a block waits for the index.
    let tx = fixture.new_tx();
    let txid = tx.view().txid();
    while !fixture.world.submit(tx.clone()) {}
    until("the transaction is seen", || query.pool().transaction(&txid).is_some());
    let block = fixture.maker.block(&fixture.world.chain, &fixture.world.pool, 100);
    fixture.world.connect(block);
    thread::sleep(Duration::from_millis(300));
    assert_eq!((query.chain().tip().unwrap().height.0, query.pool_tip().unwrap().unwrap().height.0), (106, 106));
    fixture.store.is_down.store(false, Ordering::SeqCst);
    write_index(&mut fixture.writer, &fixture.world);
    until("the front end has the block", || is_settled(&query, &fixture.world));
    assert!(query.pool().transaction(&txid).is_none());
    assert_eq!(query.transaction(&txid).unwrap().view().txid(), txid);
    until("it is fresh", || front.health() == Health::Fresh { height: 107 });
    assert!(events.has("the index is refreshed again"));
    assert!(matches!(query.transaction(&Txid([7; 32])), Err(QueryError::NoTransaction(_))));
}

/// The nodes have left six blocks for another branch, and the index, whose writer is late, has not: answers are those
/// of the old branch, from the blocks that the nodes still have. A compact index reads every transaction.
#[test]
fn blocks_that_nodes_have_left_are_answered_while_the_index_has_them() {
    for profile in [FULL, COMPACT] {
        let mut fixture = Fixture::of(8, profile);
        let (_feed, link) = fixture.feed();
        let front = fixture.front(&[&link], clock).unwrap();
        let query = front.source().query;
        let old = fixture.world.chain.clone();
        let fork = old.len() - 7;
        let scripts: BTreeSet<ScriptHash> = old[fork + 1..]
            .iter()
            .flat_map(|block| {
                block.txs().flat_map(|tx| tx.outputs().map(|output| ScriptHash::of(output.script_pubkey)))
            })
            .collect();
        let answers = || -> Vec<_> {
            scripts
                .iter()
                .map(|script| (query.balance(script).unwrap(), query.history(script, 0..u32::MAX).unwrap()))
                .collect()
        };
        let before = answers();
        let (mut chain, mut branch) = (old[..=fork].to_vec(), Vec::new());
        for _ in 0..7 {
            let block = fixture.maker.block(&chain, &[], 100);
            chain.push(block.clone());
            branch.push(block);
        }
        fixture.world.branch(fork, branch);
        assert_ne!(fixture.world.tip_hash(), old[old.len() - 1].hash());
        assert!(answers() == before);
        let tip = u32::try_from(old.len() - 1).unwrap();
        for height in tip - 5..=tip {
            let block = &old[height as usize];
            assert_eq!(query.header(height), Ok(*block.header()));
            let last = block.txs().last().unwrap();
            assert_eq!(query.transaction(&last.txid()).unwrap().as_bytes(), last.bytes());
            let position = u32::try_from(block.txs().count() - 1).unwrap();
            assert_eq!(query.merkle_at(height, position).unwrap().0, last.txid());
        }
        let headers = query.chain().headers(Height(tip - 20), 21).unwrap();
        assert!(headers.iter().eq(old[old.len() - 21..].iter().map(|block| block.header())));
        assert_eq!(query.chain().tip().unwrap().height.0, tip);
        let requests = front.figures().nodes[0].requests;
        write_index(&mut fixture.writer, &fixture.world);
        until("the front end has the branch", || is_settled(&query, &fixture.world));
        // About 40: each block is fetched once.
        assert!(requests < 100, "{requests} requests for {} scripts", scripts.len());
    }
}

/// Zero while the clock stands; then the time that a test adds to it, in milliseconds.
static MOVED: AtomicU64 = AtomicU64::new(0);

fn moved() -> Duration {
    match MOVED.load(Ordering::SeqCst) {
        0 => Duration::ZERO,
        millis => clock() + Duration::from_millis(millis),
    }
}

#[test]
fn a_node_on_another_branch_than_the_index_is_left() {
    let (fixture, other) = (Fixture::new(), Fixture::of_seed(9));
    assert_ne!(fixture.world.tip_hash(), other.world.tip_hash());
    let ((_feed, good), (_other, wrong)) = (fixture.feed(), other.feed());
    // The first one has the same height, and no block but the genesis block. The start waits as long as a node may be
    // on another block: the clock stands meanwhile, or the start could end between the one node and the other.
    let settings = Settings { store: &fixture.store, links: &[&wrong, &good], clock: moved };
    let (front, events) = start_front(&fixture.world, &settings);
    let front = front.unwrap();
    let time = APART_MAX + Duration::from_secs(1);
    MOVED.store(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    until("the other one is followed", || front.figures().nodes[1].is_followed && events.has("following"));
    assert!(events.has("the node stays on another block than the index"));
    let query = front.source().query;
    assert!(is_settled(&query, &fixture.world));
    // Only the first one has the blocks: an answer of the other one does not fit.
    good.cut_answers_at(1);
    let is_no_answer = |error: QueryError| error.to_string().starts_with("no node answers, try again: ");
    assert!(query.header(40).is_err_and(is_no_answer));
    assert!(query.merkle_at(40, 0).is_err_and(is_no_answer));
    assert!(query.chain().block_info(&fixture.world.tip_hash()).is_err_and(is_no_answer));
    good.cut_answers_at(0);
    assert_eq!(query.header(40), Ok(*fixture.world.chain[40].header()));
}

#[test]
fn a_feed_with_tls_is_read_with_its_certificate_only() {
    let fixture = Fixture::new();
    let made = [TlsIdentity::self_made().unwrap(), TlsIdentity::self_made().unwrap()];
    let identity = TlsIdentity::from_pem(made[0].certificate.as_bytes(), made[0].key.as_bytes()).unwrap();
    let identity = Current::new(identity);
    let feed = Feed::start_with(&fixture.world, Some(identity.clone()));
    let link = Link::new();
    link.lead_to(Some(feed.address()));
    let start = |roots: Option<&str>| {
        let nodes = vec![format!("https://localhost:{}", link.port).parse().unwrap()];
        let settings = Settings { store: &fixture.store, links: &[], clock };
        start_front_on(&fixture.world, &settings, nodes, roots.map(|pem| pem.as_bytes().to_vec())).0
    };
    let front = start(Some(&made[0].certificate)).unwrap();
    assert!(is_settled(&front.source().query, &fixture.world));
    until("a question is answered", || front.source().query.header(9) == Ok(*fixture.world.chain[9].header()));
    let error = start(Some(&made[1].certificate)).unwrap_err().to_string();
    assert!(error.contains(": TLS fails: invalid peer certificate"), "{error}");
    let error = start(None).unwrap_err().to_string();
    assert!(error.ends_with(" needs a certificate to trust"), "{error}");
    let unreadable = "the certificates of the nodes cannot be read: there is no certificate in it";
    assert_eq!(start(Some("no PEM")).unwrap_err().to_string(), unreadable);
    // The node gets a new certificate: a front end that runs trusts it once it has read it.
    identity.set(TlsIdentity::from_pem(made[1].certificate.as_bytes(), made[1].key.as_bytes()).unwrap());
    link.lead_to(Some(feed.address()));
    let query = front.source().query;
    let is_refused = |error: QueryError| error.to_string().contains("TLS fails: invalid peer certificate");
    until("the new certificate is refused", || query.header(40).is_err_and(is_refused));
    assert_eq!(front.trust(b"no PEM").unwrap_err().to_string(), unreadable);
    assert!(query.header(40).is_err());
    front.trust(made[1].certificate.as_bytes()).unwrap();
    until("the new certificate is trusted", || query.header(40) == Ok(*fixture.world.chain[40].header()));
}
