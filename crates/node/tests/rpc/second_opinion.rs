//! `-secondopinion`: a verifier that lies causes a warning, an alert and lines in the log, and no other answer changes;
//! Bitcoin Core's code, if the program was built with it, agrees on every kind of script.

use crate::alerts::{alerts, everywhere, hex, listener, warnings};
use crate::server::Server;
use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_oracle::Scratch;
use lydian_primitives::build::MutBlock;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Every tip is recent.
const AT_THE_TIP: &str = "-maxtipage=9223372036854775807";

/// Waits until blocks count as new.
fn wait_for_the_tip(server: &Server) {
    while server.result("getblockchaininfo", "[]")["initialblockdownload"] == true {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(server: &Server, maker: &mut Maker, block: &MutBlock) {
    assert_eq!(server.result("submitblock", &format!("[\"{}\"]", hex(&block.encode()))), Value::Null);
    maker.advance(block);
}

/// Stops the node once its log has some words. Returns the log.
fn end_after(server: &mut Server, words: &str) -> String {
    let path = server.folder.join("regtest/debug.log");
    for _ in 0..1_200 {
        if fs::read_to_string(&path).unwrap().contains(words) {
            server.result("stop", "[]");
            assert_eq!(server.wait(), Some(0));
            return fs::read_to_string(&path).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the log has no line with {words}");
}

#[test]
fn a_lie_is_passed_to_the_operator_and_changes_no_verdict() {
    let folder = Scratch::new("rpc-second-opinion");
    let (told, option) = listener(&folder);
    let lies = ["-secondopinion", "-test=secondopinion_lies", AT_THE_TIP, &option, "-debug=validation"];
    let mut lydian = Server::lydian("second-opinion", &lies);
    wait_for_the_tip(&lydian);
    let mut maker = Maker::new();
    for _ in 0..101 {
        let block = maker.block(Vec::new());
        send(&lydian, &mut maker, &block);
    }
    assert_eq!(warnings(&lydian), everywhere(&json!([])), "no block has an input");
    let mut sentences = Vec::new();
    for height in 102..104 {
        let coin = maker.spendable()[0];
        let block = maker.block(vec![free_tx(&[coin], vec![output(coin.value, &[0x51])])]);
        send(&lydian, &mut maker, &block);
        sentences.push(format!(
            "Second opinion: the code of Bitcoin Core rejects block {} at height {height}, which Lydian accepted: transaction {}, input 0: a lie, \
             as -test asks for. ",
            block.header.hash(),
            block.txs[1].txid()
        ));
    }
    let told_of = alerts(&told);
    assert!(told_of[0].starts_with(&sentences[0]), "{told_of:?}");
    let shown = lydian.result("getblockchaininfo", "[]")["warnings"].clone();
    assert_eq!(shown, json!([told_of[0]]), "nothing in the sentence needs to be removed for a shell");
    assert_eq!(warnings(&lydian), everywhere(&shown));
    assert_eq!(lydian.result("getbestblockhash", "[]"), json!(maker.tip.to_string()));
    let tips = lydian.result("getchaintips", "[]");
    assert_eq!((tips.as_array().unwrap().len(), &tips[0]["status"]), (1, &json!("active")));

    let log = end_after(&mut lydian, &sentences[1]);
    assert!(sentences.iter().all(|sentence| log.matches(&format!("[error] {sentence}")).count() == 1), "{log}");
    assert_eq!(log.matches("[validation] Second opinion: the code of Bitcoin Core agrees on block ").count(), 101);
    let end = "Second opinion: blocks verified by the code of Bitcoin Core: 103 at the tip, 0 of the sync; 2 rejected, 0 failed; not verified: 0 at \
               the tip, 0 of the sample";
    assert!(log.contains(end), "{log}");
    assert_eq!(alerts(&told).len(), 1, "the command runs once");
}

/// A program without Bitcoin Core's code says how to build one that has it, and deletes nothing.
#[test]
#[cfg(not(feature = "second-opinion"))]
fn a_program_without_the_code_of_core_says_so() {
    let folder = Scratch::new("rpc-no-second-opinion");
    fs::create_dir_all(folder.path()).unwrap();
    let mut lydian = std::process::Command::new(env!("CARGO_BIN_EXE_lydian"));
    lydian.arg(format!("-datadir={}", folder.path().display())).args(["-regtest", "-listen=0", "-secondopinion"]);
    let output = lydian.args(["-server=0", "-reindex"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let expected = "-secondopinion needs the code of Bitcoin Core, which this program was built without; build it with: cargo build --release -p \
                    lydian-node --features second-opinion";
    assert!(text.contains(expected), "{text}");
    let log = fs::read_to_string(folder.path().join("regtest/debug.log")).unwrap();
    assert!(!log.contains("Wiping"), "{log}");
}

/// The program itself, with Bitcoin Core's code, agrees on full blocks with every kind of script.
#[test]
#[cfg(feature = "second-opinion")]
fn the_code_of_core_agrees_in_the_program() {
    let mut lydian = Server::lydian("core-agrees", &["-secondopinion", AT_THE_TIP, "-debug=validation"]);
    wait_for_the_tip(&lydian);
    let (blocks, now) = crate::chain::mix();
    lydian.result("setmocktime", &format!("[{now}]"));
    for block in &blocks {
        assert_eq!(lydian.result("submitblock", &format!("[\"{}\"]", hex(block))), Value::Null);
    }
    let tip = lydian.result("getbestblockhash", "[]");
    let log = end_after(&mut lydian, &format!("agrees on block {} ", tip.as_str().unwrap()));
    let count = blocks.len();
    let end =
        format!(": {count} at the tip, 0 of the sync; 0 rejected, 0 failed; not verified: 0 at the tip, 0 of the");
    assert!(log.contains(&end), "{log}");
}
