//! Peers while the node imports and validates the blocks on its disk: they are connected, but nothing is fetched from
//! them.

use crate::bench::Bench;
use crate::chain::block_on;
use lydian_consensus::U256;
use lydian_engine::{InitialDownload, TIP_AGE_SECONDS_DEFAULT};
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::BlockHash;
use lydian_wire::{Inv, InvType, Locator, Message};
use std::sync::Arc;
use std::time::Duration;

/// Regression test: the network was started only after the blocks on disk were validated, perhaps after hours. Now it
/// is started before that, and behaves as in Core while blocks are loaded: handshakes and pings work, but neither
/// headers nor blocks are requested, accepted or sent, and no peer is late with them. When loading ends, all of that
/// starts.
#[test]
fn nothing_is_fetched_while_blocks_are_loaded() {
    let initial_download = Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT));
    initial_download.set_loading(true);
    let mut bench = Bench::with(|settings| settings.initial_download = Arc::clone(&initial_download));
    bench.grow(3);
    assert!(initial_download.is_on(), "a recent tip does not end it yet");
    let peer = bench.connect(ConnectionKind::OutboundFullRelay);
    let next = block_on(bench.tip(), 0, Vec::new());
    bench.announce(peer, &[next.header()]);
    bench.send(peer, Message::Inv(vec![Inv::block(InvType::BLOCK, next.hash)]));
    bench.send(peer, Message::GetHeaders(Locator { hashes: Vec::new(), stop: BlockHash([0; 32]) }));
    bench.send(peer, Message::Block(next.bytes()));
    bench.wait(Duration::from_secs(15 * 60));
    let sent = bench.take_sent(peer);
    let is_about_blocks = |message: &Message| match message {
        Message::GetHeaders(_) | Message::GetData(_) => true,
        Message::Headers(headers) => !headers.is_empty(),
        _ => false,
    };
    // Regression test: without an answer, a node that had asked during the first moments of ours did not ask for the
    // blocks announced in the next two minutes.
    assert!(sent.contains(&Message::Headers(Vec::new())), "{sent:?}");
    assert!(!sent.iter().any(is_about_blocks) && sent.iter().any(|sent| matches!(sent, Message::Ping(_))), "{sent:?}");
    assert!(bench.deliveries.is_empty() && bench.ended.is_empty(), "{:?}", bench.ended);
    assert!(bench.has_logged(&format!("Ignoring getheaders from peer={peer} while importing/reindexing")));
    assert!(bench.has_logged(&format!("Unexpected headers message received from peer {peer}")));
    assert!(bench.has_logged(&format!("Unexpected block message received from peer {peer}")));
    let now = bench.now();
    assert_eq!(bench.manager.fetch_block(peer, &next.hash, now), Err("Loading blocks ..."));

    initial_download.set_loading(false);
    bench.wait(Duration::from_millis(200));
    assert!(!initial_download.is_on());
    assert!(bench.take_sent(peer).iter().any(|message| matches!(message, Message::GetHeaders(_))));
    bench.announce(peer, &[next.header()]);
    assert_eq!(bench.take_asked(peer).len(), 1);
    bench.send(peer, Message::Block(next.bytes()));
    assert_eq!(bench.tip_hash(), next.hash);
}
