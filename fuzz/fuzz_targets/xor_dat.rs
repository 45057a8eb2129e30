//! `xor.dat` from any bytes: eight bytes are a key, any other size is an error.
//!
//! The key is applied by the offset in the file.
#![no_main]

#[path = "../../crates/chain/tests/all/common/mod.rs"]
mod common;

use common::MemoryDisk;
use libfuzzer_sys::fuzz_target;
use lydian_chain::{Obfuscation, ReadError, find_block_files};
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Some((&size, rest)) = input.split_first() else { return };
    let (key, content) = rest.split_at(usize::from(size).min(rest.len()));
    let disk = MemoryDisk::with(&[("d/blk00000.dat", content), ("d/xor.dat", key)]);
    let found = find_block_files(&disk, Path::new("d"));
    let Ok(bytes) = <[u8; 8]>::try_from(key) else {
        assert!(matches!(found, Err(ReadError::XorKeySize { size, .. }) if size == key.len() as u64));
        return;
    };
    let files = found.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((files.len(), files[0].key), (1, Obfuscation::new(bytes)));
    let plain =
        |offset: usize| -> Vec<u8> { content.iter().zip(offset..).map(|(byte, at)| byte ^ bytes[at % 8]).collect() };
    for offset in [0, 1, 7, 8, usize::from(size)] {
        let mut hidden = content.to_vec();
        files[0].key.apply(offset as u64, &mut hidden);
        assert_eq!(hidden, plain(offset));
    }
});
