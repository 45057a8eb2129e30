//! CompactSize and the bytes it counts, from any bytes, against a straightforward version of Core's `ReadCompactSize`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_primitives::{Reader, compact_size_len, write_compact_size};

/// Returns the value and the size of the encoding.
fn plain(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = |size: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes.get(1..=size)?);
        Some(u64::from_le_bytes(word))
    };
    let (value, size) = match bytes.first()? {
        0xfd => (word(2).filter(|value| *value >= 0xfd)?, 3),
        0xfe => (word(4).filter(|value| *value > 0xffff)?, 5),
        0xff => (word(8).filter(|value| *value > 0xffff_ffff)?, 9),
        byte => (u64::from(*byte), 1),
    };
    (value <= 0x0200_0000).then_some((value, size))
}

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let read = reader.compact_size().ok();
    assert_eq!(read.map(|size| (size as u64, reader.offset())), plain(bytes));
    if let Some(size) = read {
        let mut again = Vec::new();
        write_compact_size(&mut again, size);
        assert_eq!(again, bytes[..reader.offset()]);
        assert_eq!(compact_size_len(size), again.len());
    }
    let mut reader = Reader::new(bytes);
    match (reader.var_bytes(), plain(bytes)) {
        (Ok(found), Some((value, size))) => assert_eq!(found, &bytes[size..size + value as usize]),
        (Ok(_), None) => panic!("bytes without a length"),
        (Err(_), Some((value, size))) => assert!((value as usize) > bytes.len() - size),
        (Err(_), None) => {}
    }
});
