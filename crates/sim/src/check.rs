//! One seed from its cast to its verdict. Input: a seed. Output: a [`Report`]; its failures say what went wrong.

use crate::actor::Verdict;
use crate::cast::{Plot, cast};
use crate::link::{MEMORY, SEND_BUFFER_BYTES};
use crate::node::DOWNLOAD_BYTES;
use lydian_p2p::limits::{BLOCK_ROOM_BYTES, BLOCKS_IN_FLIGHT_PER_PEER_MAX, HEADERS_COUNT_MAX, PEER_FIXED_BYTES};
use lydian_primitives::BlockHash;
use lydian_wire::limits::MESSAGE_SIZE_MAX;
use std::time::Duration;

/// Time that passes after the end is reached, in which nothing may go wrong.
const AFTERMATH: Duration = Duration::from_secs(3);

/// Bytes that the node may hold for one connection: what waits to go out, and one message more, each way.
const LINK_BYTES_MAX: usize = SEND_BUFFER_BYTES + 2 * MESSAGE_SIZE_MAX;

/// Headers that wait for their chain's work: the buffer of regtest, and one message.
const HEADERS_BUFFERED_MAX: usize = 7_017 + HEADERS_COUNT_MAX;

/// Bytes of blocks that are here and not validated, or asked for: the window, and one block more.
#[allow(clippy::cast_possible_truncation, reason = "a constant of some millions")]
const BLOCK_BYTES_MAX: usize = DOWNLOAD_BYTES as usize + MESSAGE_SIZE_MAX;

/// What became of a seed.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// A digest of every byte and moment.
    pub trace: u64,
    /// When the node had the honest chain.
    pub reached: Option<Duration>,
    /// How long the world lived.
    pub lived: Duration,
    pub failures: Vec<String>,
    pub met: Met,
    pub log: Vec<String>,
}

/// What a world came to, so that none of it is missing from all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Peers that had to go for another.
    pub evicted: usize,
    /// Peers tried again with v1.
    pub retries: usize,
    /// Parts of long messages that the manager was told of.
    pub progress: usize,
    /// Headers that waited in the second pass, at most.
    pub buffered_headers: usize,
    /// How often a peer was not read from for want of memory, and the most that was held for all.
    pub shortages: usize,
    pub memory_peak: usize,
}

/// Runs a seed.
pub fn run(seed: u64, is_logged: bool) -> Report {
    let mut plot = cast(seed, is_logged);
    if is_logged {
        let cast = plot.world.actors.iter().enumerate();
        plot.world.log = cast.map(|(index, actor)| format!("{index}: {actor:?}")).collect();
    }
    let mut reached = None;
    let end = plot.end.tip().hash;
    while plot.world.now <= plot.deadline {
        plot.world.step();
        if tip(&plot) != end {
            reached = None;
        } else if reached.is_none() {
            reached = Some(plot.world.now);
        }
        let is_over = reached.is_some_and(|at| plot.world.now > at + AFTERMATH);
        if is_over && plot.world.are_all_done() {
            break;
        }
    }
    let failures = failures(&plot, reached);
    if is_logged {
        let peers = plot.world.node.manager.peers(plot.world.moment());
        plot.world.log.extend(peers.iter().map(|peer| format!("{peer:?}")));
    }
    let (trace, lived) = (plot.world.trace(), plot.world.now);
    let world = plot.world;
    let met = Met {
        evicted: world.dropped.iter().filter(|dropped| dropped.reason.ends_with("connection for eviction")).count(),
        retries: world.retries,
        progress: world.progress,
        buffered_headers: world.most.held.buffered_headers,
        shortages: world.shortages,
        memory_peak: world.memory.usage().peak,
    };
    Report { seed, trace, reached, lived, failures, met, log: world.log }
}

fn tip(plot: &Plot) -> BlockHash {
    plot.world.node.engine.tip().hash
}

