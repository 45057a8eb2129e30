use super::*;
use crate::error::DecodeError;
use crate::limits::ADDRV2_SIZE_MAX;
use lydian_primitives::{Reader, hex, write_compact_size};
use proptest::prelude::*;

fn addr(text: &str) -> NetAddr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
const I2P: &str = "ukeu3k5oycgaauneqgtnvselmt4yemvoilkln7jpvamvfx7dnkdq.b32.i2p";

#[test]
fn text_is_read_and_printed_as_core_does() {
    // From Core's netbase_tests and net_tests: the input, and the text printed for it.
    let cases = [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f.0.0.010", "127.0.0.8"),
        ("4294967295", "255.255.255.255"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::8.8.8.8", "::808:808"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1::", "1::"),
        ("fd87:d87e:eb43:edb1:8e4:3588:e546:35ca", "::"),
        (ONION, ONION),
        (I2P, I2P),
        ("UKEU3K5OYCGAAUNEQGTNVSELMT4YEMVOILKLN7JPVAMVFX7DNKDQ.B32.I2P", I2P),
    ];
    for (text, printed) in cases {
        assert_eq!(addr(text).to_string(), printed, "{text}");
    }
    let wrong = [
        "",
        ":",
        "256.0.0.1",
        "1.2.3.4.5",
        "1.2.3.4 ",
        "127.0.0.08",
        "example.com",
        "1:2:3",
        "4294967296",
        // Wrong in the last letter of the checksum, the version, the suffix, and the old kind.
        "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscrye.onion",
        "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscsad.onion",
        "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.ONION",
        "6hzph5hv6337r6p2.onion",
        "ukeu3k5oycgaauneqgtnvselmt4yemvoilkln7jpvamvfx7dnkd.b32.i2p",
        // An embedded name is not an address.
        "fd6b:88c0:8724::1",
        "+1.2.3.4",
        "0x.1",
    ];
    for text in wrong {
        assert_eq!(text.parse::<NetAddr>(), Err(AddressError::NotAnAddress), "{text}");
    }
}

#[test]
fn a_port_is_what_follows_the_only_colon_or_the_bracket() {
    // Core's netbase_splithost.
    let cases = [
        ("www.bitcoincore.org", "www.bitcoincore.org", 0, true),
        ("[www.bitcoincore.org]", "www.bitcoincore.org", 0, true),
        ("www.bitcoincore.org:80", "www.bitcoincore.org", 80, true),
        ("[www.bitcoincore.org]:80", "www.bitcoincore.org", 80, true),
        ("www.bitcoincore.org:65536", "www.bitcoincore.org:65536", 0, false),
        ("www.bitcoincore.org:0", "www.bitcoincore.org", 0, false),
        ("127.0.0.1:8333", "127.0.0.1", 8333, true),
        ("[127.0.0.1]:8333", "127.0.0.1", 8333, true),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", 0, true),
        ("[::ffff:127.0.0.1]:8333", "::ffff:127.0.0.1", 8333, true),
        ("[::]:8333", "::", 8333, true),
        (":8333", "", 8333, true),
        ("[]:8333", "", 8333, true),
        ("", "", 0, true),
        (":65535", "", 65535, true),
        (":65536", ":65536", 0, false),
        (":-1", ":-1", 0, false),
        ("[]:70001", "[]:70001", 0, false),
        ("[]:-1", "[]:-1", 0, false),
        ("[]:-0", "[]:-0", 0, false),
        ("[]:1 ", "[]:1 ", 0, false),
    ];
    for (text, host, port, is_valid) in cases {
        assert_eq!(split_host_port(text, 0), (host, port, is_valid), "{text}");
    }
    let parse = |text: &str| Endpoint::parse(text, 8333).map(|endpoint| endpoint.to_string());
    assert_eq!(parse("1.2.3.4").as_deref(), Ok("1.2.3.4:8333"));
    assert_eq!(parse("[::1]:18444").as_deref(), Ok("[::1]:18444"));
    assert_eq!(parse(&format!("{ONION}:1")), Ok(format!("{ONION}:1")));
    assert_eq!(parse("1.2.3.4:0"), Err(AddressError::NotAPort));
    assert_eq!(parse("1.2.3.4:x"), Err(AddressError::NotAPort));
}

