//! `anchors.dat` with any content: it is refused with a one-sentence error, or yields at most two addresses.
//!
//! The addresses survive an encode and decode. The input is framed as in `peers_dat`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::{MAGIC, framed};
use lydian_p2p::anchors::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    match decode(&framed(bytes), MAGIC) {
        Ok(anchors) => {
            assert!(anchors.len() <= 2);
            assert_eq!(decode(&encode(&anchors, MAGIC), MAGIC), Ok(anchors));
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
