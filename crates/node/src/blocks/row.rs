//! [`Row`]: a block of the active chain, for the page. Data only.

use super::facts::Facts;
use lydian_engine::{Arrival, BlockSource, BlockTimes, HeaderInfo, SettledBlock};
use lydian_p2p::SentBlock;
use lydian_primitives::{BlockHash, Header};

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) height: u32,
    pub(crate) hash: BlockHash,
    pub(crate) header: Header,
    /// Unknown if the block is pruned.
    pub(crate) facts: Option<Facts>,
    /// Only for blocks that were connected since the start.
    pub(crate) live: Option<Live>,
    /// Who sent it first, if a peer did since the start.
    pub(crate) sent: Option<SentBlock>,
}

/// What is known only of a block that was connected since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Live {
    pub(crate) source: Source,
    /// When all of its bytes were here, in microseconds since 1970.
    pub(crate) received: Option<u64>,
    pub(crate) is_at_tip: bool,
    /// Signature and tweak checks.
    pub(crate) checks: u64,
    pub(crate) steps: Steps,
}

/// Where a block came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The peer with this number.
    Peer(u64),
    /// A call, such as `submitblock`.
    Call,
    /// A file, or a peer too long before the block was connected.
    Disk,
}

/// Milliseconds from one step of a block to the next. `None` for a step that it did not take.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Steps {
    /// Its bytes were here, and other blocks were parsed.
    pub(crate) queue: Option<f64>,
    pub(crate) read: Option<f64>,
    pub(crate) parse: Option<f64>,
    pub(crate) check: Option<f64>,
    pub(crate) store: Option<f64>,
    /// It was stored, and blocks below it were validated.
    pub(crate) wait: Option<f64>,
    pub(crate) fund: f64,
    pub(crate) verify: f64,
    pub(crate) commit: f64,
    pub(crate) apply: f64,
    /// From the last byte, or from its turn, to the end.
    pub(crate) total: f64,
}

fn ms(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

impl Steps {
    pub(crate) fn of(times: &BlockTimes) -> Steps {
        let BlockTimes { begun, funded, verified, committed, settled, .. } = *times;
        let read = times.reading.map(|reading| (reading.read, reading.parse, reading.check));
        let (read_ns, parse_ns, check_ns) = read.unwrap_or_default();
        // The clock of the run starts before it reads the block.
        let in_hand = begun + read_ns + parse_ns + check_ns;
        let mut steps = Steps {
            read: read.map(|_| ms(0, read_ns)),
            parse: read.map(|_| ms(0, parse_ns)),
            check: read.map(|_| ms(0, check_ns)),
            fund: ms(in_hand, funded),
            verify: ms(funded, verified),
            commit: ms(verified, committed),
            apply: ms(committed, settled),
            total: ms(begun, settled),
            ..Steps::default()
        };
        if let Some(Arrival { received, begun: taken, parsed, checked, stored, .. }) = times.arrival {
            // A block that waited for too long is parsed and checked twice.
            steps.queue = Some(ms(received, taken));
            steps.parse = Some(ms(taken, parsed + parse_ns));
            steps.check = Some(ms(parsed, checked + check_ns));
            steps.store = Some(ms(checked, stored));
            steps.wait = Some(ms(stored, begun));
            steps.total = ms(received, settled);
        }
        steps
    }
}

impl Row {
    /// A block that was just connected; `now` is the time in microseconds since 1970.
    pub(crate) fn connected(block: &SettledBlock<'_>, facts: Facts, now: u64) -> Row {
        let times = &block.times;
        let source = times.arrival.map_or(Source::Disk, |arrival| match arrival.source {
            BlockSource::Peer(id) => Source::Peer(id),
            BlockSource::Call => Source::Call,
        });
        let age = |arrival: Arrival| times.settled.saturating_sub(arrival.received) / 1_000;
        let checks = block.checks;
        Row {
            height: times.height.0,
            hash: times.hash,
            header: *block.block.header(),
            facts: Some(facts),
            live: Some(Live {
                source,
                received: times.arrival.map(|arrival| now.saturating_sub(age(arrival))),
                is_at_tip: block.is_at_tip,
                checks: checks.ecdsa + checks.schnorr + checks.tweak,
                steps: Steps::of(times),
            }),
            sent: None,
        }
    }

    /// A block from before this start.
    pub(crate) fn of_the_chain(info: &HeaderInfo, facts: Option<Facts>) -> Row {
        Row {
            height: info.node.height.0,
            hash: info.node.hash,
            header: info.node.header,
            facts,
            live: None,
            sent: None,
        }
    }
}
