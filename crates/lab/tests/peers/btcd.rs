//! btcd 0.25. It requests blocks by `getblocks` and `inv`, as Core no longer does, and reports no hash of its UTXO set.

use crate::process::{ADDRESS, OTHER_ADDRESS, Running, agree, job, lydian, scratch};
use crate::relay::{address, relay_both_ways};
use lydian_lab::runs::adapters::Btcd;
use lydian_lab::runs::rpc::free_port;
use lydian_oracle::Scratch;
use serde_json::json;

/// `None` if btcd is not installed; `make btcd` installs it, or says why it cannot.
fn btcd(scratch: &Scratch, peers: &[&Running]) -> Option<Running> {
    let program = match Btcd::locate(None) {
        Ok(program) => program,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a test that did not run has to say so")]
            {
                eprintln!("not run: {error}");
            }
            return None;
        }
    };
    let (job, port) = (job(scratch, "btcd", &[]), free_port().unwrap());
    let mut command = program.command(&job);
    command.arg(format!("--listen=127.0.0.1:{port}")).arg(format!("--miningaddr={ADDRESS}"));
    // A block is announced at once in any case; this is for other announcements.
    command.arg("--trickleinterval=100ms");
    command.args(peers.iter().map(|peer| format!("--connect={}", peer.address())));
    Some(Running::start(job, port, command, |job| Some(Btcd::server(job))))
}

/// btcd connects to us. There are more than 500 blocks, so that one answer to `getblocks` does not name them all.
#[test]
fn btcd_syncs_from_lydian_and_follows_it() {
    let scratch = scratch("peers-to-btcd");
    let node = lydian(&scratch, "lydian", &[], &[]);
    node.mine(700, ADDRESS);
    let Some(btcd) = btcd(&scratch, &[&node]) else { return };
    agree("btcd takes the chain", &node, &btcd);
    node.mine(1, ADDRESS);
    agree("btcd takes a new block", &node, &btcd);
    btcd.call("generate", &json!([1]));
    agree("a block of btcd is taken", &btcd, &node);
    for depth in [10, 150] {
        node.forget(depth);
        node.mine(depth + 1, OTHER_ADDRESS);
        agree("btcd follows a reorganisation", &node, &btcd);
    }
    assert_eq!((node.height(), btcd.height()), (704, 704));
}

/// We connect to btcd.
#[test]
fn lydian_syncs_from_btcd_and_follows_it() {
    let scratch = scratch("peers-from-btcd");
    let Some(btcd) = btcd(&scratch, &[]) else { return };
    btcd.call("generate", &json!([300]));
    let node = lydian(&scratch, "lydian", &[&btcd], &[]);
    agree("the chain comes from btcd", &btcd, &node);
    btcd.call("generate", &json!([1]));
    agree("a new block comes", &btcd, &node);
    node.mine(1, OTHER_ADDRESS);
    agree("btcd takes a block of ours", &node, &btcd);
    for depth in [10, 150] {
        btcd.forget(depth);
        btcd.call("generate", &json!([depth + 1]));
        agree("a reorganisation is followed", &btcd, &node);
    }
    assert_eq!((node.height(), btcd.height()), (304, 304));
}

/// It relays by txid, and requests transactions as nodes did before wtxids.
#[test]
fn transactions_go_to_btcd_and_come_from_it() {
    let scratch = scratch("peers-relay-btcd");
    let node = lydian(&scratch, "lydian", &[], &[]);
    node.mine(110, &address(&node));
    let Some(btcd) = btcd(&scratch, &[&node]) else { return };
    agree("btcd takes the chain", &node, &btcd);
    relay_both_ways(&node, &btcd);
}
