//! `banlist.json` with any bytes: it is refused with an error and changes nothing, or yields bans.
//!
//! The bans survive an encode and decode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::random;
use lydian_p2p::{Bans, UnixTime};

/// Early, so that most bans are still in force.
const NOW: UnixTime = UnixTime(10);

fuzz_target!(|bytes: &[u8]| {
    let mut bans = Bans::new(86_400, &mut random());
    if let Err(error) = bans.decode(bytes, NOW) {
        assert!(!error.to_string().is_empty() && bans.list(NOW).is_empty());
        return;
    }
    let mut again = Bans::new(86_400, &mut random());
    let dropped = again.decode(&bans.encode(), NOW).expect("what was written is read");
    assert_eq!((dropped, again.list(NOW)), (Vec::new(), bans.list(NOW)));
    let banned: Vec<_> = bans.list(NOW).keys().copied().collect();
    for subnet in banned {
        // As in Core, no subnet contains an invalid address, such as those reserved for documentation.
        assert!(bans.is_banned(&subnet.network(), NOW) || !subnet.network().is_valid());
        assert!(bans.unban(&subnet));
    }
});
