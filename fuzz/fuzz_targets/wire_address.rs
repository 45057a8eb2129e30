//! Addresses from any bytes and any text: reading is total, and what was read survives an encode and decode.
//!
//! A routable address is valid, and every address has a group.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_primitives::Reader;
use lydian_wire::address::split_host_port;
use lydian_wire::{Encoding, Endpoint, NetAddr, Subnet, TimedAddress};

fn check(addr: &NetAddr) {
    assert!(!addr.is_routable() || addr.is_valid());
    assert!(addr.linked_ipv4().is_none() || addr.is_routable());
    assert!((1..=11).contains(&addr.netgroup().len()));
    if !addr.is_internal() && !addr.is_cjdns() {
        assert_eq!(addr.to_string().parse(), Ok(*addr));
        let subnet = Subnet::single(*addr).expect("a subnet of one");
        assert_eq!(subnet.contains(addr), addr.is_valid());
        assert_eq!(subnet.to_string().parse(), Ok(subnet));
    }
}

fuzz_target!(|bytes: &[u8]| {
    for encoding in [Encoding::V1, Encoding::V2] {
        if let Ok(one) = TimedAddress::decode(&mut Reader::new(bytes), encoding) {
            let mut out = Vec::new();
            one.encode(&mut out, encoding);
            assert_eq!(TimedAddress::decode(&mut Reader::new(&out), encoding), Ok(one));
            check(&one.endpoint.addr);
        }
        let _ = TimedAddress::decode_disk(&mut Reader::new(bytes), encoding);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(addr) = text.parse::<NetAddr>() {
        check(&addr);
    }
    if let Ok(subnet) = text.parse::<Subnet>() {
        assert_eq!(subnet.to_string().parse(), Ok(subnet));
        let network = subnet.network();
        assert_eq!(subnet.contains(&network), network.is_valid());
    }
    let (host, _, is_valid) = split_host_port(text, 8333);
    assert!(text.contains(host));
    if let Ok(endpoint) = Endpoint::parse(text, 8333) {
        assert!(is_valid && (endpoint.port != 0));
    }
});
