//! `peers.dat` of any content: it is refused with one sentence, or gives tables that hold together, are written and read again as the same. The frame around it is
//! made here, so that the fuzzer need not find checksums; a first byte that is odd leaves it out.
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
