//! Bitcoin Knots, which `make test-peers` installs: over v1 and v2, with equal UTXO hashes at every step.

use crate::process::{ADDRESS, OTHER_ADDRESS, Running, agree, job, lydian, scratch};
use crate::relay::{address, relay_both_ways};
use lydian_lab::runs::adapter::Adapter;
use lydian_lab::runs::adapters::Knots;
use lydian_lab::runs::rpc::{Server, free_port};
use lydian_oracle::Scratch;
use serde_json::json;

fn knots(scratch: &Scratch, name: &str, v2: bool) -> Running {
    let program = Knots::locate(None).unwrap();
    let transport = format!("-v2transport={}", u8::from(v2));
    let (job, port) = (job(scratch, name, &[&transport]), free_port().unwrap());
    let command = program.serve(&job, port).unwrap();
    Running::start(job, port, command, Server::with_cookie)
}

fn same_coins(node: &Running, knots: &Running) {
    assert_eq!(node.utxo_hash(), knots.utxo_hash());
}

fn is_v2(knots: &Running) -> bool {
    knots.call("getpeerinfo", &json!([]))[0]["transport_protocol_type"] == "v2"
}

#[test]
#[ignore = "needs Bitcoin Knots (18 MB): `lydian-lab peers install knots`; then: cargo test -p lydian-lab --test peers -- --ignored, which make test-peers runs"]
fn lydian_syncs_from_knots_and_follows_it() {
    for v2 in [false, true] {
        let scratch = scratch(&format!("peers-from-knots-{v2}"));
        let knots = knots(&scratch, "knots", v2);
        knots.mine(300, ADDRESS);
        let node = lydian(&scratch, "lydian", &[&knots], &[]);
        agree("the chain comes from Knots", &knots, &node);
        assert_eq!(is_v2(&knots), v2);
        same_coins(&node, &knots);
        knots.mine(1, ADDRESS);
        agree("a new block comes", &knots, &node);
        node.mine(1, OTHER_ADDRESS);
        agree("Knots takes a block of ours", &node, &knots);
        for depth in [10, 150] {
            knots.forget(depth);
            knots.mine(depth + 1, OTHER_ADDRESS);
            agree("a reorganisation is followed", &knots, &node);
            same_coins(&node, &knots);
        }
    }
}

#[test]
#[ignore = "needs Bitcoin Knots (18 MB): `lydian-lab peers install knots`; then: cargo test -p lydian-lab --test peers -- --ignored, which make test-peers runs"]
fn knots_syncs_from_lydian_and_follows_it() {
    for v2 in [false, true] {
        let scratch = scratch(&format!("peers-to-knots-{v2}"));
        let node = lydian(&scratch, "lydian", &[], &[]);
        node.mine(300, ADDRESS);
        let knots = knots(&scratch, "knots", v2);
        knots.call("addnode", &json!([node.address(), "onetry"]));
        agree("Knots takes the chain", &node, &knots);
        assert_eq!(is_v2(&knots), v2);
        same_coins(&node, &knots);
        knots.mine(1, OTHER_ADDRESS);
        agree("a block of Knots is taken", &knots, &node);
        for depth in [10, 150] {
            node.forget(depth);
            node.mine(depth + 1, OTHER_ADDRESS);
            agree("Knots follows a reorganisation", &node, &knots);
            same_coins(&node, &knots);
        }
    }
}

#[test]
#[ignore = "needs Bitcoin Knots (18 MB): `lydian-lab peers install knots`; then: cargo test -p lydian-lab --test peers -- --ignored, which make test-peers runs"]
fn transactions_go_to_knots_and_come_from_it() {
    for v2 in [false, true] {
        let scratch = scratch(&format!("peers-relay-knots-{v2}"));
        let node = lydian(&scratch, "lydian", &[], &[]);
        node.mine(110, &address(&node));
        let knots = knots(&scratch, "knots", v2);
        knots.call("addnode", &json!([node.address(), "onetry"]));
        agree("Knots takes the chain", &node, &knots);
        relay_both_ways(&node, &knots);
    }
}
