//! Which inbound connections are accepted, and which peers are evicted for them.

use crate::world::*;
use lydian_p2p::manager::{ConnectSettings, Question, Reply, SavedFile};
use lydian_p2p::peer::{ConnectionKind, Permissions};

/// A world with this number of inbound slots.
fn with_room_for(inbound: usize) -> World {
    World::new(ConnectSettings { automatic_max: inbound + 11, ..settings() })
}

fn from(number: usize) -> String {
    format!("20.{}.{}.1:7", number / 250 + 1, number % 250 + 1)
}

/// checklist: 84
#[test]
fn a_peer_is_evicted_for_room_but_never_a_trusted_one() {
    let mut world = with_room_for(60);
    for number in 0..60 {
        world.come(&from(number), Permissions::NONE);
        world.run(1);
    }
    assert_eq!((world.count(ConnectionKind::Inbound), world.ended.len()), (60, 0));
    let newest = world.come(&from(60), Permissions::NONE);
    assert_eq!(world.ended.len(), 1, "{:?}", world.ended);
    assert!(world.ended[0].1 == "selected inbound connection for eviction" && world.ended[0].0 != newest);
    assert_eq!(world.count(ConnectionKind::Inbound), 60);

    let mut trusted = with_room_for(3);
    (0..3).for_each(|number| {
        trusted.come(&from(number), Permissions::NO_BAN);
    });
    let newcomer = trusted.come(&from(3), Permissions::NONE);
    assert_eq!(trusted.ended, [(newcomer, "full".to_owned())]);

    let mut none = World::new(ConnectSettings { automatic_max: 0, ..settings() });
    none.come(&from(0), Permissions::NONE);
    assert_eq!(none.ended.len(), 1);
}

/// checklist: 67, 84
#[test]
fn banned_peers_are_refused_and_discouraged_ones_when_it_gets_tight() {
    let mut world = with_room_for(4);
    let victim = world.come("30.1.1.1:7", Permissions::NONE);
    let trusted = world.come("30.1.1.2:7", Permissions::NO_BAN);
    assert!(world.manager.ban("30.1.0.0/16".parse().unwrap(), 0, false));
    world.act();
    assert_eq!(world.ended.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [victim, trusted], "a ban ends what stands");
    assert_eq!(world.saved.iter().filter(|(file, _)| *file == SavedFile::Bans).count(), 1);
    assert!(!world.manager.ban("30.1.0.0/16".parse().unwrap(), 5, false), "no ban is shortened");
    world.ended.clear();
    let refused = world.come("30.1.9.9:7", Permissions::NONE);
    assert_eq!(world.ended, [(refused, "banned".to_owned())]);
    world.come("30.1.9.9:8", Permissions::NO_BAN);
    assert_eq!(world.ended.len(), 1, "trusted");

    world.manager.bans_mut().discourage(&"40.1.1.1".parse().unwrap());
    world.come("40.1.1.1:1", Permissions::NONE);
    world.come("40.1.1.1:2", Permissions::NONE);
    assert_eq!(world.ended.len(), 1, "there is room");
    world.come("40.1.1.1:3", Permissions::NONE);
    assert!(world.ended[1].1 == "discouraged", "{:?}", world.ended);

    assert!(world.manager.unban(&"30.1.0.0/16".parse().unwrap()));
    assert!(!world.manager.unban(&"30.1.0.0/16".parse().unwrap()));
    world.come("30.1.9.9:9", Permissions::NONE);
    assert_eq!(world.ended.len(), 2);
}

#[test]
fn what_was_discouraged_before_goes_first() {
    let mut world = with_room_for(40);
    world.manager.bans_mut().discourage(&"40.1.1.1".parse().unwrap());
    let discouraged = world.come("40.1.1.1:1", Permissions::NONE);
    for number in 1..40 {
        world.run(1);
        world.come(&from(number), Permissions::NONE);
    }
    // Half of them are protected by their uptime, so further peers connect and are evicted.
    (40..80).for_each(|number| {
        world.run(1);
        world.come(&from(number), Permissions::NONE);
    });
    let order: Vec<_> = world.ended.iter().map(|(id, _)| *id).collect();
    assert_eq!(order.len(), 40);
    assert!(!order.contains(&discouraged) || order[0] == discouraged, "{order:?}");
}

#[test]
fn no_banned_or_discouraged_address_is_dialled() {
    let mut world = World::choosing(20, |_| {});
    let time = world.now();
    let now = time.unix;
    for number in 0..10 {
        let addr = address(number, now).endpoint.addr;
        if number % 2 == 0 {
            world.manager.bans_mut().discourage(&addr);
        } else {
            let (reply, _) = Reply::pair();
            let subnet = addr.to_string().parse().unwrap();
            world.manager.ask(Question::Ban { subnet, seconds: 3600, is_absolute: false, reply }, time);
        }
    }
    world.run(60);
    let bad: Vec<_> = (0..10).map(|number| address(number, now).endpoint.to_string()).collect();
    assert!(world.tried.len() >= 10, "{:?}", world.tried);
    assert!(world.tried.iter().all(|tried| !bad.contains(&tried.target)), "{:?}", world.tried);
    // Manually, any address may be connected to.
    world.manager.connect_once(&bad[1], false);
    world.act();
    assert!(world.standing.values().any(|(kind, endpoint)| *kind == MANUAL && endpoint.to_string() == bad[1]));
}
