//! [`FIGURES`]: what the server counts, for the node's table of figures. Input: an [`Operator`], which outlives the
//! server. No figure names a script or a client.

use crate::methods::methods;
use crate::registry::Operator;
use lydian_serve::figures::{Figure, Label, OTHER, Requests};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the sessions count.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) requests: Arc<Requests>,
    /// What the notifier looked up.
    pub(crate) lookups: AtomicU64,
    /// Lines that waited because their clients cost much.
    pub(crate) throttled: AtomicU64,
    /// Sessions that ended because their clients cost too much.
    pub(crate) ended: AtomicU64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            requests: Arc::new(Requests::new(methods().map(|method| method.name))),
            lookups: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

const METHOD: Label = Label { name: "method", values: || methods().map(|method| method.name).chain([OTHER]).collect() };

/// The figures of the Electrum server.
pub const FIGURES: &[Figure<Operator>] = &[
    Figure::gauge("lydian_electrum_connections", "connections", "Open connections to the Electrum server.", |server, out| {
        out.count(server.control.connections() as u64)
    }),
    Figure::gauge("lydian_electrum_sessions", "sessions", "Sessions of Electrum clients that have sent a byte.", |server, out| {
        out.count(server.registry.totals().0 as u64)
    }),
    Figure::gauge("lydian_electrum_subscriptions", "subscriptions", "Scripts, outputs and transactions that the sessions watch.", |server, out| {
        out.count(server.registry.totals().1 as u64)
    }),
    Figure::histogram(
        "lydian_electrum_request_seconds",
        "Duration of the requests for each method of the Electrum protocol. Requests for an unknown method count as other.",
        |server: &Operator, out| server.counts.requests.read_seconds(out),
    )
    .by(&[METHOD]),
    Figure::counter(
        "lydian_electrum_errors_total",
        "requests",
        "Requests for each method of the Electrum protocol that were answered with an error.",
        |server: &Operator, out| server.counts.requests.read_errors(out),
    )
    .by(&[METHOD]),
    Figure::counter(
        "lydian_electrum_lookups_total",
        "lookups",
        "Subscribed scripts, outputs and transactions that were looked up because a block or the mempool touched them.",
        |server, out| out.count(server.counts.lookups.load(Ordering::Relaxed)),
    ),
    Figure::counter(
        "lydian_electrum_throttled_total",
        "lines",
        "Lines of Electrum clients whose answers were delayed because of their cost.",
        |server, out| out.count(server.counts.throttled.load(Ordering::Relaxed)),
    ),
    Figure::counter(
        "lydian_electrum_ended_total",
        "sessions",
        "Sessions of Electrum clients that were ended because of their cost.",
        |server, out| out.count(server.counts.ended.load(Ordering::Relaxed)),
    ),
];
