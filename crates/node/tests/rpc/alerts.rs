//! Warnings of the node: in RPC answers, and by the commands of `-alertnotify`.

use crate::server::Server;
use lydian_chains::files::BlockWriter;
use lydian_chains::presets::maker::{Maker, seal};
use lydian_oracle::Scratch;
use lydian_primitives::build::MutBlock;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file in the folder, and the option that makes the node write its alerts to it.
pub(crate) fn listener(folder: &Scratch) -> (PathBuf, String) {
    std::fs::create_dir_all(folder.path()).unwrap();
    let told = folder.path().join("told");
    let option = format!("-alertnotify=echo %s >> {}", told.display());
    (told, option)
}

/// The alerts, once there are any.
pub(crate) fn alerts(told: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(told).unwrap_or_default();
        if !text.is_empty() {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(began.elapsed() < PATIENCE, "there was no alert");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The warnings in the answers of the three methods that have them.
pub(crate) fn warnings(server: &Server) -> [Value; 3] {
    ["getblockchaininfo", "getnetworkinfo", "getmininginfo"]
        .map(|method| server.result(method, "[]")["warnings"].clone())
}

pub(crate) fn everywhere(warnings: &Value) -> [Value; 3] {
    std::array::from_fn(|_| warnings.clone())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends this many blocks, the first of which pays itself too much, tip first, so that all are stored when the first is
/// validated.
fn send_invalid_chain(server: &Server, mut maker: Maker, count: usize, surplus: i64) {
    let mut blocks: Vec<MutBlock> = Vec::new();
    for _ in 0..count {
        let mut block = maker.block(Vec::new());
        if blocks.is_empty() {
            block.txs[0].outputs[0].value.0 += surplus;
            seal(&mut block);
        }
        maker.advance(&block);
        blocks.push(block);
    }
    for block in &blocks {
        server.result("submitheader", &format!("[\"{}\"]", hex(&block.encode()[..80])));
    }
    for block in blocks.iter().rev() {
        server.result("submitblock", &format!("[\"{}\"]", hex(&block.encode())));
    }
}

/// Core warns about an invalid chain with more work than six blocks on the best one, for as long as there is one, and
/// runs the command once. Regression test: no warning was raised.
#[test]
fn an_invalid_chain_with_more_work_is_reported() {
    let folder = Scratch::new("rpc-alert");
    let (told, option) = listener(&folder);
    let lydian = Server::lydian("alert", &[&option]);
    let mut maker = Maker::new();
    let send = |block: &MutBlock| {
        assert_eq!(lydian.result("submitblock", &format!("[\"{}\"]", hex(&block.encode()))), Value::Null);
    };
    let grow = |maker: &mut Maker, count| {
        let sent = maker.grow(count, |_, block| {
            send(block);
            Ok::<_, ()>(())
        });
        sent.unwrap();
    };
    grow(&mut maker, 3);
    send_invalid_chain(&lydian, maker.clone(), 6, 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(warnings(&lydian), everywhere(&json!([])), "six are not enough");
    send_invalid_chain(&lydian, maker.clone(), 7, 2);
    let words = "Warning: Found invalid chain more than 6 blocks longer than our best chain. This could be due to database corruption or consensus \
                 incompatibility with peers.";
    assert_eq!(alerts(&told), [words]);
    assert_eq!(warnings(&lydian), everywhere(&json!([words])));
    grow(&mut maker, 1);
    let began = Instant::now();
    while warnings(&lydian) != everywhere(&json!([])) {
        assert!(began.elapsed() < PATIENCE, "it is over with another block on the best chain");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(alerts(&told).len(), 1);
}

/// Rules that most blocks signalled and that this node does not know cause a warning once they are active, as in Core,
/// but not before the end of initial block download, which `-maxtipage` ends here. Regression test: the largest value
/// of that option was refused.
#[test]
fn unknown_rules_are_reported() {
    let folder = Scratch::new("rpc-rules");
    let (told, option) = listener(&folder);
    let mut writer = BlockWriter::new(folder.path(), "blk").unwrap();
    writer.write(&lydian_chains::assemble::regtest_genesis()).unwrap();
    let mut maker = Maker::new();
    for height in 1..3 * 144 {
        let mut block = maker.block(Vec::new());
        if (144..288).contains(&height) {
            block.header.version = 0x2000_0008;
            seal(&mut block);
        }
        maker.advance(&block);
        writer.write(&block.encode()).unwrap();
    }
    drop(writer);
    let file = format!("-loadblock={}", folder.path().join("blk00000.dat").display());
    let lydian = Server::lydian("rules", &[&option, &file, "-maxtipage=9223372036854775807"]);
    let words = "Unknown new rules activated (versionbit 3)";
    assert_eq!(alerts(&told), [words]);
    assert_eq!(warnings(&lydian), everywhere(&json!([words])));
}