#[test]
fn what_is_routable_and_valid_is_what_core_says() {
    // Core's netbase_properties, and the edges of each range.
    let routable = [
        "8.8.8.8",
        "2001::8888",
        "2001:470::",
        "172.15.255.255",
        "172.32.0.0",
        "100.63.0.0",
        "100.128.0.0",
        "2001:30::",
        ONION,
        I2P,
    ];
    for text in routable {
        assert!(addr(text).is_routable() && addr(text).is_valid(), "{text}");
    }
    let valid_only = [
        "10.0.0.1",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.1.1",
        "198.18.0.0",
        "198.19.255.255",
        "169.254.0.1",
        "100.64.0.0",
        "100.127.255.255",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "127.0.0.1",
        "0.1.2.3",
        "::1",
        "fe80::1",
        "fc00::",
        "fdff::",
        "2001:10::",
        "2001:1f::",
        "2001:20::",
        "2001:2f::",
    ];
    for text in valid_only {
        assert!(!addr(text).is_routable() && addr(text).is_valid(), "{text}");
        assert_eq!(addr(text).network(), Network::Unroutable, "{text}");
    }
    for text in ["0.0.0.0", "255.255.255.255", "::", "2001:db8::1"] {
        assert!(!addr(text).is_valid() && !addr(text).is_routable(), "{text}");
    }
    assert!(addr("fc00::1").maybe_cjdns().is_routable());
    assert!(!NetAddr::Cjdns("fd00::1".parse().unwrap()).is_valid());
    assert_eq!(addr("fd00::1").maybe_cjdns(), addr("fd00::1"));
    assert!(addr("::").is_bind_any() && addr("0.0.0.0").is_bind_any() && !addr("::1").is_bind_any());
    let name = NetAddr::internal("seed.example").unwrap();
    assert!(!name.is_valid() && !name.is_relayable() && name.network() == Network::Internal);
    assert_eq!(NetAddr::internal(""), None);
}

#[test]
fn groups_are_cores() {
    // Core's netbase_getgroup.
    let cases: [(&str, &[u8]); 13] = [
        ("127.0.0.1", &[0]),
        ("257.0.0.1", &[]),
        ("10.0.0.1", &[0]),
        ("169.254.1.1", &[0]),
        ("1.2.3.4", &[1, 1, 2]),
        ("::FFFF:0:102:304", &[1, 1, 2]),
        ("64:FF9B::102:304", &[1, 1, 2]),
        ("2002:102:304:9999:9999:9999:9999:9999", &[1, 1, 2]),
        ("2001:0:9999:9999:9999:9999:FEFD:FCFB", &[1, 1, 2]),
        ("2001:470:abcd:9999:9999:9999:9999:9999", &[2, 32, 1, 4, 112, 175]),
        ("2001:2001:9999:9999:9999:9999:9999:9999", &[2, 32, 1, 32, 1]),
        (ONION, &[3, 0x7f]),
        (I2P, &[4, 0xaf]),
    ];
    for (text, group) in cases {
        match text.parse::<NetAddr>() {
            Ok(addr) => assert_eq!(addr.netgroup(), group, "{text}"),
            Err(_) => assert_eq!(text, "257.0.0.1"),
        }
    }
    assert_eq!(addr("fc01:2345::1").maybe_cjdns().netgroup(), [5, 0xfc, 0x0f]);
    let NetAddr::Internal(bytes) = NetAddr::internal("baz.net").unwrap() else { panic!("not internal") };
    assert_eq!(NetAddr::Internal(bytes).netgroup(), [&[6][..], &bytes].concat());
    assert_eq!(Endpoint::new(addr("1.2.3.4"), 0x0102).key().len(), 18);
    assert_eq!(Endpoint::new(addr(ONION), 0x0102).key()[32..], [1, 2]);
}

#[test]
fn reachability_prefers_what_the_partner_can_dial() {
    let (v4, v6, tunnel, teredo) = (addr("8.8.8.8"), addr("2a00::1"), addr("2002:808:808::1"), addr("2001::1"));
    let (onion, i2p, local) = (addr(ONION), addr(I2P), addr("10.0.0.1"));
    assert_eq!(local.reachability_from(&v4), 0);
    assert_eq!(v4.reachability_from(&v4), 4);
    assert_eq!([v4, v6, tunnel, teredo].map(|ours| ours.reachability_from(&v6)), [4, 5, 3, 2]);
    assert_eq!([v4, v6, onion].map(|ours| ours.reachability_from(&onion)), [4, 1, 6]);
    assert_eq!([v4, i2p].map(|ours| ours.reachability_from(&i2p)), [1, 6]);
    assert_eq!([v4, v6, teredo].map(|ours| ours.reachability_from(&teredo)), [4, 3, 2]);
    assert_eq!([v4, v6, teredo, onion, i2p].map(|ours| ours.reachability_from(&local)), [4, 3, 2, 6, 1]);
}

