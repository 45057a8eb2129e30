//! What the servers for wallets and front ends answer from in a node: one [`Query`], and the RPC methods of this
//! process.
//! What the servers for wallets need of any process ([`Parts`]), and their log.

use crate::listening::Listening;
use crate::log::{Category, Log};
use crate::settings::Settings;
use crate::signals::Hangups;
use lydian_disk::Disk;
use lydian_engine::Engine;
use lydian_index::{ADDRESSINDEX_NAME, TxIndexReader};
use lydian_mempool::Mempool;
use lydian_query::{
    CallError, Calls, Chain, NodeChain, NodeIndex, NodePool, Pool, PrunedBlocks, Query, QueryError, ScriptIndex, Source,
};
use lydian_rpc::{Context, ElectrumServer, Whitelist};
use lydian_serve::{ClientEvent, Event, Subnet};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What every server for wallets answers from.
#[derive(Debug)]
pub(crate) struct Answers {
    query: Arc<Query>,
    prompt: Arc<Query>,
    chain: Arc<dyn Chain>,
    pool: Arc<dyn Pool>,
    context: Arc<Context>,
}

impl Answers {
    /// `index` is `None` with `-addressindex=0`, or if it could not be opened. `pruned`: where blocks come from that
    /// the node has pruned.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        mempool: &Arc<Mempool>,
        index: Option<TxIndexReader>,
        context: Arc<Context>,
        pruned: PrunedBlocks,
    ) -> Answers {
        let chain = NodeChain::new(engine).with_pruned(pruned);
        let prompt: Arc<dyn Chain> = Arc::new(chain.without_waiting());
        let chain: Arc<dyn Chain> = Arc::new(chain);
        let index = index.filter(|reader| reader.profile().has_scripts);
        let new = |reader| NodeIndex::new(reader, Arc::clone(&chain), engine).named(ADDRESSINDEX_NAME);
        let index = index.map(new);
        let prompt_index = index.as_ref().map(|index| index.on(Arc::clone(&prompt)));
        let pool: Arc<dyn Pool> = Arc::new(NodePool::new(mempool, engine));
        let missing = || match context.indexes().unopened(ADDRESSINDEX_NAME) {
            Some(reason) => QueryError::Failed(reason),
            None => QueryError::NoIndex,
        };
        let settings = |chain, index: Option<NodeIndex>| {
            let index = index.map(|index| Arc::new(index) as Arc<dyn ScriptIndex>).ok_or_else(missing);
            lydian_query::Settings { chain, index, pool: Arc::clone(&pool) }
        };
        let query = Query::new(settings(Arc::clone(&chain), index));
        let prompt = query.through(settings(prompt, prompt_index));
        Answers { query: Arc::new(query), prompt: Arc::new(prompt), chain, pool, context }
    }

    /// The chain, whose answers may wait for pruned blocks.
    pub(crate) fn chain(&self) -> Arc<dyn Chain> {
        Arc::clone(&self.chain)
    }

    pub(crate) fn pool(&self) -> Arc<dyn Pool> {
        Arc::clone(&self.pool)
    }

    /// The methods about the Electrum server are answered from now on.
    pub(crate) fn has_electrum(&self, server: Arc<dyn ElectrumServer>) {
        self.context.set_electrum(server);
    }

    /// `user`: the name under which calls of RPC methods are logged.
    pub(crate) fn source(&self, user: &'static str) -> Source {
        let calls = Arc::new(NodeCalls { context: Arc::clone(&self.context), user });
        Source { query: Arc::clone(&self.query), prompt: Arc::clone(&self.prompt), calls, is_remote: false }
    }
}

/// What a server for wallets needs of its process, which is a node or a front end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) log: &'a Arc<Log>,
    pub(crate) hangups: &'a Hangups,
    /// Where its addresses are entered.
    pub(crate) listening: &'a Listening,
}

