//! A server with a real engine and a real mempool, and readers that check what they get.

mod world;

use super::follow::tests::ByHand;
use super::hub::{Base, Next};
use super::*;
use crate::limits::{PLACES_MAX, SILENCE_MAX};
use crate::message::{Answer, Message, PoolTx, State as PoolState};
use crate::wire::Frames;
use lydian_index::{Place, ScriptHash};
use lydian_primitives::{Height, OutPoint, Txid};
use lydian_serve::Event;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use world::World;

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn event(&self, _: &Event<'_>) {}
}

const TOKEN: &str = "a token of sixteen or more";

fn start(world: &World, token: Option<&str>) -> FeedServer {
    let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    let settings = FeedSettings { addresses, allowed: Vec::new(), tls: None, token: token.map(str::to_owned) };
    assert!(!format!("{settings:?}").contains(TOKEN));
    FeedServer::start(world.source(), settings, Arc::new(Silent)).unwrap()
}

fn connect(server: &FeedServer) -> TcpStream {
    let stream = TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The status and the body of a request's answer.
fn ask_as(server: &FeedServer, verb: &str, path: &str, token: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = connect(server);
    let size = body.len();
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {size}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses a large body does not read all of it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), answer[end + 4..].to_vec())
}

fn ask(server: &FeedServer, verb: &str, path: &str, body: &[u8]) -> (u16, String) {
    let (code, body) = ask_as(server, verb, path, "", body);
    (code, String::from_utf8(body).unwrap())
}

/// The mempool as a reader of the stream has it.
struct Copy {
    stream: TcpStream,
    bytes: Vec<u8>,
    frames: Frames,
    hello: Option<Hello>,
    /// Those of the last state, in their order.
    members: Vec<PoolTx>,
    /// The same with the changes behind it.
    next: Vec<PoolTx>,
    resets: usize,
}

