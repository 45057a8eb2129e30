//! [`FIGURES`]: what the feed counts, for the node's table of figures. Input: a [`Counts`], which outlives the server.
//! No figure names an address or a client.

use lydian_serve::figures::{Figure, Label, OTHER, Requests};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The paths of the feed.
pub(super) const STREAM: &str = "/feed/1/stream";
pub(super) const ASK: &str = "/feed/1/ask";
pub(super) const CALL: &str = "/feed/1/call";

const PATHS: [&str; 3] = [ASK, CALL, STREAM];

/// What the server has done so far.
#[derive(Clone, Debug)]
pub struct Counts {
    pub(super) requests: Arc<Requests>,
    numbers: Arc<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    streams: AtomicU64,
    bytes: AtomicU64,
    slow: AtomicU64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { requests: Arc::new(Requests::new(PATHS)), numbers: Arc::default() }
    }
}

impl Counts {
    /// The streams that are open.
    pub fn streams(&self) -> u64 {
        self.numbers.streams.load(Ordering::Relaxed)
    }

    /// The bytes of streams and answers.
    pub fn bytes(&self) -> u64 {
        self.numbers.bytes.load(Ordering::Relaxed)
    }

    /// The streams that were closed because they did not read.
    pub fn slow(&self) -> u64 {
        self.numbers.slow.load(Ordering::Relaxed)
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.numbers.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn closed_slow(&self) {
        self.numbers.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream is open until the guard is dropped.
    pub(super) fn opened(&self) -> Opened {
        self.numbers.streams.fetch_add(1, Ordering::Relaxed);
        Opened(Arc::clone(&self.numbers))
    }
}

/// Counts a stream as open until it is dropped.
#[derive(Debug)]
pub(super) struct Opened(Arc<Numbers>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

const PATH: Label = Label { name: "path", values: || PATHS.into_iter().chain([OTHER]).collect() };

/// The figures of the feed.
pub const FIGURES: &[Figure<Counts>] = &[
    Figure::gauge(
        "lydian_feed_streams",
        "streams",
        "Open streams of the feed: front ends that follow this node.",
        |counts, out| {
            out.count(counts.streams());
        },
    ),
    Figure::counter(
        "lydian_feed_sent_bytes_total",
        "bytes",
        "Bytes of the streams and answers of the feed.",
        |counts, out| out.count(counts.bytes()),
    ),
    Figure::counter(
        "lydian_feed_slow_streams_total",
        "streams",
        "Streams of the feed that were closed because their reader was too slow.",
        |counts, out| out.count(counts.slow()),
    ),
    Figure::histogram(
        "lydian_feed_request_seconds",
        "Duration of the requests for each path of the feed; of a stream, until it begins.",
        |counts: &Counts, out| counts.requests.read_seconds(out),
    )
    .by(&[PATH]),
    Figure::counter(
        "lydian_feed_errors_total",
        "requests",
        "Requests for each path of the feed that were refused.",
        |counts: &Counts, out| counts.requests.read_errors(out),
    )
    .by(&[PATH]),
];
