//! Runs one seed from its cast to its verdict. Input: a seed. Output: a [`Report`]; its failures describe what went
//! wrong.

use crate::actor::Verdict;
use crate::cast::{Plot, cast};
use crate::link::{MEMORY, SEND_BUFFER_BYTES};
use crate::node::DOWNLOAD_BYTES;
use lydian_net::limits::BLOCKS_QUEUED;
use lydian_p2p::limits::{
    BLOCK_ROOM_BYTES, BLOCKS_IN_FLIGHT_PER_PEER_MAX, HEADERS_COUNT_MAX, PEER_ANNOUNCEMENTS_MAX, PEER_FIXED_BYTES,
    PEER_SUBMISSIONS_MAX,
};
use lydian_primitives::BlockHash;
use lydian_wire::limits::MESSAGE_SIZE_MAX;
use std::time::Duration;

/// Time to run after the end is reached. Nothing may go wrong in it.
const AFTERMATH: Duration = Duration::from_secs(3);

/// Limit for the bytes that the node holds for one connection: the send buffer, and one more message in each direction.
const LINK_BYTES_MAX: usize = SEND_BUFFER_BYTES + 2 * MESSAGE_SIZE_MAX;

/// Limit for headers that wait for the work of their chain: the buffer for regtest, and one message.
const HEADERS_BUFFERED_MAX: usize = 7_017 + HEADERS_COUNT_MAX;

/// Limit for bytes of blocks that are requested, or received and not yet validated: the window, and one more block.
#[allow(clippy::cast_possible_truncation, reason = "a constant of some millions")]
const BLOCK_BYTES_MAX: usize = DOWNLOAD_BYTES as usize + MESSAGE_SIZE_MAX;

/// The result of a seed.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// A digest of every byte and time.
    pub trace: u64,
    /// When the node reached the honest chain.
    pub reached: Option<Duration>,
    /// How long the world ran.
    pub lived: Duration,
    pub failures: Vec<String>,
    pub met: Met,
    pub log: Vec<String>,
}

/// Counts of rare events in a world, so that a test can require that they occur.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Evicted peers.
    pub evicted: usize,
    /// Peers that the node retried with v1.
    pub retries: usize,
    /// Reports of partly received messages to the manager.
    pub progress: usize,
    /// Maximum number of headers buffered in the second pass.
    pub buffered_headers: usize,
    /// How often the node did not read from a peer for lack of memory, and the maximum memory held for all peers.
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
        must(false, &|| format!("{actor:?} has not finished"));
    }
    if reached.is_some() {
        let coins = world.node.engine.utxo_hashes().unwrap().hash_serialized_3;
        must(coins == plot.coins, &|| "the coins are not those of the honest chain".to_owned());
    }
    must(!world.has_twin_groups, &|| "two chosen outbound peers are in the same group".to_owned());
    must(world.most.inbound <= plot.inbound_max, &|| {
        format!("{} inbound peers at once, with {} slots", world.most.inbound, plot.inbound_max)
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
            Verdict::Honest => must(dropped.is_empty(), &|| format!("{name:?} ({index}) was dropped: {dropped:?}")),
            Verdict::Spared => {}
            Verdict::Dropped | Verdict::Discouraged => {
                must(!dropped.is_empty(), &|| format!("{name:?} ({index}) was not dropped"));
            }
        }
    }
    failures
}

/// Number of entries in both address tables.
const ADDRESSES_MAX: usize = (1024 + 256) * 64;

/// Limit for blocks whose sender is remembered: all blocks of all chains in the world.
const SOURCES_MAX: usize = 1_000;

/// The orphanage: weight for each peer, and announcements.
const ORPHAN_WEIGHT: usize = 404_000;
const ORPHAN_ANNOUNCEMENTS_MAX: usize = 3_000;

/// The default of `-blockreconstructionextratxn`.
const EXTRA_TXS_MAX: usize = 100;

/// Limit for the memory of all peers: the share of each, room for those from which blocks are requested, and the common
/// part.
fn memory_max(links: usize) -> usize {
    MEMORY.common + MEMORY.rooms * BLOCK_ROOM_BYTES + links * (MEMORY.share + PEER_FIXED_BYTES)
}

/// Returns a failure for each part of the manager's memory that exceeded its limit.
fn held(plot: &Plot) -> Vec<String> {
    let (held, peers) = (plot.world.most.held, plot.world.most.links);
    let bounds = [
        ("peers", held.peers, peers),
        ("addresses", held.addresses, ADDRESSES_MAX),
        ("sources", held.sources, SOURCES_MAX),
        ("blocks that wait to be stored", held.pending, BLOCKS_QUEUED),
        ("blocks in flight", held.in_flight, peers * BLOCKS_IN_FLIGHT_PER_PEER_MAX),
        ("headers in buffers", held.buffered_headers, peers * HEADERS_BUFFERED_MAX),
        ("bytes of blocks", usize::try_from(held.block_bytes).unwrap(), BLOCK_BYTES_MAX),
        ("nonces", held.nonces, peers),
        ("actions", held.actions, 0),
        ("tracked announcements", held.tx_announcements, peers * PEER_ANNOUNCEMENTS_MAX),
        ("weight units of orphans", usize::try_from(held.orphan_weight).unwrap(), peers * ORPHAN_WEIGHT),
        ("announcements of orphans", held.orphan_announcements, ORPHAN_ANNOUNCEMENTS_MAX),
        ("undecided transactions", held.undecided, peers * PEER_SUBMISSIONS_MAX),
        ("transactions for compact blocks", held.extra, EXTRA_TXS_MAX),
    ];
    let beyond = bounds.into_iter().filter(|(_, most, bound)| most > bound);
    beyond.map(|(what, most, bound)| format!("{most} {what} were held, at most {bound} should be")).collect()
}
