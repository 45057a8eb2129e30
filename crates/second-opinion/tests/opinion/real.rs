//! Real blocks, with the outputs that they spend (`docs/formats/prevouts.md`): Core agrees on each one under the flags
//! of its height and hash.

#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;

use crate::judged::{opinion, verifiers};
use locate::{files, read, testdata};
use lydian_consensus::{Chain, Coin, Params};
use lydian_primitives::{Amount, Block, Height, RawBlock, Reader};
use lydian_second_opinion::Report;
use std::path::Path;

/// The coins of a `.prevouts` file; their heights do not matter for scripts.
fn coins(bytes: &[u8]) -> Vec<Coin> {
    let mut reader = Reader::new(bytes);
    let mut coins = Vec::new();
    while reader.remaining() > 0 {
        let value = Amount(reader.i64().unwrap());
        reader.take(4).unwrap();
        let length = reader.compact_size().unwrap();
        let script_pubkey = reader.take(length).unwrap().into();
        coins.push(Coin { value, script_pubkey, height: Height(0), is_coinbase: false });
    }
    coins
}

/// The parts of a name such as `main-000170-HASH.block.zst`, and the files.
fn load(path: &Path) -> Option<(Params, u32, Block, Vec<Coin>)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".block.zst")?;
    let mut parts = name.split('-');
    let chain = match parts.next()? {
        "main" => Chain::Main,
        "test3" => Chain::Test,
        "test4" => Chain::Testnet4,
        "signet" => Chain::Signet,
        other => panic!("{other}"),
    };
    let height = parts.next()?.parse().unwrap();
    let prevouts = path.with_file_name(format!("{name}.prevouts.zst"));
    let block = RawBlock::new(read(path)).parse().unwrap();
    Some((Params::new(chain), height, block, coins(&read(&prevouts))))
}

#[test]
fn core_agrees_on_real_blocks() {
    let paths = files(&testdata("blocks/with_prevouts"));
    let blocks: Vec<_> = paths.iter().filter_map(|path| load(path)).collect();
    assert_eq!(blocks.len(), 29);
    let inputs: usize = blocks.iter().map(|(.., spent)| spent.len()).sum();
    assert!(inputs > 20_000, "{inputs}");
    for index in 0..verifiers("core_agrees_on_real_blocks").len() {
        for (params, height, block, spent) in &blocks {
            let (name, verifier) = verifiers("core_agrees_on_real_blocks").remove(index);
            let report = opinion(verifier, params, *height, block, spent);
            let expected = Report::Verified { height: Height(*height), hash: block.hash(), inputs: spent.len() };
            assert_eq!(report, expected, "{name}");
        }
    }
}