/// All addresses.
pub(crate) fn everyone() -> Vec<Subnet> {
    ["0.0.0.0/0", "::/0"].into_iter().filter_map(|text| Subnet::parse(text, true).ok()).collect()
}

/// The RPC methods of this process.
#[derive(Debug)]
struct NodeCalls {
    context: Arc<Context>,
    /// The name under which the calls are logged.
    user: &'static str,
}

/// An answer of RPC.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    code: i32,
    message: String,
}

impl Calls for NodeCalls {
    fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        call(&self.context, &Whitelist::default(), self.user, method, params)
    }
}

/// Core's error for a method that `-rpcwhitelist` does not allow has no body, but this status.
const FORBIDDEN: u16 = 403;

/// The error for it.
pub(crate) fn not_whitelisted(user: &str, method: &str) -> String {
    format!("-rpcwhitelist does not let {user:?} call {method}.")
}

/// Calls an RPC method of this process for a user, with parameters as JSON. Returns the result as JSON.
pub(crate) fn call(
    context: &Context,
    whitelist: &Whitelist,
    user: &str,
    method: &str,
    params: &str,
) -> Result<String, CallError> {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":{},\"params\":{params}}}", json!(method));
    let reply = lydian_rpc::exec::execute(context, lydian_rpc::table::METHODS, whitelist, user, body.as_bytes());
    // The parameters may have private keys.
    lydian_disk::wiping(usize::MAX, || drop(body));
    let internal = |message: String| CallError { code: -32603, message };
    if reply.status == FORBIDDEN {
        return Err(internal(not_whitelisted(user, method)));
    }
    let body = reply.body.unwrap_or_default();
    let answer: Answer<'_> = serde_json::from_slice(&body).map_err(|error| internal(error.to_string()))?;
    match (answer.error, answer.result) {
        (Some(AnswerError { code, message }), _) => Err(CallError { code, message }),
        (None, Some(result)) => Ok(result.get().to_owned()),
        (None, None) => Ok("null".to_owned()),
    }
}

/// Writes what happens in a server to the log.
#[derive(Debug)]
pub(crate) struct ToLog {
    server: &'static str,
    log: Arc<Log>,
}

impl ToLog {
    /// `server`: its name.
    pub(crate) fn new(server: &'static str, log: &Arc<Log>) -> Arc<ToLog> {
        Arc::new(ToLog { server, log: Arc::clone(log) })
    }

    fn debug(&self, words: impl FnOnce() -> String) {
        self.log.debug(Category::NET, || format!("{}: {}", self.server, words()));
    }
}

impl lydian_serve::Log for ToLog {
    fn event(&self, event: &Event<'_>) {
        let server = self.server;
        match event {
            Event::Binding(address) if !address.ip().is_loopback() => {
                self.log.warning(format!("The {server} server on {address} is open to everyone who reaches it"))
            }
            Event::BindFailed(failure) => {
                self.log.warning(format!("{server} server: {failure}"));
            }
            Event::BadProxyHeader { address, error } => self.debug(|| format!("{address}: {error}")),
            Event::NoPlace(address) => self.debug(|| format!("no place for {address}")),
            Event::AcceptFailed(error) => self.debug(|| format!("cannot accept a connection: {error}")),
            Event::Client { address, id, event } => match event {
                ClientEvent::Accepted => self.debug(|| format!("client {id} connected from {address}")),
                ClientEvent::TlsFailed(error) => self.debug(|| format!("client {id}: TLS: {error}")),
                ClientEvent::Stalled => self.debug(|| format!("client {id} does not read its answers")),
                ClientEvent::Disconnected => self.debug(|| format!("client {id} disconnected")),
                ClientEvent::Request { method, uri } => self.debug(|| format!("client {id}: {method} {uri}")),
                ClientEvent::HttpFailed(error) => self.debug(|| format!("client {id}: {error}")),
                _ => {}
            },
            Event::Binding(_) => {}
        }
    }
}
