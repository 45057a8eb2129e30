//! The nodes of the tests of front ends: each has a feed, and servers to compare a front end with.

use crate::electrum::{NO_TLS, NO_WEBSOCKET};
use crate::esplora::{Site, wait_for};
use crate::server::Server;
use lydian_oracle::free_port;
use lydian_primitives::OutPoint;
use serde_json::{Value, json};

/// A node with a feed and servers of its own.
pub(crate) struct Node {
    pub(crate) server: Server,
    options: Vec<String>,
    pub(crate) feed: u16,
    pub(crate) electrum: u16,
    pub(crate) site: Site,
}

impl Node {
    pub(crate) fn start(name: &str, more: &[String]) -> Node {
        let [feed, electrum, esplora] = [(); 3].map(|()| free_port().unwrap());
        let own = [
            format!("-feedbind=127.0.0.1:{feed}"),
            "-electrum".to_owned(),
            format!("-electrumbind=127.0.0.1:{electrum}"),
            NO_TLS.to_owned(),
            NO_WEBSOCKET.to_owned(),
            "-esplora".to_owned(),
            format!("-esplorabind=127.0.0.1:{esplora}"),
        ];
        let options = [&own, more].concat();
        let server = Server::lydian(name, &options.iter().map(String::as_str).collect::<Vec<_>>());
        let node = Node { server, options, feed, electrum, site: Site(esplora) };
        wait_for(&node.site);
        node
    }

    pub(crate) fn start_again(&mut self) {
        let options = self.options.clone();
        self.server.start_again(&options.iter().map(String::as_str).collect::<Vec<_>>());
        wait_for(&self.site);
    }

    pub(crate) fn height(&self) -> u64 {
        self.server.result("getblockcount", "[]").as_u64().unwrap()
    }

    pub(crate) fn hash(&self, height: u64) -> Value {
        self.server.result("getblockhash", &json!([height]).to_string())
    }
}

pub(crate) fn coinbase(node: &Node, height: u64) -> OutPoint {
    let block = node.server.result("getblock", &json!([node.hash(height)]).to_string());
    OutPoint { txid: block["tx"][0].as_str().unwrap().parse().unwrap(), vout: 0 }
}

/// Gives the other node the blocks of the active chain that it lacks.
pub(crate) fn copy_blocks(from: &Node, to: &Node) {
    let tip = from.height();
    let common = (0..=tip.min(to.height())).rev().find(|height| from.hash(*height) == to.hash(*height)).unwrap();
    for height in common + 1..=tip {
        let block = from.server.result("getblock", &json!([from.hash(height), 0]).to_string());
        to.server.call("submitblock", &json!([block]).to_string());
    }
    assert_eq!(from.hash(tip), to.hash(tip));
}