impl Copy {
    fn new(server: &FeedServer, token: &str) -> Copy {
        let mut stream = connect(server);
        let head = format!("GET {STREAM} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        };
        let head = String::from_utf8(bytes.split_off(0)).unwrap().to_lowercase();
        assert!(head.len() == end + 4 && head.starts_with("http/1.1 200 ok"), "{head}");
        assert!(head.contains("content-type: application/octet-stream"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let frames = Frames::default();
        Copy { stream, bytes, frames, hello: None, members: Vec::new(), next: Vec::new(), resets: 0 }
    }

    /// Reads a chunk of the body.
    fn chunk(&mut self) -> bool {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|two| two == b"\r\n") {
                let size = usize::from_str_radix(std::str::from_utf8(&self.bytes[..end]).unwrap(), 16).unwrap();
                if self.bytes.len() >= end + 2 + size + 2 {
                    let chunk: Vec<u8> = self.bytes.drain(..end + 2 + size + 2).collect();
                    self.frames.push(&chunk[end + 2..end + 2 + size]);
                    return size > 0;
                }
            }
            let mut more = vec![0; 1 << 16];
            match self.stream.read(&mut more) {
                Ok(count) if count > 0 => self.bytes.extend_from_slice(&more[..count]),
                _ => return false,
            }
        }
    }

    /// The next state; `None` at the end of the stream.
    fn state(&mut self) -> Option<PoolState> {
        loop {
            let Some(message) = self.frames.next().unwrap() else {
                if !self.chunk() {
                    return None;
                }
                continue;
            };
            match message {
                Message::Hello(hello) => assert!(self.hello.replace(hello).is_none(), "once"),
                Message::Reset => {
                    self.next.clear();
                    self.resets += 1;
                }
                Message::Added(tx) => {
                    assert!(!self.next.iter().any(|other| other.tx.view().txid() == tx.tx.view().txid()));
                    self.next.push(tx);
                }
                Message::Removed(txid) => {
                    let at = self.next.iter().position(|tx| tx.tx.view().txid() == txid).unwrap();
                    self.next.remove(at);
                }
                Message::State(state) => {
                    assert!(self.hello.is_some() && self.resets > 0);
                    self.members.clone_from(&self.next);
                    return Some(state);
                }
            }
        }
    }

    /// Reads up to the state of now, and compares the copy with the mempool.
    fn follow(&mut self, world: &World) {
        let snapshot = world.mempool.snapshot();
        let tip = world.engine.settled_tip();
        let state = loop {
            let state = self.state().unwrap();
            assert!(state.sequence <= snapshot.info().sequence);
            if state.sequence == snapshot.info().sequence && state.tip == tip && state.pool_tip == tip {
                break state;
            }
        };
        assert_eq!(state.fees, world.pool.fees());
        let txids: BTreeSet<Txid> = self.members.iter().map(|tx| tx.tx.view().txid()).collect();
        assert_eq!(txids, world.members());
        for of_copy in &self.members {
            let tx = of_copy.tx.view();
            let entry = snapshot.get(&tx.txid()).unwrap().entry();
            assert_eq!(of_copy.tx.as_bytes(), entry.tx().as_bytes());
            let numbers = (entry.fee().0, i64::from(entry.vsize()), entry.sequence(), entry.time());
            assert_eq!((of_copy.fee, of_copy.vsize, of_copy.sequence, of_copy.time), numbers);
            let spent = tx.inputs().map(|input| {
                let (value, script) = &world.outputs[&input.prevout];
                (ScriptHash::of(script), *value)
            });
            assert_eq!(of_copy.spent, spent.collect::<Vec<_>>());
        }
    }

    fn order(&self) -> Vec<Txid> {
        self.members.iter().map(|tx| tx.tx.view().txid()).collect()
    }
}

#[test]
fn a_stream_is_the_mempool() {
    let mut world = World::new();
    let server = start(&world, None);
    let mut copy = Copy::new(&server, "");
    copy.follow(&world);
    let hello = copy.hello.clone().unwrap();
    assert_eq!((hello.version, hello.genesis), (FEED_VERSION, world.blocks[0].hash()));
    // A parent with a child, one beside them, and one that replaces it.
    let coins = [world.coin(1, 0), world.coin(2, 0)];
    let parent = world.pay(&coins, 2_000, 0);
    let middle = OutPoint { txid: parent.view().txid(), vout: 0 };
    let child = world.pay(&[middle], 3_000, 0);
    let coin = world.coin(3, 1);
    let (beside, better) = (world.pay(&[coin], 1_000, 0), world.pay(&[coin], 9_000, 300));
    for tx in [&parent, &child, &beside] {
        world.submit(tx);
        copy.follow(&world);
    }
    world.submit(&better);
    copy.follow(&world);
    assert!(!copy.order().contains(&beside.view().txid()));
    // One that comes later has the same, in the same order.
    let mut late = Copy::new(&server, "");
    late.follow(&world);
    assert_eq!((late.order(), late.resets), (copy.order(), 1));
    assert_eq!(late.hello, copy.hello);
    // A block with one of them, and one with a conflict.
    world.mine(&[Arc::clone(&parent)]);
    copy.follow(&world);
    world.mine(&[Arc::clone(&beside)]);
    copy.follow(&world);
    assert_eq!(copy.order(), [child.view().txid()]);
    // Transactions of blocks that are left return.
    world.reorganise(2);
    copy.follow(&world);
    late.follow(&world);
    assert!([&parent, &child, &beside].iter().all(|tx| copy.order().contains(&tx.view().txid())));
    assert_eq!(late.order(), copy.order());
    let mut last = Copy::new(&server, "");
    last.follow(&world);
    let sets = [&last, &copy].map(|copy| copy.order().into_iter().collect::<BTreeSet<_>>());
    assert_eq!(sets[0], sets[1]);
    // Without changes, states come before a reader gives the stream up. One may be late: the computer may stop for some
    // seconds.
    let waits: Vec<Duration> = (0..5)
        .map(|_| {
            let began = tokio::time::Instant::now();
            assert!(copy.state().is_some());
            began.elapsed()
        })
        .collect();
    assert!(waits.iter().filter(|wait| **wait < SILENCE_MAX).count() >= 3, "{waits:?}");
    assert_eq!(copy.resets, 1);
    assert_eq!(server.counts().streams(), 3);
    assert!(server.counts().bytes() > 0 && server.counts().slow() == 0);
    // Streams do not hold up the end.
    drop(server);
    while copy.state().is_some() {}
}

/// A reader that leaves its socket unread is disconnected; others go on.
#[test]
fn a_slow_reader_is_disconnected() {
    let mut world = World::new();
    let server = start(&world, None);
    let (mut slow, mut copy) = (Copy::new(&server, ""), Copy::new(&server, ""));
    slow.follow(&world);
    copy.follow(&world);
    let coins = [world.coin(1, 0)];
    let mut fee = 100_000;
    let began = tokio::time::Instant::now();
    while server.counts().slow() == 0 {
        assert!(began.elapsed() < Duration::from_secs(600), "{} bytes are sent", server.counts().bytes());
        // Each replaces the one before it.
        fee += 50_000;
        let tx = world.pay(&coins, fee, 95_000);
        world.submit(&tx);
        copy.follow(&world);
    }
    // It is counted as slow before its place is free.
    while server.counts().streams() > 1 {
        assert!(began.elapsed() < Duration::from_secs(600), "the stream stays");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.counts().streams(), 1);
    // What was on its way, and then the end.
    while slow.state().is_some() {}
    assert_ne!(slow.order(), copy.order());
    let mut again = Copy::new(&server, "");
    again.follow(&world);
    assert_eq!(again.order(), copy.order());
}

/// The mempool keeps 32 MiB of changes.
#[test]
fn a_snapshot_follows_on_changes_that_are_lost() {
    let mut world = World::new();
    let hub = super::hub::tests::hub();
    let (chain, pool) = (Arc::clone(&world.chain), Arc::clone(&world.pool));
    let mut follower = ByHand::new(&world.engine, &world.mempool, chain, pool, &hub);
    assert!(follower.look());
    let joined = hub.join().unwrap();
    let mut cursor = joined.base().unwrap().cursor;
    assert!(follower.look() && matches!(joined.next(&mut cursor), Next::NotYet), "nothing is new");
    let coin = world.coin(1, 0);
    let mut coins = vec![coin];
    let first = world.pay(&coins, 100_000, 90_000);
    world.submit(&first);
    assert!(follower.look());
    assert!(matches!(joined.next(&mut cursor), Next::Group(_)));
    // Each replaces the one before it, so that few are left.
    for number in 0..250 {
        let tx = world.pay(&coins, 200_000 + number * 50_000, 90_000);
        world.submit(&tx);
    }
    coins = vec![world.coin(2, 0), world.coin(2, 1)];
    let last = world.pay(&coins, 5_000, 0);
    world.submit(&last);
    assert!(follower.look());
    assert!(matches!(joined.next(&mut cursor), Next::Snapshot));
    let base = joined.base().unwrap();
    assert_eq!(base.state.sequence, world.mempool.snapshot().info().sequence);
    let txids: BTreeSet<Txid> = base.members.iter().map(|member| member.entry.txid()).collect();
    assert_eq!(txids, world.members());
    assert_eq!(base.members.last().unwrap().entry.txid(), last.view().txid());
    for member in &base.members {
        let spent = member.entry.tx().view().inputs().map(|input| {
            let (value, script) = &world.outputs[&input.prevout];
            (ScriptHash::of(script), *value)
        });
        assert_eq!(member.spent.to_vec(), spent.collect::<Vec<_>>());
    }
    // From there on, groups follow again.
    let coin = world.coin(4, 0);
    let tx = world.pay(&[coin], 5_000, 0);
    world.submit(&tx);
    cursor = base.cursor;
    assert!(follower.look() && matches!(joined.next(&mut cursor), Next::Group(_)));
}

/// The engine is a block ahead of the mempool, whose changes are lost: what was sent last is sent again.
#[test]
fn a_stream_stays_alive_while_no_snapshot_can_be_made() {
    let (mut world, mut ahead) = (World::new(), World::new());
    let hub = super::hub::tests::hub();
    let (chain, pool) = (Arc::clone(&world.chain), Arc::clone(&world.pool));
    let mut follower = ByHand::new(&world.engine, &world.mempool, chain, pool, &hub);
    assert!(follower.look());
    let joined = hub.join().unwrap();
    let Base { mut cursor, state: first, .. } = joined.base().unwrap();
    ahead.mine(&[]);
    follower.set_engine(&ahead.engine);
    let coin = [world.coin(1, 0)];
    for number in 0..250 {
        let tx = world.pay(&coin, 200_000 + number * 50_000, 90_000);
        world.submit(&tx);
    }
    let looks_up = |engine| ByHand::looks_up(engine, &world.mempool);
    assert!(looks_up(&world.engine) && !looks_up(&ahead.engine), "not of another block");
    let began = tokio::time::Instant::now();
    let mut repeated = 0;
    while repeated < 3 {
        assert!(follower.look() && follower.backs_off(), "there is no snapshot of both");
        assert!(began.elapsed() < Duration::from_secs(60), "{repeated} states are sent");
        match joined.next(&mut cursor) {
            Next::Group(group) => {
                assert_eq!(group[..], crate::wire::encode(&Message::State(first)));
                repeated += 1;
            }
            Next::NotYet => std::thread::sleep(Duration::from_millis(5)),
            other => panic!("{other:?}"),
        }
    }
    // One that comes now gets what the others have.
    assert_eq!(hub.join().unwrap().base().unwrap().state, first);
    world.take(ahead.blocks.last().unwrap());
    while !matches!(joined.next(&mut cursor), Next::Snapshot) {
        assert!(follower.look() && began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    let base = joined.base().unwrap();
    let sequence = world.mempool.snapshot().info().sequence;
    assert_eq!((base.state.sequence, base.state.pool_tip.hash, base.members.len()), (sequence, world.tip(), 1));
    assert!(!follower.backs_off());
}

fn answer(server: &FeedServer, question: &Question) -> Answer {
    let (code, body) = ask_as(server, "POST", ASK, "", &question.encode());
    assert_eq!(code, 200);
    Answer::decode(&body, question).unwrap()
}

#[test]
fn questions_are_answered_as_the_chain_and_the_pool_answer() {
    let mut world = World::new();
    let coin = world.coin(1, 0);
    let mined = world.pay(&[coin], 5_000, 0);
    world.mine(&[Arc::clone(&mined)]);
    let (coin, other) = (world.coin(2, 0), world.coin(2, 1));
    let waiting = [world.pay(&[coin], 5_000, 0), world.pay(&[other], 7_000, 0)];
    waiting.iter().for_each(|tx| world.submit(tx));
    let server = start(&world, None);
    let ask = |question| answer(&server, &question);
    let height = u32::try_from(world.blocks.len() - 1).unwrap();
    let (block, unknown) = (&world.blocks[world.blocks.len() - 1], BlockHash([9; 32]));
    let (from, count) = (Height(height - 2), 5);
    assert_eq!(ask(Question::Headers { from, count }), Answer::Headers(world.chain.headers(from, 5).unwrap()));
    assert_eq!(ask(Question::Hashes { from, count }), Answer::Hashes(world.chain.hashes(from, 5).unwrap()));
    let txids = block.txs().map(|tx| tx.txid()).collect();
    assert_eq!(ask(Question::Txids(Height(height))), Answer::Txids(Some((block.hash(), txids))));
    assert_eq!(ask(Question::Txids(Height(height + 1))), Answer::Txids(None));
    let info = world.chain.block_info(&block.hash()).unwrap();
    assert!(info.is_some());
    assert_eq!(ask(Question::BlockInfo(block.hash())), Answer::BlockInfo(info));
    assert_eq!(ask(Question::BlockInfo(unknown)), Answer::BlockInfo(None));
    assert_eq!(ask(Question::Block(block.hash())), Answer::Block(Some(block.as_bytes().to_vec())));
    assert_eq!(ask(Question::Block(unknown)), Answer::Block(None));
    let Answer::Spent(Some(spent)) = ask(Question::Spent(block.hash())) else { panic!("the outputs") };
    let expected = &world.outputs[&world.coin(1, 0)];
    assert_eq!((spent.len(), spent[0].value, &spent[0].script_pubkey[..]), (1, expected.0, &expected.1[..]));
    assert_eq!(ask(Question::Spent(unknown)), Answer::Spent(None));
    let undo = |hash, bytes_max| ask(Question::Undo { hash, bytes_max });
    let Answer::Undo(Some(bytes)) = undo(block.hash(), u64::MAX) else { panic!("the undo data") };
    let coins = lydian_chain::UndoParts::parse(bytes.clone()).unwrap().coins_of(1).unwrap().unwrap();
    assert_eq!((coins.len(), coins[0].value.0, &coins[0].script_pubkey[..]), (1, expected.0, &expected.1[..]));
    let size = u64::try_from(bytes.len()).unwrap();
    assert_eq!(
        (undo(block.hash(), size), undo(block.hash(), size - 1)),
        (Answer::Undo(Some(bytes)), Answer::Undo(None))
    );
    assert_eq!(undo(unknown, u64::MAX), Answer::Undo(None));
    // A place, one in another block, one above the tip, and one that is no transaction.
    let place = |height, offset, size| Place { height: Height(height), offset, size };
    let tx = block.tx(1);
    let size = u32::try_from(tx.total_size()).unwrap();
    let here = place(height, tx.offset(), size);
    let places = vec![
        (here, block.hash()),
        (here, unknown),
        (place(height + 1, 81, 100), block.hash()),
        (place(height, 3, 50), block.hash()),
        (here, block.hash()),
    ];
    let bytes = Some(mined.as_bytes().to_vec());
    let found = vec![bytes.clone(), None, None, None, bytes];
    assert_eq!(ask(Question::Transactions(places)), Answer::Transactions(found));
    assert_eq!(ask(Question::Pruned(vec![Height(1), Height(999)])), Answer::Pruned(vec![false, false]));
    assert_eq!(ask(Question::PoolTxids), Answer::PoolTxids(world.pool.txids()));
    let chunks = world.pool.chunks();
    assert_eq!(chunks.iter().map(|(fee, _)| *fee).collect::<Vec<_>>(), [7_000, 5_000]);
    assert_eq!(ask(Question::PoolChunks), Answer::PoolChunks(chunks));
    assert_eq!(ask(Question::Estimate { target: 2, is_conservative: true }), Answer::Estimate(None));
    let many = Question::Pruned(vec![Height(1); PLACES_MAX + 1]);
    assert!(matches!(ask(many), Answer::Failed(crate::message::AnswerError::Final(_))));
}

/// limit: QUESTION_SIZE_MAX at
/// limit: QUESTION_SIZE_MAX above
#[test]
fn what_is_no_question_or_call_is_refused() {
    let world = World::new();
    let server = start(&world, None);
    for (verb, path, body, code, words) in [
        ("POST", ASK, &b""[..], 400, "a message has no bytes"),
        ("POST", ASK, b"\x63", 400, "a question has the unknown kind 99"),
        ("POST", ASK, b"\x08\x01", 400, "a question cannot be decoded: 1 bytes are left over at byte 0"),
        ("GET", ASK, b"", 404, "the feed does not answer GET /feed/1/ask"),
        ("GET", "/feed/2/stream", b"", 404, "the feed does not answer GET /feed/2/stream"),
        ("POST", STREAM, b"", 404, "the feed does not answer POST /feed/1/stream"),
        ("POST", CALL, b"{\"method\":\"stop\",\"params\":[]}", 403, "the feed does not call the method \"stop\""),
    ] {
        assert_eq!(ask(&server, verb, path, body), (code, words.to_owned()), "{verb} {path}");
    }
    let (code, words) = ask(&server, "POST", CALL, b"{\"params\":[]}");
    assert!(code == 400 && words.starts_with("the body of a call must be an object with method and params: "));
    let at = vec![99; QUESTION_SIZE_MAX];
    assert_eq!(ask(&server, "POST", ASK, &at).0, 400);
    assert_eq!(ask(&server, "POST", ASK, &[&at[..], &[99]].concat()).0, 413);
    assert!(world.calls.0.lock().unwrap().is_empty());
}

#[test]
fn calls_are_passed_on() {
    let world = World::new();
    let server = start(&world, None);
    for method in METHODS.into_iter().filter(|method| *method != "testmempoolaccept") {
        let body = format!("{{\"method\":\"{method}\",\"params\":[1, {{\"a\": 1.10}}]}}");
        let answer = ask(&server, "POST", CALL, body.as_bytes());
        assert_eq!(answer, (200, "{\"result\":[1, {\"a\": 1.10}]}".to_owned()), "as it was written");
    }
    let answer = ask(&server, "POST", CALL, b"{\"method\":\"testmempoolaccept\"}");
    assert_eq!(answer, (200, r#"{"error":{"code":-22,"message":"a \"reason\""}}"#.to_owned()));
    assert_eq!(*world.calls.0.lock().unwrap(), METHODS);
}

#[test]
fn nothing_is_answered_without_the_token() {
    let world = World::new();
    let server = start(&world, Some(TOKEN));
    let words = "the feed needs its token (-feedtoken) in the header Authorization: Bearer";
    let longer = format!("{TOKEN}x");
    for token in ["", "x", &TOKEN[1..], &longer] {
        for (verb, path) in [("GET", STREAM), ("POST", ASK), ("POST", CALL), ("GET", "/x")] {
            let (code, body) = ask_as(&server, verb, path, token, &Question::PoolTxids.encode());
            assert_eq!((code, body), (401, words.as_bytes().to_vec()), "{verb} {path}");
        }
    }
    let (code, body) = ask_as(&server, "POST", ASK, TOKEN, &Question::PoolTxids.encode());
    assert_eq!((code, Answer::decode(&body, &Question::PoolTxids)), (200, Ok(Answer::PoolTxids(Vec::new()))));
    Copy::new(&server, TOKEN).follow(&world);
}

/// limit: ANSWERS_SIZE_MAX at
/// limit: ANSWERS_SIZE_MAX above
#[test]
fn an_answer_waits_until_others_are_read() {
    let answers = Budget::new(ANSWERS_SIZE_MAX);
    let unread = answers.room_for(ANSWERS_SIZE_MAX).unwrap();
    let waiting = Arc::clone(&answers);
    let one_more = std::thread::spawn(move || waiting.room_for(1 << 20).is_some());
    drop(unread);
    assert!(one_more.join().unwrap());
    assert!(answers.room_for(ANSWERS_SIZE_MAX + 1).is_some(), "a larger one is sent alone");
}
