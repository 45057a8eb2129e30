//! A file of spent outputs from any bytes: if it parses, it encodes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_chain::{parse_prevouts, write_prevouts};

fuzz_target!(|bytes: &[u8]| match parse_prevouts(bytes) {
    Ok(prevouts) => {
        assert_eq!(write_prevouts(&prevouts), bytes);
        assert!(prevouts.capacity() <= bytes.len() / 13 + 1024, "more memory than the bytes justify");
    }
    Err(error) => assert!(error.offset <= bytes.len()),
});