fn failures(plot: &Plot, reached: Option<Duration>) -> Vec<String> {
    let mut failures = Vec::new();
    let mut must = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            failures.push(what());
        }
    };
    let world = &plot.world;
    let (wanted, found) = (plot.end.tip(), world.node.engine.tip());
    must(reached.is_some(), &|| {
        format!("the tip is {} at {:?} and not {} after {:?}", found.hash, found.height, wanted.hash, plot.deadline)
    });
    for actor in world.actors.iter().filter(|actor| !actor.is_done()) {
        must(false, &|| format!("{actor:?} has not done what it wanted to"));
    }
    if reached.is_some() {
        let coins = world.node.engine.utxo_hashes().unwrap().hash_serialized_3;
        must(coins == plot.coins, &|| "the coins are not those of the honest chain".to_owned());
    }
    must(!world.has_twin_groups, &|| "two peers that were chosen are of one group".to_owned());
    must(world.most.inbound <= plot.inbound_max, &|| {
        format!("{} inbound peers at once, and room for {}", world.most.inbound, plot.inbound_max)
    });
    must(world.most.link_bytes <= LINK_BYTES_MAX, &|| {
        format!("{} bytes were held for one connection", world.most.link_bytes)
    });
    must(world.most.burst_bytes <= MESSAGE_SIZE_MAX, &|| {
        format!("one message made the node want to send {} bytes", world.most.burst_bytes)
    });
    let (used, bound) = (world.memory.usage(), memory_max(world.most.links));
    must(used.peak <= bound, &|| format!("{} bytes were held for all peers, at most {bound} should be", used.peak));
    failures.extend(held(plot));
    let mut must = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            failures.push(what());
        }
    };
    for (index, actor) in world.actors.iter().enumerate() {
        let body = &actor.body;
        let is_discouraged = world.node.manager.bans().is_discouraged(&body.endpoint.addr);
        let dropped: Vec<_> = world.dropped.iter().filter(|dropped| dropped.actor == index).collect();
        let (name, verdict) = (&actor, body.due());
        must(is_discouraged == (verdict == Verdict::Discouraged), &|| {
            format!("{name:?} ({index}) is discouraged: {is_discouraged}, and should be {verdict:?}; {dropped:?}")
        });
        match verdict {
            Verdict::Honest => must(dropped.is_empty(), &|| format!("{name:?} ({index}) was sent away: {dropped:?}")),
            Verdict::Spared => {}
            Verdict::Dropped | Verdict::Discouraged => {
                must(!dropped.is_empty(), &|| format!("{name:?} ({index}) was not sent away"));
            }
        }
    }
    failures
}

/// Entries of the address tables: all places of both.
const ADDRESSES_MAX: usize = (1024 + 256) * 64;

/// Blocks whose sender is remembered: those of all chains of the world, at most.
const SOURCES_MAX: usize = 1_000;

/// Bytes that all peers may take: the share of each, room for those that are asked for blocks, and what is open to all.
fn memory_max(links: usize) -> usize {
    MEMORY.common + MEMORY.rooms * BLOCK_ROOM_BYTES + links * (MEMORY.share + PEER_FIXED_BYTES)
}

/// What of the manager's memory is beyond its bounds.
fn held(plot: &Plot) -> Vec<String> {
    let (held, peers) = (plot.world.most.held, plot.world.most.links);
    let bounds = [
        ("peers", held.peers, peers),
        ("addresses", held.addresses, ADDRESSES_MAX),
        ("sources", held.sources, SOURCES_MAX),
        ("blocks in flight", held.in_flight, peers * BLOCKS_IN_FLIGHT_PER_PEER_MAX),
        ("headers in buffers", held.buffered_headers, peers * HEADERS_BUFFERED_MAX),
        ("bytes of blocks", usize::try_from(held.block_bytes).unwrap(), BLOCK_BYTES_MAX),
        ("nonces", held.nonces, peers),
        ("actions", held.actions, 0),
    ];
    let beyond = bounds.into_iter().filter(|(_, most, bound)| most > bound);
    beyond.map(|(what, most, bound)| format!("{most} {what} were held, at most {bound} should be")).collect()
}
