//! Values of Core's `netpeer_permissions` (netbase_tests.cpp), and which peer gets which permissions.

use super::*;

fn names(permissions: Permissions) -> String {
    permissions.names().join(",")
}

fn bind(text: &str) -> Result<WhiteBind, String> {
    WhiteBind::parse(text, false).map_err(|error| error.to_string())
}

fn range(text: &str) -> Result<WhiteRange, String> {
    WhiteRange::parse(text, false).map_err(|error| error.to_string())
}

#[test]
fn binds_are_read_as_cores() {
    let given = |text: &str| bind(text).map(|bind| bind.permissions);
    for text in ["1.2.3.4:32", "[::]:8333"] {
        assert_eq!(given(text), Ok(Permissions::IMPLICIT), "{text}");
    }
    for text in ["@1.2.3.4:32", ",@1.2.3.4:32", ",,@1.2.3.4:32"] {
        assert_eq!(given(text), Ok(Permissions::NONE), "{text}");
    }
    for (text, expected) in [
        ("noban@1.2.3.4:32", "noban,download"),
        ("bloom,forcerelay@1.2.3.4:32", "bloomfilter,forcerelay,relay"),
        ("bloomfilter,relay,noban,noban@1.2.3.4:32", "bloomfilter,noban,relay,download"),
        ("all@1.2.3.4:32", "bloomfilter,noban,forcerelay,relay,mempool,download,addr"),
        ("bloom,,forcerelay,@1.2.3.4:32", "bloomfilter,forcerelay,relay"),
        ("in,mempool,addr@[::1]:32", "mempool,addr"),
    ] {
        assert_eq!(given(text).map(names), Ok(expected.to_owned()), "{text}");
    }
    for (text, expected) in [
        ("1.2.3.4", "Need to specify a port with -whitebind: '1.2.3.4'"),
        ("noban@1.2.3.4:0", "Need to specify a port with -whitebind: '1.2.3.4:0'"),
        ("noban@", "Cannot resolve -whitebind address: ''"),
        ("noban@a.example:1", "Cannot resolve -whitebind address: 'a.example:1'"),
        ("oopsie@1.2.3.4:32", "Invalid P2P permission: 'oopsie'"),
        ("out,relay@1.2.3.4:32", "whitebind may only be used for incoming connections (\"out\" was passed)"),
        ("in@1.2.3.4:32", "Only direction was set, no permissions: 'in@1.2.3.4:32'"),
    ] {
        assert_eq!(bind(text).unwrap_err(), expected);
    }
}

#[test]
fn ranges_are_read_as_cores() {
    let directions = |text: &str| range(text).map(|range| (range.is_inbound, range.is_outbound)).unwrap();
    assert_eq!(directions("noban@1.2.3.4"), (true, false));
    assert_eq!(directions("in,noban@1.2.3.4"), (true, false));
    assert_eq!(directions("out,noban@1.2.3.4"), (false, true));
    assert_eq!(directions("in,out,noban@1.2.3.4"), (true, true));
    assert_eq!(range("bloom,forcerelay,noban,relay@1.2.3.4/32").unwrap().subnet.to_string(), "1.2.3.4/32");
    for (text, expected) in [
        ("1.2.3.4:32", "Invalid netmask specified in -whitelist: '1.2.3.4:32'"),
        ("noban@1.2.3.4/33", "Invalid netmask specified in -whitelist: '1.2.3.4/33'"),
        ("", "Invalid netmask specified in -whitelist: ''"),
        ("out@1.2.3.4", "Only direction was set, no permissions: 'out@1.2.3.4'"),
        ("all,al@1.2.3.4", "Invalid P2P permission: 'al'"),
    ] {
        assert_eq!(range(text).unwrap_err(), expected);
    }
    assert!(range("0.0.0.0/0").is_ok() && range("::/0").is_ok());
}

#[test]
fn who_gets_what() {
    let list = |texts: &[&str]| Whitelist {
        ranges: texts.iter().map(|text| range(text).unwrap()).collect(),
        ..Whitelist::default()
    };
    let addr: NetAddr = "10.1.2.3".parse().unwrap();
    let of = |list: &Whitelist| (names(list.inbound(Permissions::NONE, Some(&addr))), names(list.manual(&addr)));
    assert_eq!(of(&list(&[])), (String::new(), String::new()));
    assert_eq!(of(&list(&["10.0.0.0/8"])).0, "noban,relay,mempool,download", "permissions without names");
    assert_eq!(
        of(&list(&["noban@10.0.0.0/8", "out,addr@10.1.2.3", "all@11.0.0.0/8"])),
        ("noban,download".to_owned(), "addr".to_owned())
    );
    let quiet = Whitelist { relay: false, force_relay: true, ..list(&["10.1.2.3"]) };
    assert_eq!(of(&quiet).0, "noban,forcerelay,relay,mempool,download");
    let silent = Whitelist { relay: false, ..list(&["10.1.2.3"]) };
    assert_eq!(of(&silent).0, "noban,mempool,download");
    let two = list(&["addr@10.1.2.3", "bloom@10.0.0.0/8"]);
    assert_eq!(names(two.inbound(Permissions::DOWNLOAD, Some(&addr))), "bloomfilter,download,addr", "all are added up");
    assert_eq!(
        names(two.inbound(Permissions::DOWNLOAD, None)),
        "download",
        "through the onion service only the bind counts"
    );
    assert_eq!(names(two.inbound(Permissions::IMPLICIT, None)), "noban,relay,mempool,download");
}
