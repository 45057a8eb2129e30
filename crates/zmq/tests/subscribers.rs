//! The publisher with real sockets and subscribers of the crate `zeromq`. The events are those of a mempool, which
//! need no engine; `crates/node/tests/rpc/zmq.rs` has those of the chain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, measures its waits, and says what it leaves out"
)]

#[path = "common/subscriber.rs"]
mod subscriber;

use lydian_consensus::U256;
use lydian_disk::{Disk, RealDisk};
use lydian_engine::InitialDownload;
use lydian_oracle::{Scratch, free_port};
use lydian_primitives::{Transaction, Txid};
use lydian_zmq::{Feed, Log, Notifier, Publisher, StartError, Topic};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use subscriber::{Message, Subscriber};

/// Keeps the lines.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn is_on(&self) -> bool {
        true
    }

    fn debug(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

impl Lines {
    fn has(&self, part: &str) -> bool {
        self.0.lock().unwrap().iter().any(|line| line.contains(part))
    }
}

fn start_logged(notifiers: Vec<Notifier>) -> Result<(Publisher, Arc<Lines>), StartError> {
    let log = Arc::new(Lines::default());
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let initial_download = Arc::new(InitialDownload::new(U256::ZERO, 1));
    let shared: Arc<dyn Log> = Arc::<Lines>::clone(&log);
    Ok((Publisher::start(notifiers, initial_download, &disk, shared)?, log))
}

fn start(notifiers: Vec<Notifier>) -> Publisher {
    start_logged(notifiers).unwrap_or_else(|error| panic!("{error}")).0
}

fn notifier(topic: Topic, address: &str, high_water_mark: i32) -> Notifier {
    Notifier { topic, address: address.to_owned(), high_water_mark }
}

fn tcp() -> String {
    format!("tcp://127.0.0.1:{}", free_port().unwrap())
}

/// A transaction with an input, and an output whose script has this size.
fn transaction(script: usize) -> Transaction {
    let mut bytes = vec![2, 0, 0, 0, 1];
    bytes.extend([7; 36]);
    bytes.extend([0, 0xff, 0xff, 0xff, 0xff, 1]);
    bytes.extend(1u64.to_le_bytes());
    bytes.push(0xfe);
    bytes.extend(u32::try_from(script).unwrap().to_le_bytes());
    bytes.resize(bytes.len() + script, 0x51);
    bytes.extend([0; 4]);
    Transaction::parse(bytes).unwrap()
}

fn removal(feed: &Feed, sequence: u64) {
    feed.transaction_removed(Txid([3; 32]), sequence);
}

fn sequence_of(message: &Message) -> u64 {
    u64::from_le_bytes(message.body[33..].try_into().unwrap())
}

/// The next message behind those with the sequence 0, with which the tests wait for their subscription: some of them
/// may be late.
fn next_of_test(subscriber: &mut Subscriber) -> Message {
    loop {
        let message = subscriber.next();
        if sequence_of(&message) != 0 {
            return message;
        }
    }
}

/// The same address for several notifiers is one socket; every notifier counts for itself; the hash is reversed.
#[test]
fn a_transaction_of_the_mempool_reaches_its_topics_in_cores_order() {
    let (one, two) = (tcp(), tcp());
    let publisher = start(vec![
        notifier(Topic::Sequence, &one, 1000),
        notifier(Topic::RawTx, &one, 1000),
        notifier(Topic::HashTx, &one, 1000),
        notifier(Topic::HashTx, &two, 1000),
        notifier(Topic::HashTx, &one, 1000),
        notifier(Topic::RawBlock, &one, 1000),
    ]);
    let feed = publisher.feed();
    let mut all = Subscriber::connect(&one, &[""]);
    let mut hashes = Subscriber::connect(&two, &["hash"]);
    let mut count = 0;
    let tx = transaction(70_000);
    all.wait_until_subscribed(|| {
        feed.transaction_added(tx.view(), 1);
        count += 1;
    });
    hashes.wait_until_subscribed(|| {
        feed.transaction_added(tx.view(), 2);
        count += 1;
    });
    // Marks and numbers tell what belongs to the test: on a busy machine, messages come late.
    let is_mark = |message: &Message| message.topic == "sequence" && sequence_of(message) == 77;
    removal(&feed, 77);
    while !is_mark(&all.next()) {}
    feed.transaction_added(tx.view(), 0x0102_0304_0506_0708);
    feed.transaction_removed(tx.view().txid(), 9);
    removal(&feed, 77);
    let mut hash = tx.view().txid().0.to_vec();
    hash.reverse();
    let labelled = |label: u8, sequence: u64| [&hash[..], &[label], &sequence.to_le_bytes()].concat();
    let message = |topic: &str, body: &[u8], number| Message { topic: topic.to_owned(), body: body.to_vec(), number };
    let expected = [
        message("hashtx", &hash, count),
        message("hashtx", &hash, count),
        message("rawtx", tx.as_bytes(), count),
        message("sequence", &labelled(b'A', 0x0102_0304_0506_0708), count + 1),
        message("sequence", &labelled(b'R', 9), count + 2),
    ];
    let found: Vec<Message> = std::iter::from_fn(|| Some(all.next()).filter(|found| !is_mark(found))).collect();
    assert_eq!(found, expected);
    let last = std::iter::from_fn(|| Some(hashes.next())).find(|found| found.number >= count).unwrap();
    assert_eq!(last, message("hashtx", &hash, count));
    assert_eq!(hashes.next_within(Duration::from_millis(500)), None);
}

/// Many messages at once, more than the high-water mark, to a subscriber that reads.
#[test]
fn a_burst_arrives_whole_at_every_subscriber() {
    let address = tcp();
    let publisher = start(vec![notifier(Topic::Sequence, &address, 1000)]);
    let feed = publisher.feed();
    let mut subscribers: Vec<Subscriber> = (0..4).map(|_| Subscriber::connect(&address, &["sequence"])).collect();
    for subscriber in &mut subscribers {
        subscriber.wait_until_subscribed(|| removal(&feed, 0));
    }
    let total = 5_000;
    (1..=total).for_each(|sequence| removal(&feed, sequence));
    for subscriber in &mut subscribers {
        let mut before = None;
        let mut received = 0;
        while received < total {
            let message = next_of_test(subscriber);
            received += 1;
            assert_eq!(sequence_of(&message), received, "in order, none missing");
            assert!(before.is_none_or(|before: u32| message.number == before + 1));
            before = Some(message.number);
        }
    }
}

/// A burst far above the mark, but within the buffers of the system.
#[test]
fn a_small_mark_loses_nothing_for_a_subscriber_that_reads() {
    let address = tcp();
    let publisher = start(vec![notifier(Topic::Sequence, &address, 2)]);
    let feed = publisher.feed();
    let mut subscriber = Subscriber::connect(&address, &[""]);
    subscriber.wait_until_subscribed(|| removal(&feed, 0));
    for burst in 1..=5 {
        (1..=60).for_each(|sequence| removal(&feed, burst * 100 + sequence));
        for sequence in 1..=60 {
            assert_eq!(sequence_of(&next_of_test(&mut subscriber)), burst * 100 + sequence);
        }
    }
}

/// Sends the handshake and a subscription, and reads the replies: a subscriber of which the test knows when it reads.
fn handshake(address: &str, prefix: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address.strip_prefix("tcp://").unwrap()).unwrap();
    let mut hello = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    hello.extend_from_slice(b"NULL");
    hello.resize(64, 0);
    hello.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
    hello.extend_from_slice(&[0, u8::try_from(prefix.len() + 1).unwrap(), 1]);
    hello.extend_from_slice(prefix);
    stream.write_all(&hello).unwrap();
    stream.read_exact(&mut [0; 64 + 27]).unwrap();
    stream
}