fn decode(bytes: &[u8]) -> Result<NetAddr, DecodeError> {
    NetAddr::decode(&mut Reader::new(bytes), Encoding::V2)
}

#[test]
fn bip155_addresses_are_read_as_core_reads_them() {
    // Core's cnetaddr_unserialize_v2.
    let hex = |text: &str| hex(text).unwrap();
    assert_eq!(decode(&hex("010401020304")), Ok(addr("1.2.3.4")));
    assert_eq!(
        decode(&hex("021001020304050607080910111213141516")).unwrap().to_string(),
        "102:304:506:708:910:1112:1314:1516"
    );
    assert_eq!(decode(&hex("0210fd6b88c08724ca978112ca1bbdcafac2")), Ok(NetAddr::internal("a").unwrap()));
    assert_eq!(decode(&hex("021000000000000000000000ffff01020304")), Ok(NetAddr::UNSPECIFIED));
    assert_eq!(decode(&hex("0210fd87d87eeb430102030405060708090a")), Ok(NetAddr::UNSPECIFIED));
    let onion = hex("042079bcc625184b05194975c28b66b66b0469f7f6556fb1ac3189a79b40dda32f1f");
    assert_eq!(decode(&onion), Ok(addr(ONION)));
    let i2p = hex("0520a2894dabaec08c0051a481a6dac88b64f98232ae42d4b6fd2fa81952dfe36a87");
    assert_eq!(decode(&i2p), Ok(addr(I2P)));
    let cjdns = hex("0610fc000001000200030004000500060007");
    assert_eq!(decode(&cjdns).unwrap().to_string(), "fc00:1:2:3:4:5:6:7");
    // TORv2 and future networks are skipped.
    assert_eq!(decode(&hex("030af1f2f3f4f5f6f7f8f9fa")), Ok(NetAddr::UNSPECIFIED));
    assert_eq!(decode(&hex("aa0401020304")), Ok(NetAddr::UNSPECIFIED));
    assert_eq!(decode(&hex("aa00")), Ok(NetAddr::UNSPECIFIED));
    for (network, expected) in [(1, 4), (2, 16), (4, 32), (5, 32), (6, 16)] {
        let bytes = [&[network, 5][..], &[0; 40]].concat();
        assert_eq!(decode(&bytes), Err(DecodeError::AddressSize { network, size: 5, expected }));
    }
    assert!(matches!(decode(&hex("0104010203")), Err(DecodeError::Malformed(_))));
    assert!(matches!(decode(&hex("aa04010203")), Err(DecodeError::Malformed(_))));
}

/// limit: ADDRV2_SIZE_MAX at
/// limit: ADDRV2_SIZE_MAX above
#[test]
fn an_address_of_an_unknown_network_has_a_limit() {
    let bytes = |size: usize| {
        let mut out = vec![0xaa];
        write_compact_size(&mut out, size);
        out.resize(out.len() + size, 1);
        out
    };
    assert_eq!(decode(&bytes(ADDRV2_SIZE_MAX)), Ok(NetAddr::UNSPECIFIED));
    let size = ADDRV2_SIZE_MAX + 1;
    assert_eq!(decode(&bytes(size)), Err(DecodeError::AddressTooLong { size }));
    assert!(decode(&[1, 0xfd, 0, 2]).is_err());
}

#[test]
fn subnets_hold_what_cores_hold() {
    let subnet = |text: &str| text.parse::<Subnet>();
    let cases = [
        ("1.2.3.0/24", "1.2.3.4", true),
        ("1.2.3.0/24", "1.2.4.4", false),
        ("1.2.3.4", "1.2.3.4", true),
        ("1.2.3.4/32", "5.2.3.4", false),
        ("1.2.3.4/255.255.255.0", "1.2.3.77", true),
        ("0.0.0.0/0", "9.9.9.9", true),
        ("::/0", "2a00::1", true),
        ("::/0", "1.2.3.4", false),
        ("::/0", "2001:db8::1", false),
        ("::ffff:1.2.3.4/24", "1.2.3.9", true),
        ("1:2:3:4:5:6:7:0/112", "1:2:3:4:5:6:7:1234", true),
        ("1:2:3:4:5:6:7:0/ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0", "1:2:3:4:5:6:7:10", false),
        (ONION, ONION, true),
        (ONION, I2P, false),
    ];
    for (net, one, inside) in cases {
        assert_eq!(subnet(net).unwrap().contains(&addr(one)), inside, "{net} {one}");
    }
    assert_eq!(subnet("1.2.3.77/255.255.255.0").unwrap().to_string(), "1.2.3.0/24");
    assert_eq!(subnet("1.2.3.4").unwrap().to_string(), "1.2.3.4/32");
    assert_eq!(subnet("2a00::7/16").unwrap().to_string(), "2a00::/16");
    assert_eq!(subnet(ONION).unwrap().to_string(), ONION);
    for wrong in [
        "1.2.3.4/33",
        "1.2.3.4/-1",
        "1.2.3.4/255.0.255.0",
        "1.2.3.4/::",
        "::/129",
        "1.2.3.4/",
        "x/8",
        "fd6b:88c0:8724::1",
        &format!("{ONION}/8"),
    ] {
        assert!(subnet(wrong).is_err(), "{wrong}");
    }
    assert!(
        Subnet::parse("fc00::/8", true).is_err()
            && Subnet::parse("fc00::1", true).unwrap().contains(&addr("fc00::1").maybe_cjdns())
    );
}

