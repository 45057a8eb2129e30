//! REST, without a login: the paths of Core's `rest.cpp`, with its statuses, types, words and bytes.
//!
//! Input: a path with its query, and a body. Output: a status, a type and bytes. [`ROUTES`] is the table of the paths;
//! each group of them is a module, which answers with the functions that the methods of JSON-RPC use too.
//!
//! Invariants: GET, HEAD, POST and PUT get the same answer, as in Core; nothing is answered before the warm-up is over;
//! room for a large answer is taken from the budget of all answers before the answer is written. Nothing is changed.

mod blocks;
mod chain;
mod coins;
mod filters;
mod headers;
mod reply;
mod request;
mod stored;
mod transactions;

use crate::context::Context;
use reply::Made;
pub(crate) use reply::{Content, Refused, Reply};
use request::Request;

/// The function of a route.
type Handler = fn(&Request<'_>) -> Result<Made, Refused>;

/// A path that is served.
#[derive(Debug)]
pub(crate) struct Route {
    /// What the path starts with. A request belongs to the first route that fits.
    pub(crate) prefix: &'static str,
    pub(crate) reads_body: bool,
    /// What follows the prefix, and what is answered, for the document; empty for a second form of the route before.
    pub(crate) rest: &'static str,
    pub(crate) words: &'static str,
    answer: Handler,
}

const fn route(prefix: &'static str, rest: &'static str, words: &'static str, answer: Handler) -> Route {
    Route { prefix, reads_body: false, rest, words, answer }
}

/// All paths, in Core's order.
pub(crate) const ROUTES: &[Route] = &[
    route(
        "/rest/tx/",
        "<txid>.<bin|hex|json>",
        "a transaction of the mempool or, with `-txindex`, of the chain",
        transactions::transaction,
    ),
    route(
        "/rest/block/notxdetails/",
        "<hash>.<bin|hex|json>",
        "a block; in JSON, with the ids of its transactions",
        blocks::without_details,
    ),
    route(
        "/rest/block/",
        "<hash>.<bin|hex|json>",
        "a block; in JSON, with its transactions and the outputs that they spend",
        blocks::with_details,
    ),
    route("/rest/blockpart/", "<hash>.<bin|hex>?offset=<n>&size=<n>", "bytes of a block", blocks::part),
    route(
        "/rest/blockfilter/",
        "<type>/<hash>.<bin|hex|json>",
        "the filter of a block; the type is `basic`, and `-blockfilterindex` is needed",
        filters::filter,
    ),
    route(
        "/rest/blockfilterheaders/",
        "<type>/<hash>.<bin|hex|json>?count=<n>",
        "the headers of the filters of a block and of those after it",
        filters::headers,
    ),
    route("/rest/chaininfo", ".json", "what `getblockchaininfo` answers", chain::chain_info),
    route(
        "/rest/mempool/",
        "<info|contents>.json?verbose=<bool>&mempool_sequence=<bool>",
        "what `getmempoolinfo` or `getrawmempool` answers; `verbose` is true unless it is given",
        chain::mempool,
    ),
    route(
        "/rest/headers/",
        "<hash>.<bin|hex|json>?count=<n>",
        "the header of a block of the chain and those after it, 5 unless the number is given",
        headers::headers,
    ),
    Route {
        reads_body: true,
        ..route(
            "/rest/getutxos",
            "/checkmempool/<txid>-<n>/<txid>-<n>....<bin|hex|json>",
            "which outputs are unspent, and the coins (BIP-0064); `/checkmempool` is optional",
            coins::coins,
        )
    },
    route("/rest/deploymentinfo/", "<hash>.json", "what `getdeploymentinfo` answers", chain::deployment_info),
    route("/rest/deploymentinfo", "", "", chain::deployment_info),
    route(
        "/rest/blockhashbyheight/",
        "<height>.<bin|hex|json>",
        "the hash of the block of the chain at a height",
        headers::hash_by_height,
    ),
    route(
        "/rest/spenttxouts/",
        "<hash>.<bin|hex|json>",
        "the outputs that each transaction of a block spends",
        blocks::spent_outputs,
    ),
];

/// What the paths start with, in the order in which they are tried.
pub fn prefixes() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().map(|route| route.prefix)
}

/// Answers a request on this thread: a status and a body. `None` if there is no such path, if the method behind it
/// failed, or if other answers take all the memory.
pub fn answer(context: &Context, uri: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let reply = Route::find(uri)?.answer(context, uri, body).ok()?;
    Some((reply.status, reply.content.collect()?))
}

impl Route {
    /// The route of a path.
    pub(crate) fn find(uri: &str) -> Option<&'static Route> {
        ROUTES.iter().find(|route| uri.starts_with(route.prefix))
    }

    /// Answers a request. `uri`: the path with the query.
    pub(crate) fn answer(&self, context: &Context, uri: &str, body: &[u8]) -> Result<Reply, Refused> {
        let part = uri.strip_prefix(self.prefix).unwrap_or(uri);
        let request = Request::new(context, part, body);
        let made = (self.answer)(&request).or_else(Refused::reply);
        request.finish(made?)
    }
}
