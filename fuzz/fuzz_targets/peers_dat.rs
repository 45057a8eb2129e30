//! `peers.dat` with any content: it is refused with a one-sentence error, or yields consistent tables.
//!
//! The tables survive an encode and decode. The frame is added here, so that the fuzzer does not have to find
//! checksums; if the first byte is odd, no frame is added.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::{MAGIC, framed, random};
use lydian_p2p::{AddrMan, UnixTime};

fuzz_target!(|bytes: &[u8]| {
    let file = framed(bytes);
    let mut addrman = match AddrMan::decode(&file, MAGIC, &mut random()) {
        Ok(addrman) => addrman,
        Err(error) => return assert!(!error.to_string().contains('\n')),
    };
    addrman.check().expect("what was read holds together");
    let written = addrman.encode(MAGIC);
    let again = AddrMan::decode(&written, MAGIC, &mut random()).expect("what was written is read");
    assert_eq!(again.size(None, None), addrman.size(None, None));
    if addrman.size(None, None) > 0 {
        let now = UnixTime(1_700_000_000);
        assert!(addrman.select(false, &[], now).is_some());
        assert!(addrman.get_addr(10, 0, None, false, now).len() <= 10);
    }
});