#[test]
fn files_name_their_encoding() {
    let one = TimedAddress { time: 7, services: Services(9), endpoint: Endpoint::new(addr(ONION), 8333) };
    let mut out = Vec::new();
    one.encode_disk(&mut out, Encoding::V2);
    assert_eq!(out[..4], (220_000u32 | 1 << 29).to_le_bytes());
    assert_eq!(TimedAddress::decode_disk(&mut Reader::new(&out), Encoding::V2), Ok(one));
    let error = TimedAddress::decode_disk(&mut Reader::new(&out), Encoding::V1);
    assert_eq!(error, Err(DecodeError::AddressFormat { version: 220_000 | 1 << 29 }));
    let old = TimedAddress { endpoint: Endpoint::new(addr("1.2.3.4"), 8333), ..one };
    let mut out = Vec::new();
    old.encode_disk(&mut out, Encoding::V1);
    assert_eq!(TimedAddress::decode_disk(&mut Reader::new(&out), Encoding::V2), Ok(old));
}

pub(crate) fn any_addr() -> impl Strategy<Value = NetAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|bytes| NetAddr::Ipv4(bytes.into())),
        any::<[u8; 16]>().prop_map(NetAddr::from_legacy_ipv6),
        any::<[u8; 32]>().prop_map(NetAddr::TorV3),
        any::<[u8; 32]>().prop_map(NetAddr::I2p),
        any::<[u8; 16]>().prop_map(|bytes| NetAddr::Cjdns(bytes.into())),
        any::<[u8; 10]>().prop_map(NetAddr::Internal),
    ]
}

proptest! {
    #[test]
    fn addresses_round_trip(addr in any_addr(), port: u16, time: u32, services: u64) {
        let one = TimedAddress { time, services: Services(services), endpoint: Endpoint { addr, port } };
        let mut out = Vec::new();
        one.encode(&mut out, Encoding::V2);
        prop_assert_eq!(TimedAddress::decode(&mut Reader::new(&out), Encoding::V2), Ok(one));
        out.clear();
        one.encode(&mut out, Encoding::V1);
        prop_assert_eq!(out.len(), 30);
        let back = TimedAddress::decode(&mut Reader::new(&out), Encoding::V1).unwrap();
        let kept = if addr.is_addr_v1_compatible() { addr } else { NetAddr::UNSPECIFIED };
        prop_assert_eq!(back, TimedAddress { endpoint: Endpoint { addr: kept, port }, ..one });
        // Also as text, except names. Text does not distinguish CJDNS from IPv6.
        if !addr.is_internal() {
            let read: NetAddr = addr.to_string().parse().unwrap();
            let expected = if let NetAddr::Cjdns(ip) = addr { NetAddr::from_legacy_ipv6(ip.octets()) } else { addr };
            prop_assert_eq!(read, expected);
        }
        prop_assert!(!addr.netgroup().is_empty());
        prop_assert!(!addr.is_routable() || addr.is_valid());
    }

    #[test]
    fn any_bytes_and_any_text_are_read_or_refused(bytes: Vec<u8>, text: String) {
        let mut reader = Reader::new(&bytes);
        if let Ok(addr) = NetAddr::decode(&mut reader, Encoding::V2) {
            prop_assert!(addr.netgroup().len() < 12);
        }
        let _ = TimedAddress::decode_disk(&mut Reader::new(&bytes), Encoding::V2);
        let _ = text.parse::<NetAddr>();
        let _ = text.parse::<Subnet>();
        let (host, _, _) = split_host_port(&text, 1);
        prop_assert!(text.contains(host));
    }
}
