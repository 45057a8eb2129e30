//! Compares bans with a linear search through a list, and the file with what Core writes and refuses.

use super::*;
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

const NOW: UnixTime = UnixTime(1_750_000_000);

fn bans() -> Bans {
    Bans::new(DEFAULT_BAN_TIME_S, &mut ChaCha20Rng::seed_from_u64(1))
}

fn net(text: &str) -> Subnet {
    text.parse().unwrap()
}

fn ip(text: &str) -> NetAddr {
    text.parse().unwrap()
}

#[test]
fn a_ban_holds_until_it_expires() {
    let mut bans = bans();
    assert!(bans.ban(net("1.2.3.0/24"), 100, false, NOW));
    assert!(bans.take_dirty() && !bans.take_dirty());
    assert!(bans.is_banned(&ip("1.2.3.255"), NOW.plus(99)) && !bans.is_banned(&ip("1.2.4.0"), NOW));
    assert!(!bans.is_banned(&ip("1.2.3.4"), NOW.plus(100)));
    assert_eq!(bans.list(NOW.plus(100)).len(), 1, "Core keeps it for that second");
    assert_eq!(bans.list(NOW.plus(101)).len(), 0);
    assert!(bans.take_dirty());

    assert!(bans.ban(net("1.2.3.4"), 0, true, NOW), "0 is the default time, whatever it is counted from");
    assert!(bans.is_subnet_banned(&net("1.2.3.4/32"), NOW.plus(DEFAULT_BAN_TIME_S - 1)));
    assert!(!bans.is_subnet_banned(&net("1.2.3.4/31"), NOW));
    assert!(!bans.ban(net("1.2.3.4"), 10, false, NOW), "a ban is not shortened");
    assert!(bans.ban(net("1.2.3.4"), i64::MAX, false, NOW), "it is prolonged");
    assert!(bans.ban(net("::/0"), NOW.signed() + 5, true, NOW) && bans.is_banned(&ip("2001::1"), NOW));
    assert!(bans.unban(&net("1.2.3.4")) && !bans.unban(&net("1.2.3.4")) && !bans.is_banned(&ip("1.2.3.4"), NOW));
    bans.clear();
    assert!(!bans.is_banned(&ip("2001::1"), NOW));
}

#[test]
fn bans_are_summed_up_as_they_are_listed() {
    let mut bans = bans();
    assert_eq!(bans.figures(NOW), BanFigures::default());
    bans.ban(net("1.2.3.0/24"), 100, false, NOW);
    bans.ban(net("1.2.4.0/24"), 50, false, NOW.plus(10));
    let figures = |count, newest, last_end| BanFigures { count, newest, last_end };
    let now = NOW.signed();
    assert_eq!(bans.figures(NOW.plus(60)), figures(2, now + 10, now + 100));
    assert_eq!(bans.figures(NOW.plus(61)), figures(1, now, now + 100));
    assert_eq!(bans.figures(NOW.plus(101)), BanFigures::default());
}

/// checklist: 67, 79
#[test]
fn peers_that_misbehave_grow_no_list() {
    let mut bans = bans();
    for number in 0..200_000_u32 {
        bans.discourage(&NetAddr::Ipv4(number.into()));
    }
    assert!(bans.is_discouraged(&NetAddr::Ipv4(199_999.into())) && !bans.is_discouraged(&NetAddr::Ipv4(1.into())));
    assert!(!bans.is_discouraged(&ip("9.9.9.9")));
    assert!(bans.list(NOW).is_empty() && !bans.is_banned(&NetAddr::Ipv4(199_999.into()), NOW));
}

/// limit: DISCOURAGED_MAX at
/// limit: DISCOURAGED_MAX above
#[test]
fn the_last_discouraged_are_remembered() {
    let mut bans = bans();
    let addr = |number: u32| NetAddr::Ipv4((0x0100_0000 + number).into());
    for number in 0..DISCOURAGED_MAX {
        bans.discourage(&addr(number));
    }
    assert!((0..DISCOURAGED_MAX).all(|number| bans.is_discouraged(&addr(number))));
    for number in DISCOURAGED_MAX..3 * DISCOURAGED_MAX {
        bans.discourage(&addr(number));
    }
    assert!(!bans.is_discouraged(&addr(0)));
}

