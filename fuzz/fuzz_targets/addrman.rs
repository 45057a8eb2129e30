//! The address manager under any sequence of calls: its tables stay consistent, and every query is answered.
//!
//! Each step takes three bytes: the call, the address, and the time that passes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_fuzz::{MAGIC, random};
use lydian_p2p::{AddrMan, UnixTime};
use lydian_wire::address::{NetAddr, TimedAddress};
use lydian_wire::{Endpoint, Services};

const STEPS_MAX: usize = 200;

/// Number of steps between two checks of the tables. A check takes as long as many steps.
const STEPS_CHECKED: usize = 20;

/// Few enough addresses that they repeat, in few groups, of several networks.
fn endpoint(choice: u8) -> Endpoint {
    let addr = match choice % 5 {
        0..=2 => NetAddr::Ipv4([8, choice / 32, choice / 8, choice].into()),
        3 => NetAddr::Ipv6([0x2a00, u16::from(choice / 16), 0, 0, 0, 0, 0, 1].into()),
        _ => NetAddr::TorV3([choice; 32]),
    };
    Endpoint::new(addr, 8_333 + u16::from(choice % 2))
}

fuzz_target!(|bytes: &[u8]| {
    let mut addrman = AddrMan::with_key([1; 32], &mut random());
    let mut now = UnixTime(1_700_000_000);
    for (count, step) in bytes.as_chunks::<3>().0.iter().take(STEPS_MAX).enumerate() {
        let [what, which, time] = *step;
        now = UnixTime(now.0 + u64::from(time) * 3_600);
        let endpoint = endpoint(which);
        match what % 9 {
            0..=2 => {
                let time = u32::try_from(now.0).unwrap_or(u32::MAX) - u32::from(what) * 1_000;
                let address = TimedAddress { time, services: Services::NETWORK, endpoint };
                let source = self::endpoint(what.wrapping_mul(37)).addr;
                assert!(addrman.add(&[address], &source, u64::from(what), now) <= 1);
            }
            3 => addrman.attempt(&endpoint, what > 100, now),
            4 => drop(addrman.good(&endpoint, now)),
            5 => addrman.connected(&endpoint, now),
            6 => addrman.set_services(&endpoint, Services::NETWORK_LIMITED),
            7 => addrman.resolve_collisions(now),
            _ => {
                let _ = addrman.select_tried_collision();
                assert_eq!(addrman.select(false, &[], now).is_some(), !addrman.is_empty());
            }
        }
        if count.is_multiple_of(STEPS_CHECKED) {
            addrman.check().expect("the tables hold together");
        }
        assert!(addrman.find(&endpoint).is_some() == addrman.get(&endpoint).is_some());
    }
    addrman.check().expect("the tables hold together");
    let again = AddrMan::decode(&addrman.encode(MAGIC), MAGIC, &mut random()).expect("what was written is read");
    assert_eq!(again.size(None, None), addrman.size(None, None));
    assert!(addrman.get_addr(0, 23, None, false, now).len() <= addrman.size(None, None));
});
