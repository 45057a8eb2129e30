//! A node with something to show in every panel: peers, a mempool with chains and replacements, a stale branch, a
//! refused transaction and a refused block, indexes, a ban, wallets' servers.

use crate::server::Server;
use crate::stage::{Coin, PATIENCE, Stage, pay, raw};
use lydian_oracle::free_port;
use serde_json::json;
use std::time::{Duration, Instant};

/// The node, and its peers.
pub(crate) struct Busy {
    pub(crate) stage: Stage,
    /// Running as long as the node.
    _peers: Vec<Server>,
    /// Coins that nothing spends yet.
    pub(crate) coins: Vec<Coin>,
}

/// Blocks that pay to the script of each number.
const BLOCKS: u32 = 130;

pub(crate) fn busy(name: &str) -> Option<Busy> {
    let (port, electrum) = (free_port().unwrap(), free_port().unwrap());
    let own = [
        "-listen=1".to_owned(),
        format!("-bind=127.0.0.1:{port}"),
        "-txindex".to_owned(),
        "-coinstatsindex".to_owned(),
        "-electrum".to_owned(),
        "-electrumtlsbind=0".to_owned(),
        "-electrumwsbind=0".to_owned(),
        format!("-electrumbind=127.0.0.1:{electrum}"),
        "-pageactions".to_owned(),
    ];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let stage = Stage::start(name, &own)?;
    let mut peers = Vec::new();
    for (place, comment) in ["-uacomment=first", "-uacomment=second"].into_iter().enumerate() {
        let peer = Server::lydian(&format!("{name}-peer-{place}"), &[comment]);
        peer.result("addnode", &json!([format!("127.0.0.1:{port}"), "onetry"]).to_string());
        peers.push(peer);
    }
    stage.mine(BLOCKS, 1);
    let mut coins: Vec<Coin> = (1..=12).map(|height| stage.coin(height, 1)).collect();
    // A branch that loses. As Core, a node does not serve blocks that were invalidated, and a peer that has asked for
    // one waits for minutes.
    let stale = stage.mine(2, 2);
    wait_for(&stage, &peers, port);
    stage.call("invalidateblock", &json!([stale[0]]));
    stage.mine(1, 3);
    stage.call("reconsiderblock", &json!([stale[0]]));
    stage.mine_with_text(b"/a pool/");
    // A mempool: small and large fees, a chain, a replacement, and refusals.
    for (count, fee) in [(1, 200), (2, 1_000), (5, 5_000), (9, 20_000), (40, 90_000), (120, 400_000)] {
        let coin = coins.pop().unwrap();
        let (tx, made) = pay(coin, count, 4, fee);
        stage.call("sendrawtransaction", &json!([raw(&tx)]));
        let (child, _) = pay(made[0], 1, 5, fee);
        stage.call("sendrawtransaction", &json!([raw(&child)]));
    }
    let coin = coins.pop().unwrap();
    for fee in [1_000, 9_000] {
        stage.call("sendrawtransaction", &json!([raw(&pay(coin, 1, 6, fee).0)]));
    }
    let refused = stage.server.call("sendrawtransaction", &json!([raw(&pay(coin, 1, 7, 1_000).0)]).to_string());
    assert!(refused.body.contains("\"error\":{"), "{refused:?}");
    stage.call("setban", &json!(["203.0.113.0/24", "add", 86_400]));
    wait_for(&stage, &peers, port);
    Some(Busy { stage, _peers: peers, coins })
}

/// Waits until the peers are connected and have the tip.
fn wait_for(stage: &Stage, peers: &[Server], port: u16) {
    let began = Instant::now();
    let tip = stage.call("getblockcount", &json!([]));
    let is_connected = || stage.call("getpeerinfo", &json!([])).as_array().unwrap().len() == peers.len();
    let height = |peer: &Server| peer.result("getblockcount", "[]");
    while !is_connected() || peers.iter().any(|peer| height(peer) != tip) {
        let heights: Vec<_> = peers.iter().map(height).collect();
        assert!(began.elapsed() < PATIENCE, "the peers follow to {tip}: {heights:?}, connected: {}", is_connected());
        std::thread::sleep(Duration::from_millis(200));
        // A connection may have failed on a busy machine.
        for peer in peers.iter().filter(|peer| peer.result("getconnectioncount", "[]") == 0) {
            peer.call("addnode", &json!([format!("127.0.0.1:{port}"), "onetry"]).to_string());
        }
    }
}
