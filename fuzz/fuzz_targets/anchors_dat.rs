//! `anchors.dat` of any content: it is refused with one sentence, or gives at most two addresses, which are written and read again as the same. Framed as
//! `peers_dat` does.
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