/// Ten thousand bans and the thousand addresses of a message must not cost ten million comparisons.
/// checklist: 67
#[test]
fn a_look_up_does_not_walk_the_list() {
    let mut bans = bans();
    for number in 0..10_000_u32 {
        bans.ban(Subnet::new(NetAddr::Ipv4((number << 12).into()), 24).unwrap(), 1000, false, NOW);
    }
    assert_eq!(bans.prefixes.len(), 1, "one look-up for each address");
    let banned = (0..10_000_u32).filter(|number| bans.is_banned(&NetAddr::Ipv4(((number << 12) + 7).into()), NOW));
    assert_eq!(banned.count(), 9_999 + usize::from(ip("0.0.0.7").is_valid()));
}

#[test]
fn the_file_is_cores() {
    let mut bans = bans();
    bans.ban(net("1.2.3.0/24"), 100, false, NOW);
    bans.ban(net("2001:db8::/32"), 200, false, NOW);
    let text = String::from_utf8(bans.encode()).unwrap();
    let expected = format!(
        r#"{{
    "_warning_": "{WARNING}",
    "banned_nets": [
        {{
            "version": 1,
            "ban_created": 1750000000,
            "banned_until": 1750000100,
            "address": "1.2.3.0/24"
        }},
        {{
            "version": 1,
            "ban_created": 1750000000,
            "banned_until": 1750000200,
            "address": "2001:db8::/32"
        }}
    ]
}}
"#
    );
    assert_eq!(text, expected);
    let mut read = super::tests::bans();
    assert_eq!(read.decode(text.as_bytes(), NOW), Ok(vec![]));
    assert_eq!(read.banned, bans.banned);
    assert!(!read.take_dirty());
    assert_eq!(read.decode(text.as_bytes(), NOW.plus(150)), Ok(vec![]));
    assert_eq!(read.banned.len(), 1, "what has expired is swept");
}

