//! `verifychain` compared with Core's, under rules whose activation heights have changed since the blocks were
//! connected.

use crate::chain::Pair;
use lydian_chains::presets::maker::{Maker, TRUE_SCRIPT, seal};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, to_hex};

/// Rules that become active after the last block.
const LATE: [&str; 3] =
    ["-testactivationheight=bip34@500", "-testactivationheight=cltv@500", "-testactivationheight=csv@500"];

/// A height far above the tip, OP_CHECKLOCKTIMEVERIFY, OP_DROP, OP_TRUE.
const LOCKED: [u8; 6] = [0x02, 0xe8, 0x03, 0xb1, 0x75, 0x51];

fn tx(version: u32, prevout: OutPoint, sequence: u32, value: i64, script_pubkey: &[u8]) -> MutTx {
    MutTx {
        version,
        inputs: vec![MutInput { prevout, script_sig: Vec::new(), sequence, witness: Vec::new() }],
        outputs: vec![MutOutput { value: Amount(value), script_pubkey: script_pubkey.to_vec() }],
        lock_time: 0,
    }
}

/// Regression test. `verifychain` validated blocks again with all rules for their place in the chain, under the
/// activation heights that were set now: a block whose coinbase lacks its height was found invalid after a restart with
/// another `-testactivationheight`. Core's `CVerifyDB` runs `CheckBlock` and `ConnectBlock`, whose script flags and
/// relative lock times are those of the current settings.
#[test]
fn rules_that_came_later() {
    let Some(mut pair) = Pair::start("rules_that_came_later", &LATE) else { return };
    let mut maker = Maker::new();
    let submit = |pair: &Pair, maker: &mut Maker, block: &MutBlock| {
        let hex = format!("[\"{}\"]", to_hex(&block.encode()));
        pair.ask("submitblock", &hex);
        assert!(pair.core.result("submitblock", &hex) == "duplicate");
        maker.advance(block);
        assert_eq!(pair.lydian.result("getblockcount", "[]"), maker.height);
    };
    while maker.height < 101 {
        let block = maker.block(Vec::new());
        submit(&pair, &mut maker, &block);
    }
    // BIP-0034: no height in the coinbase.
    let mut block = maker.template(Vec::new());
    block.txs[0].inputs[0].script_sig = vec![0x51, 0x51];
    seal(&mut block);
    submit(&pair, &mut maker, &block);
    for server in [&mut pair.lydian, &mut pair.core] {
        server.restart(&["-testactivationheight=bip34@1", LATE[1], LATE[2]]);
    }
    let verify = |pair: &Pair, expected: [bool; 5]| {
        for (level, expected) in expected.into_iter().enumerate() {
            for blocks in [3, 0] {
                pair.ask("verifychain", &format!("[{level},{blocks}]"));
                assert_eq!(pair.core.result("verifychain", &format!("[{level},{blocks}]")), expected, "level {level}");
            }
        }
    };
    verify(&pair, [true; 5]);
    // A spend before its lock time, while OP_CHECKLOCKTIMEVERIFY is not active yet, and one before its relative lock
    // time (BIP-0068).
    for (late, version, sequence, script) in [("cltv", 1, 0xffff_ffff, &LOCKED[..]), ("csv", 2, 100, &TRUE_SCRIPT[..])]
    {
        for server in [&mut pair.lydian, &mut pair.core] {
            server.restart(&["-testactivationheight=bip34@1", LATE[1], LATE[2]]);
        }
        let coin = maker.spendable()[0];
        let made = tx(1, coin.outpoint, 0xffff_ffff, coin.value, script);
        let spent = tx(version, OutPoint { txid: made.txid(), vout: 0 }, sequence, coin.value, &[0x6a]);
        for tx in [made, spent] {
            let block = maker.block(vec![tx]);
            submit(&pair, &mut maker, &block);
        }
        verify(&pair, [true; 5]);
        for server in [&mut pair.lydian, &mut pair.core] {
            let other = if late == "cltv" { LATE[2] } else { LATE[1] };
            server.restart(&["-testactivationheight=bip34@1", &format!("-testactivationheight={late}@1"), other]);
        }
        verify(&pair, [true, true, true, true, false]);
        // From here on, the first of the two is below the blocks that are checked.
        for _ in 0..4 {
            let block = maker.block(Vec::new());
            submit(&pair, &mut maker, &block);
        }
    }
    pair.comparison.finish();
}
