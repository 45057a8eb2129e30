//! [`FIGURES`]: what the server counts, for the node's table of figures. Input: a [`Counts`], which outlives the
//! server. No figure names an address or a client.

use crate::routes::ROUTES;
use lydian_serve::Control;
use lydian_serve::figures::{Figure, Label, OTHER, Requests};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the server has done so far.
#[derive(Clone, Debug)]
pub struct Counts {
    pub(crate) requests: Arc<Requests>,
    pub(crate) control: Control,
}

/// The counter of the requests for each path.
pub(crate) fn requests() -> Arc<Requests> {
    Arc::new(Requests::new(paths()))
}

const PATH: Label = Label { name: "path", values: || paths().into_iter().chain([OTHER]).collect() };

/// Without those that are there twice, for two HTTP methods.
fn paths() -> BTreeSet<&'static str> {
    ROUTES.iter().map(|route| route.path).collect()
}

/// The figures of the Esplora server.
pub const FIGURES: &[Figure<Counts>] = &[
    Figure::gauge(
        "lydian_esplora_connections",
        "connections",
        "Open connections to the Esplora server.",
        |counts, out| out.count(counts.control.connections() as u64),
    ),
    Figure::histogram(
        "lydian_esplora_request_seconds",
        "Duration of the requests for each path of the Esplora API. Requests for an unknown path count as other.",
        |counts: &Counts, out| counts.requests.read_seconds(out),
    )
    .by(&[PATH]),
    Figure::counter(
        "lydian_esplora_errors_total",
        "requests",
        "Requests for each path of the Esplora API that were answered with an error.",
        |counts: &Counts, out| counts.requests.read_errors(out),
    )
    .by(&[PATH]),
];