#[test]
fn damage_is_reported_and_changes_nothing() {
    let mut bans = bans();
    bans.ban(net("9.9.9.9"), 100, false, NOW);
    let entry = |version: &str, until: &str, address: &str| {
        format!(r#"{{"version": {version}, "ban_created": 1, "banned_until": {until}, "address": {address}}}"#)
    };
    let file = |entries: &str| format!(r#"{{"banned_nets": [{entries}], "other": 1}}"#);
    let good = entry("1", "1750000100", r#""1.2.3.4""#);
    let mut check = |text: &str, expected: Result<usize, BanlistError>| {
        let before = bans.banned.clone();
        let dropped = bans.decode(text.as_bytes(), NOW).map(|dropped| dropped.len());
        if matches!(expected, Err(BanlistError::Json { .. })) {
            assert!(matches!(dropped, Err(BanlistError::Json { .. })), "{text}");
        } else {
            assert_eq!(dropped, expected, "{text}");
        }
        if dropped.is_err() {
            assert_eq!(bans.banned, before, "{text}");
        }
    };
    let json = || Err(BanlistError::Json { reason: String::new() });
    check(&file(&good), Ok(0));
    check("", json());
    check("[]", json());
    check("{", json());
    check(&file(&good)[1..], json());
    check("{}", Err(BanlistError::NoList));
    check(r#"{"banned_nets": 7}"#, Err(BanlistError::NoList));
    check(r#"{"banned_nets": [], "banned_nets": []}"#, Err(BanlistError::DuplicateKey { key: "banned_nets".into() }));
    check(&file(&entry("2", "1", r#""1.2.3.4""#)), Ok(1));
    check(&file(&entry("1", "1", r#""1.2.3.4/33""#)), Ok(1));
    check(&file(&entry("1", "1", r#""nobody.example""#)), Ok(1));
    check(&file(&entry("1", "1", "5")), Err(BanlistError::Form { entry: 0, key: "address" }));
    check(&file(&entry("\"1\"", "1", "5")), Err(BanlistError::Form { entry: 0, key: "version" }));
    check(&file(&entry("4294967297", "1", "5")), Err(BanlistError::Form { entry: 0, key: "version" }));
    let late = format!("{good}, {}", entry("1", "1.5", r#""1.2.3.5""#));
    check(&file(&late), Err(BanlistError::Form { entry: 1, key: "banned_until" }));
    check(&file("null"), Err(BanlistError::Form { entry: 0, key: "version" }));
}

/// limit: BANLIST_FILE_SIZE_MAX at
/// limit: BANLIST_FILE_SIZE_MAX above
#[test]
fn a_file_is_read_up_to_its_size() {
    let mut bans = bans();
    bans.ban(net("1.2.3.4"), 100, false, NOW);
    let mut file = bans.encode();
    file.resize(BANLIST_FILE_SIZE_MAX, b' ');
    assert_eq!(bans.decode(&file, NOW), Ok(vec![]));
    file.push(b' ');
    assert_eq!(bans.decode(&file, NOW), Err(BanlistError::TooLarge { size: BANLIST_FILE_SIZE_MAX + 1 }));
}

fn subnet() -> impl Strategy<Value = Subnet> {
    prop_oneof![
        (0..64_u32, 24..=32_u8)
            .prop_map(|(low, bits)| Subnet::new(NetAddr::Ipv4((0x0102_0300 + low).into()), bits).unwrap()),
        (0..64_u128, 0..=128_u8).prop_map(|(low, bits)| Subnet::new(
            NetAddr::Ipv6(((0x2001 << 112) + low).into()),
            bits
        )
        .unwrap()),
        (0..4_u8).prop_map(|byte| Subnet::single(NetAddr::TorV3([byte; 32])).unwrap()),
    ]
}

proptest! {
    /// The same answers as a linear search through a list, also after writing and reading the file.
    #[test]
    fn look_ups_are_those_of_a_list(steps in prop::collection::vec((subnet(), 1..50_i64, any::<bool>()), 0..60), later in 0..60_u64) {
        let mut bans = bans();
        let mut list: Vec<(Subnet, i64)> = Vec::new();
        for (subnet, time, add) in steps {
            if add {
                bans.ban(subnet, time, false, NOW);
                let until = list.iter().filter(|(net, _)| *net == subnet).map(|(_, until)| *until).max().unwrap_or(0);
                list.retain(|(net, _)| *net != subnet);
                list.push((subnet, until.max(NOW.signed() + time)));
            } else {
                bans.unban(&subnet);
                list.retain(|(net, _)| *net != subnet);
            }
        }
        let mut read = super::tests::bans();
        prop_assert_eq!(read.decode(&bans.encode(), NOW), Ok(vec![]));
        let now = NOW.plus(later);
        let v4 = (0..70_u32).map(|low| NetAddr::Ipv4((0x0102_0300 + low).into()));
        let v6 = (0..70_u128).map(|low| NetAddr::Ipv6(((0x2001 << 112) + low).into()));
        for addr in v4.chain(v6).chain((0..5).map(|byte| NetAddr::TorV3([byte; 32]))) {
            let expected = list.iter().any(|(net, until)| now.signed() < *until && net.contains(&addr));
            prop_assert_eq!(bans.is_banned(&addr, now), expected, "{}", addr);
            prop_assert_eq!(read.is_banned(&addr, now), expected, "{}", addr);
        }
        bans.list(now);
        prop_assert_eq!(bans.prefixes.values().sum::<usize>(), bans.banned.len());
    }

    #[test]
    fn any_bytes_are_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), place in any::<prop::sample::Index>()) {
        let mut bans = bans();
        let _ = bans.decode(&bytes, NOW);
        bans.ban(net("1.2.3.4"), 100, false, NOW);
        let mut file = bans.encode();
        let place = place.index(file.len());
        file.splice(place..place, bytes.iter().copied().take(3));
        let _ = bans.decode(&file, NOW);
    }
}
