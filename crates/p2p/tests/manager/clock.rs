//! The time of `setmocktime` and `mockscheduler`: which timers use it, and which continue while it stands still.

use crate::bench::{Bench, START};
use crate::chain::block_on;
use lydian_p2p::limits::BLOCK_TIMEOUT;
use lydian_p2p::manager::{Question, SavedFile};
use lydian_p2p::peer::ConnectionKind;
use lydian_wire::Message;
use std::time::Duration;

/// Longer than any timeout.
const LONG: Duration = Duration::from_secs(25 * 60);

const MINUTE_S: u64 = 60;

/// Freezes the time of the bench.
fn freeze(bench: &mut Bench) {
    bench.mocked = Some(bench.now().unix.0);
}

/// Advances the mocked time, with two ticks for the effects.
fn forward(bench: &mut Bench, seconds: u64) {
    bench.mocked = bench.mocked.map(|now| now + seconds);
    bench.wait(Duration::from_millis(200));
}

/// Regression test: `setmocktime` affected only addresses and bans; pings and timeouts used a clock that could not be
/// set. In Core they use `NodeClock`: while it stands still, nothing is sent and no peer is late; as soon as it is set
/// 20 minutes ahead, a peer that does not answer is disconnected.
#[test]
fn pings_and_timeouts_go_by_the_mocked_time() {
    let mut bench = Bench::synced(3);
    freeze(&mut bench);
    let peer = bench.connect(ConnectionKind::OutboundFullRelay);
    bench.wait(Duration::from_millis(200));
    let pings = |sent: Vec<Message>| {
        sent.into_iter().filter_map(|message| if let Message::Ping(nonce) = message { nonce } else { None }).collect()
    };
    let first: Vec<u64> = pings(bench.take_sent(peer));
    assert_eq!(first.len(), 1);
    bench.send(peer, Message::Pong(Some(first[0])));
    bench.wait(LONG);
    assert_eq!(pings(bench.take_sent(peer)), [0; 0], "the time stands");
    assert!(bench.ended.is_empty(), "{:?}", bench.ended);

    // Core sends a ping after more than two minutes.
    forward(&mut bench, 2 * MINUTE_S);
    assert_eq!(pings(bench.take_sent(peer)), [0; 0]);
    forward(&mut bench, 1);
    let second = pings(bench.take_sent(peer));
    assert_eq!(second.len(), 1);
    forward(&mut bench, 29);
    bench.send(peer, Message::Pong(Some(second[0])));
    let info = bench.manager.peers(bench.now());
    assert_eq!(info[0].ping_times.map(|(last, _)| last), Some(Duration::from_secs(29)), "to the second, as it was set");

    // Our last bytes were sent 29 seconds before.
    forward(&mut bench, 20 * MINUTE_S - 29);
    forward(&mut bench, 29);
    assert!(bench.ended.is_empty(), "{:?}", bench.ended);
    forward(&mut bench, 1);
    assert_eq!(bench.ended.len(), 1, "it has said nothing for more than 20 minutes");
}

/// A requested block is overdue according to the mocked time; while that stands still, the peer is not disconnected.
#[test]
fn a_block_is_overdue_by_the_mocked_time() {
    let mut bench = Bench::synced(3);
    freeze(&mut bench);
    let peer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    let next = block_on(bench.tip(), 0, Vec::new());
    bench.announce(peer, &[next.header()]);
    assert_eq!(bench.take_asked(peer).len(), 1);
    bench.wait(LONG);
    assert!(bench.ended.is_empty(), "{:?}", bench.ended);
    forward(&mut bench, BLOCK_TIMEOUT.as_secs());
    assert!(bench.ended.is_empty(), "{:?}", bench.ended);
    forward(&mut bench, 1);
    assert_eq!(bench.ended.len(), 1);
}

/// The initial download ends with a tip that is recent according to the mocked time only: like Core's
/// `UpdateIBDStatus`, which checks when the tip changes.
#[test]
fn the_initial_download_goes_by_the_mocked_time() {
    let mut bench = Bench::new();
    bench.mocked = Some(u64::from(START) + 25 * 60 * MINUTE_S);
    bench.grow(3);
    assert!(bench.manager.figures().is_initial, "the tip is of yesterday");
    bench.mocked = Some(u64::from(START));
    bench.wait(Duration::from_secs(1));
    assert!(bench.manager.figures().is_initial, "nothing has changed but the time");
    bench.grow(1);
    assert!(!bench.manager.figures().is_initial);
}

/// Setting the time back delays pending actions, as in Core, and breaks nothing.
#[test]
fn a_time_that_goes_back() {
    let mut bench = Bench::synced(3);
    let peer = bench.connect_synced(ConnectionKind::OutboundFullRelay);
    bench.mocked = Some(u64::from(START) - 60 * MINUTE_S);
    bench.wait(LONG);
    assert!(bench.ended.is_empty(), "{:?}", bench.ended);
    let next = block_on(bench.tip(), 0, Vec::new());
    bench.announce(peer, &[next.header()]);
    bench.send(peer, Message::Block(next.bytes()));
    bench.mocked = None;
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.tip_hash(), next.hash, "blocks are taken all the same");
}

fn mock_forward(bench: &mut Bench, delta: Duration) {
    bench.ask(|reply| Question::MockForward { delta, reply });
}

/// Regression test: `mockscheduler` had no effect. It makes the scheduler's tasks due earlier: writing addresses and
/// bans, and the check for a stale tip, which itself uses the mocked time.
#[test]
fn the_scheduler_is_moved() {
    let mut bench = Bench::with(|settings| settings.connect.chooses_peers = true);
    bench.grow(3);
    freeze(&mut bench);
    bench.wait(Duration::from_secs(1));
    mock_forward(&mut bench, Duration::from_secs(15 * 60 - 2));
    assert_eq!(bench.saved, []);
    bench.wait(Duration::from_secs(2));
    assert_eq!(bench.saved, [SavedFile::Peers]);
    mock_forward(&mut bench, Duration::from_secs(3600));
    assert_eq!(bench.saved, [SavedFile::Peers; 2], "once, however far it was moved");

    assert!(!bench.has_logged("Potential stale tip"));
    forward(&mut bench, 31 * MINUTE_S);
    assert!(!bench.has_logged("Potential stale tip"), "nobody looks yet");
    mock_forward(&mut bench, Duration::from_secs(45));
    assert!(bench.has_logged("Potential stale tip detected"), "{:?}", bench.log);
}
