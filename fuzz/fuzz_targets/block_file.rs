//! A block file with any bytes: finds the records that Core's `LoadExternalBlockFile` finds; each is read or refused
//! with an error.
#![no_main]

#[path = "../../crates/chain/tests/all/common/mod.rs"]
mod common;

use common::{MAIN, MemoryDisk};
use libfuzzer_sys::fuzz_target;
use lydian_chain::{BlockFile, BlockFiles, Obfuscation};
use lydian_primitives::BlockHash;

/// Core's loop over single bytes. Returns the offset and size of each record.
fn plain(bytes: &[u8]) -> Vec<(u64, u32)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(head) = bytes[at..].first_chunk::<8>() {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if head[..4] != MAIN || !(80..=4_000_000).contains(&length) {
            at += 1;
            continue;
        }
        if at + 8 + length as usize > bytes.len() {
            break;
        }
        found.push((at as u64 + 8, length));
        at += 8 + length as usize;
    }
    found
}

fuzz_target!(|input: &[u8]| {
    let Some((key, bytes)) = input.split_first_chunk::<8>() else { return };
    // The fuzzer rarely discovers the magic, so one byte stands for that of the main chain.
    let bytes = bytes.split(|byte| *byte == 0xf9).collect::<Vec<_>>().join(&MAIN[..]);
    let key = Obfuscation::new(*key);
    let mut hidden = bytes.clone();
    key.apply(0, &mut hidden);
    let disk = MemoryDisk::with(&[("a", &hidden)]);
    let mut files = BlockFiles::new(&disk, vec![BlockFile { path: "a".into(), key }]);
    let mut index = files.scan(MAIN, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let records: Vec<_> = index.records.iter().map(|record| (record.offset, record.size)).collect();
    assert_eq!(records, plain(&bytes));
    for record in index.records.clone() {
        match files.read(&record) {
            Ok(read) => assert_eq!(read.block.hash(), record.hash),
            Err(error) => assert!(error.to_string().starts_with(&format!("a:{}: block", record.offset)), "{error}"),
        }
    }
    for remark in &index.remarks {
        let text = remark.to_string();
        assert!(text.starts_with("a:") && !text.contains('\n') && remark.offset < bytes.len() as u64, "{text}");
    }
    let ordered = index.order(BlockHash::ZERO);
    let waiting: usize = ordered.missing_parents.iter().map(|missing| 1 + missing.descendants).sum();
    assert!(ordered.blocks.len() + waiting <= index.records.len());
    let _ = files.detect_magic(0);
});
