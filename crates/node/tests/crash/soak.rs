//! A long run: peers that connect, attack and leave, and RPC clients, against one node. After a sixth of the time (ten
//! minutes of the hour) its memory does not grow by more than 5 %, and the number of its open files is constant. The
//! memory after a round depends on its attack, so the largest memory of each cycle of all attacks is compared with that
//! of the first cycle. `LYDIAN_SOAK_SECONDS` is the length of the run (`make soak`: one hour); without it nothing is
//! run.

use crate::attack::{Attack, Attackers, Known};
use crate::hostile::{memory_kb, wait_until};
use crate::peers::{ADDRESS, Peer, fresh};
use crate::process::setting;
use lydian_oracle::Scratch;
use lydian_primitives::Header;
use std::time::{Duration, Instant};

/// A round of load and the quiet time after it, at whose end a sample is taken.
const ROUND: Duration = Duration::from_secs(40);
const QUIET: Duration = Duration::from_secs(20);

/// How long it may take until the node has noticed that all peers are gone. One that is not read from, and whose last
/// bytes fill the socket, is noticed by a ping, which is sent every two minutes.
const NOTICE_MAX: Duration = Duration::from_secs(150);

/// How long it takes until freed memory is returned after the last connection: the node does it five times, every two
/// seconds. The connection of the last call has ended too by then.
const RETURN: Duration = Duration::from_secs(15);

/// Number of peers at a time.
const PEERS: usize = 40;

/// Percentage by which memory may grow.
const GROWTH_PERCENT: u64 = 5;

/// A sample at the end of a round.
#[derive(Clone, Copy, Debug)]
struct Sample {
    memory_kb: u64,
    files: usize,
}

#[allow(clippy::disallowed_methods, reason = "a test looks at the process that it started")]
fn sample(id: u32) -> Sample {
    Sample { memory_kb: memory_kb(id, "VmRSS"), files: std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count() }
}

/// Sends requests of clients, valid and invalid.
fn ask(peer: &Peer, round: usize) {
    for (method, params) in [
        ("getpeerinfo", "[]".to_owned()),
        ("getblockchaininfo", "[]".to_owned()),
        ("getnetworkinfo", "[]".to_owned()),
        ("getblockhash", format!("[{}]", round % 100)),
        ("getblock", "[\"00\"]".to_owned()),
        ("getnodeaddresses", "[0]".to_owned()),
        ("nosuchmethod", "[]".to_owned()),
    ] {
        peer.call(method, &params);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
fn memory_and_files_stay_through_a_soak() {
    let Some(seconds) = setting("LYDIAN_SOAK_SECONDS") else {
        return eprintln!("not run: LYDIAN_SOAK_SECONDS=3600 runs peers and clients against a node for an hour");
    };
    let (whole, warm_up) = (Duration::from_secs(seconds), Duration::from_secs(seconds / 6));
    let scratch = Scratch::new("soak");
    let peer = Peer::start(&fresh(&scratch.path().join("node")));
    peer.call("generatetoaddress", &format!("[150, \"{ADDRESS}\"]")).unwrap();
    let headers = peer.headers(1..100);
    let known = Known { blocks: headers.iter().map(Header::hash).collect(), headers };
    let (began, mut rounds, mut samples) = (Instant::now(), 0, Vec::<Sample>::new());
    while began.elapsed() < whole {
        let attack = Attack::ALL[rounds % Attack::ALL.len()];
        let attackers = [
            Attackers::start(attack, PEERS, peer.port, &known),
            Attackers::start(Attack::Churn, PEERS / 2, peer.port, &known),
        ];
        let round = Instant::now();
        while round.elapsed() < ROUND {
            ask(&peer, rounds);
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(attackers);
        std::thread::sleep(QUIET);
        wait_until(NOTICE_MAX, || peer.call("getconnectioncount", "[]").is_some_and(|count| count == 0));
        std::thread::sleep(RETURN);
        let now = sample(peer.id());
        eprintln!("{:5} s, {attack:?}: {now:?}", began.elapsed().as_secs());
        rounds += 1;
        if began.elapsed() < warm_up {
            continue;
        }
        samples.push(now);
        assert_eq!(now.files, samples[0].files, "open files");
    }
    let cycles: Vec<u64> = samples
        .chunks_exact(Attack::ALL.len())
        .filter_map(|cycle| cycle.iter().map(|sample| sample.memory_kb).max())
        .collect();
    eprintln!("most memory of each cycle, kB: {cycles:?}");
    let [first, later @ ..] = &cycles[..] else { panic!("{seconds} s are too short for two cycles") };
    assert!(!later.is_empty(), "{seconds} s are too short for two cycles");
    let allowed = first + first * GROWTH_PERCENT / 100;
    assert!(later.iter().all(|most| *most <= allowed), "memory grows: {cycles:?}");
    peer.stop();
}
