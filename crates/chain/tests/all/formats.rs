//! The code reads and writes the examples printed in `docs/formats`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the page itself"
)]

use crate::common::{MAIN, MemoryDisk};
use lydian_chain::limits::{RECORD_SIZE_MAX, RECORD_SIZE_MIN};
use lydian_chain::{BlockFiles, MAGICS, Prevout, find_block_files, parse_prevouts, write_prevouts};
use lydian_primitives::{Amount, Height, hex, to_hex};
use std::path::Path;

/// A page of the documentation. `example` returns the bytes of its block marked `hex NAME`.
struct Page(String);

impl Page {
    fn open(name: &str) -> Page {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats").join(name);
        Page(std::fs::read_to_string(path).unwrap())
    }

    fn example(&self, name: &str) -> Vec<u8> {
        let (_, rest) = self.0.split_once(&format!("```hex {name}\n")).unwrap();
        let (digits, _) = rest.split_once("```").unwrap();
        hex(&digits.replace('\n', "")).unwrap()
    }
}

#[test]
fn block_files() {
    let page = Page::open("blk.md");
    for known in MAGICS {
        assert!(page.0.contains(&format!("{} `{}`", known.name, to_hex(&known.magic))), "{}", known.name);
    }
    assert_eq!((RECORD_SIZE_MIN, RECORD_SIZE_MAX), (80, 4_000_000));
    assert!(page.0.contains("80 to 4,000,000"));

    let (record, key, hidden) = (page.example("record"), page.example("key"), page.example("hidden"));
    let disk =
        MemoryDisk::with(&[("plain/blk00000.dat", &record), ("core/blk00000.dat", &hidden), ("core/xor.dat", &key)]);
    for directory in ["plain", "core"] {
        let mut files = BlockFiles::new(&disk, find_block_files(&disk, Path::new(directory)).unwrap());
        assert_eq!(files.detect_magic(0), Ok(MAIN));
        let index = files.scan(MAIN, &mut |_, _| {}).unwrap();
        let read = files.read(&index.records[0]).unwrap();
        assert_eq!(read.block.as_bytes(), &record[8..]);
        assert!(page.0.contains(&format!("Its hash is `{}`", read.block.hash())));
        assert_eq!((index.records.len(), index.remarks.len(), index.records[0].offset), (1, 0, 8));
    }
}

#[test]
fn prevouts() {
    let bytes = Page::open("prevouts.md").example("prevouts");
    let prevouts = parse_prevouts(&bytes).unwrap();
    let [known, unknown] = prevouts[..] else { panic!("{prevouts:?}") };
    assert_eq!((known.value, known.origin), (Amount(5_000_000_000), Some((Height(9), true))));
    assert_eq!((known.script_pubkey.len(), known.script_pubkey[66]), (67, 0xac));
    assert_eq!((unknown.value, unknown.origin), (Amount(123_456), None));
    assert_eq!(unknown.script_pubkey[..3], [0, 20, 1]);
    assert_eq!(write_prevouts(&[known, unknown]), bytes);
    let highest = Prevout { origin: Some((Height((1 << 31) - 1), false)), ..known };
    assert_eq!(parse_prevouts(&write_prevouts(&[highest])).unwrap(), [highest]);
}
