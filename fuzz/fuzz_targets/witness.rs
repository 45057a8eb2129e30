//! A witness stack from any bytes: the items are slices of it in order, and nothing is left over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_primitives::build::write_var_bytes;
use lydian_primitives::{Witness, compact_size_len};

fuzz_target!(|bytes: &[u8]| {
    let Some((&count, bytes)) = bytes.split_first() else { return };
    let count = usize::from(count);
    let Ok(witness) = Witness::parse(bytes, count) else { return };
    assert_eq!((witness.len(), witness.iter().count(), witness.is_empty()), (count, count, count == 0));
    let mut again = Vec::new();
    witness.iter().for_each(|item| write_var_bytes(&mut again, item));
    assert_eq!(again, bytes);
    assert_eq!(witness.serialized_size(), compact_size_len(count) + bytes.len());
    assert!(Witness::parse(bytes, count + 1).is_err());
});