/// A subscriber that does not read loses messages above its high-water mark, and sees the gap in the numbers. The
/// publisher, and another subscriber, do not wait for it.
#[test]
fn a_slow_subscriber_loses_messages_and_delays_nothing() {
    let (address, mark) = (tcp(), 5);
    let (publisher, log) =
        start_logged(vec![notifier(Topic::RawTx, &address, mark), notifier(Topic::Sequence, &address, 1_000_000)])
            .unwrap();
    let feed = publisher.feed();
    let mut slow = handshake(&address, b"rawtx");
    let mut quick = Subscriber::connect(&address, &["sequence"]);
    quick.wait_until_subscribed(|| removal(&feed, 0));
    let tx = transaction(1 << 20);
    let began = Instant::now();
    let total: u32 = 200;
    for sequence in 1..=total {
        feed.transaction_added(tx.view(), u64::from(sequence));
        while sequence_of(&quick.next()) != u64::from(sequence) {}
    }
    assert!(began.elapsed() < Duration::from_secs(600), "{:?}", began.elapsed());
    assert!(log.has("reads too slowly: messages are dropped"));
    // Now it reads, and more is published: it gets the oldest messages, as many as the mark and the buffers of the
    // system hold, then the newest.
    slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut numbers = Vec::new();
    let mut read = |slow: &mut TcpStream| {
        let mut head = [0; 7 + 9];
        slow.read_exact(&mut head).unwrap();
        assert_eq!(&head[..8], b"\x01\x05rawtx\x03");
        let size = u64::from_be_bytes(head[8..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(size).unwrap()];
        slow.read_exact(&mut body).unwrap();
        assert!(body == tx.as_bytes(), "a message is whole or missing");
        let mut number = [0; 6];
        slow.read_exact(&mut number).unwrap();
        let number = u32::from_le_bytes(number[2..].try_into().unwrap());
        numbers.push(number);
        number
    };
    for _ in 0..mark {
        read(&mut slow);
    }
    loop {
        feed.transaction_added(tx.view(), 1_000);
        if read(&mut slow) >= total {
            break;
        }
    }
    assert!(numbers.is_sorted() && numbers.len() < total as usize / 2, "{numbers:?}");
}

#[test]
fn unix_sockets_and_ipv6() {
    let folder = Scratch::new("zmq-ipc");
    std::fs::create_dir_all(folder.path()).unwrap();
    let ipc = format!("ipc://{}", folder.path().join("socket").display());
    let six = format!("tcp://[::1]:{}", free_port().unwrap());
    for address in [&ipc, &six] {
        let publisher = match start_logged(vec![notifier(Topic::Sequence, address, 10)]) {
            Ok((publisher, _)) => publisher,
            Err(error) if address == &six => {
                eprintln!("not run: no IPv6: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let feed = publisher.feed();
        let mut subscriber = Subscriber::connect(address, &["seq"]);
        subscriber.wait_until_subscribed(|| removal(&feed, 0));
        removal(&feed, 4);
        assert_eq!(sequence_of(&next_of_test(&mut subscriber)), 4);
    }
    assert!(!folder.path().join("socket").exists(), "the socket file is removed at the end");
}

#[test]
fn an_address_in_use_or_of_another_form_is_an_error_that_names_it() {
    let address = tcp();
    let first = start(vec![notifier(Topic::Sequence, &address, 0)]);
    let error = |notifiers| start_logged(notifiers).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error(vec![notifier(Topic::HashTx, &tcp(), 0), notifier(Topic::RawTx, &address, 0)]),
        format!("Unable to bind to {address} for -zmqpubrawtx: Address already in use")
    );
    drop(first);
    drop(start(vec![notifier(Topic::RawTx, &address, 0)]));
    assert_eq!(
        error(vec![notifier(Topic::RawTx, "tcp://here.example:1", 0)]),
        "Unable to bind to tcp://here.example:1 for -zmqpubrawtx: not of the form tcp://ADDRESS:PORT or unix:PATH"
    );
    assert_eq!(error(vec![notifier(Topic::RawTx, &tcp(), -1)]), "-zmqpubrawtxhwm=-1 is negative");
    let second = vec![notifier(Topic::HashTx, &address, 1), notifier(Topic::RawTx, &address, -1)];
    assert_eq!(error(second), "-zmqpubrawtxhwm=-1 is negative", "also if the socket is the first one's");
}

/// What was accepted before the end is still published; a subscriber that does not read does not delay the end.
#[test]
fn the_end_publishes_what_is_queued_and_waits_for_none() {
    let address = tcp();
    let publisher = start(vec![notifier(Topic::Sequence, &address, 1000), notifier(Topic::RawTx, &address, 1000)]);
    let feed = publisher.feed();
    let mut subscriber = Subscriber::connect(&address, &["sequence"]);
    subscriber.wait_until_subscribed(|| removal(&feed, 0));
    let _stuck = handshake(&address, b"rawtx");
    let tx = transaction(1 << 20);
    (0..50).for_each(|_| feed.transaction_added(tx.view(), 1));
    removal(&feed, 2);
    let began = Instant::now();
    drop(publisher);
    assert!(began.elapsed() < Duration::from_secs(60));
    let sequences: Vec<u64> = (0..51).map(|_| sequence_of(&next_of_test(&mut subscriber))).collect();
    assert_eq!(sequences.last(), Some(&2), "{sequences:?}");
    removal(&feed, 3);
}
