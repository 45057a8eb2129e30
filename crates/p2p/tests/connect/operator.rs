//! Requests of the operator.

use crate::world::*;
use lydian_p2p::limits::ADDED_NODES_CONNECTED_MAX;
use lydian_p2p::manager::{AddedNode, ConnectSettings, SavedFile};
use lydian_p2p::peer::Permissions;
use lydian_wire::{Endpoint, NetAddr};
use std::time::Duration;

fn specified(targets: &[&str]) -> World {
    let specified = targets.iter().map(|target| (*target).to_owned()).collect();
    let mut world = World::new(ConnectSettings { specified, ..settings() });
    world.know(500);
    world
}

#[test]
fn the_nodes_of_connect_and_no_others() {
    let mut world = specified(&["1.1.1.1", "name.example:77"]);
    world.names.insert("name.example".to_owned(), vec![NetAddr::Ipv4([2, 2, 2, 2].into())]);
    world.run(600);
    assert_eq!(world.tried_of(MANUAL), ["1.1.1.1:8333", "2.2.2.2:77"]);
    assert_eq!((world.tried.len(), world.standing.len()), (2, 2));
    let first = *world.standing.keys().next().unwrap();
    world.end(first);
    world.run(12);
    assert_eq!(world.standing.len(), 2, "connected again");
}

/// Core's loop: immediately, then with a pause that grows by half a second per round.
#[test]
fn connect_is_tried_again_with_longer_pauses() {
    let mut world = specified(&["1.1.1.1"]);
    world.answers = Answers::Nobody;
    world.run(30);
    let seconds = world.seconds();
    assert_eq!(seconds[..5], [0.0, 0.5, 1.5, 3.0, 5.0]);
    assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] <= 5.6), "{seconds:?}");
}

#[test]
fn a_name_is_tried_at_each_of_its_addresses() {
    let mut world = specified(&["name.example"]);
    let addresses: Vec<_> = (1..=5).map(|last| NetAddr::Ipv4([2, 2, 2, last].into())).collect();
    world.names.insert("name.example".to_owned(), addresses);
    world.answers = Answers::Only(["2.2.2.4:8333".to_owned()].into());
    world.run(20);
    assert_eq!(world.standing.values().map(|(_, endpoint)| endpoint.to_string()).collect::<Vec<_>>(), ["2.2.2.4:8333"]);
    assert!(world.tried.len() <= 5, "each once");
    // The address of this name is already connected, so there is no second connection.
    world.manager.connect_once("other.example", true);
    world.act();
    world.names.insert("other.example".to_owned(), vec![NetAddr::Ipv4([2, 2, 2, 4].into())]);
    world.manager.connect_once("other.example", true);
    world.act();
    assert_eq!(world.standing.len(), 1);
    assert!(
        world
            .log
            .iter()
            .any(|line| line == "Not opening a connection to other.example, already connected to 2.2.2.4:8333")
    );
    assert!(world.manager.disconnect_endpoint("name.example"), "it is known by the name that was given");
    assert!(!world.manager.disconnect_endpoint("2.2.2.4:8333"));
}

/// limit: ADDED_NODES_CONNECTED_MAX at
/// limit: ADDED_NODES_CONNECTED_MAX above
#[test]
fn added_nodes_are_tried_again_each_minute_and_eight_of_them_connected() {
    let mut world = World::new(settings());
    assert!(world.manager.add_node("1.1.1.1", true));
    assert!(!world.manager.add_node("1.1.1.1:8333", true), "the same");
    assert!(!world.manager.add_node("1.1.1.1", false));
    world.answers = Answers::Nobody;
    world.run(185);
    assert_eq!(world.seconds(), [0.0, 60.5, 121.0, 181.5]);
    world.answers = Answers::Everybody;
    for last in 1..=ADDED_NODES_CONNECTED_MAX {
        world.manager.add_node(&format!("1.1.2.{last}"), true);
    }
    world.run(180);
    assert_eq!(world.count(MANUAL), ADDED_NODES_CONNECTED_MAX);
    assert_eq!(world.manager.added_nodes().len(), ADDED_NODES_CONNECTED_MAX + 1);
    let waiting = world.manager.added_nodes().iter().filter(|node| node.connected.is_none()).count();
    assert_eq!(waiting, 1);
    assert!(world.manager.remove_added_node("1.1.2.1") && !world.manager.remove_added_node("1.1.2.1"));
    assert_eq!(world.count(MANUAL), ADDED_NODES_CONNECTED_MAX, "its connection stays");
}

#[test]
fn an_added_node_that_came_by_itself_is_not_dialled() {
    let mut world = World::choosing(0, |connect| connect.added = vec!["50.1.1.1:8333".into(), "11.3.0.7".into()]);
    world.know(10);
    world.come("50.1.1.1:8333", Permissions::NONE);
    world.run(60);
    assert_eq!(world.tried_of(MANUAL), ["11.3.0.7:8333"]);
    assert!(
        world.tried.iter().all(|tried| tried.kind == MANUAL || tried.target != "11.3.0.7:8333"),
        "it has its own slot"
    );
    let endpoint = Endpoint::parse("50.1.1.1:8333", 0).unwrap();
    let expected = AddedNode { target: "50.1.1.1:8333".into(), v2: true, connected: Some((endpoint, true)) };
    assert_eq!(world.manager.added_nodes()[0], expected);
}

#[test]
fn who_does_not_speak_v2_is_asked_again_by_v1() {
    let mut world = specified(&["1.1.1.1"]);
    world.run(1);
    let peer = *world.standing.keys().next().unwrap();
    world.manager.retry_with_v1(peer);
    world.end(peer);
    world.act();
    let versions: Vec<_> = world.tried.iter().map(|tried| tried.v2).collect();
    assert_eq!((versions, world.standing.len()), (vec![true, false], 1), "at once");
    assert!(world.log.iter().any(|line| line == "retrying with v1 transport protocol for peer=0"));
}

#[test]
fn connections_of_a_kind_have_their_slots() {
    let mut world = World::new(settings());
    for last in 1..=2 {
        assert!(world.manager.add_connection(&format!("1.1.1.{last}"), BLOCKS, true));
    }
    assert!(world.manager.add_connection("1.1.2.1", FEELER, true));
    world.act();
    assert!(!world.manager.add_connection("1.1.1.3", BLOCKS, true), "two of them");
    assert!(!world.manager.add_connection("1.1.1.3", MANUAL, true));
    for last in 1..=8 {
        assert!(world.manager.add_connection(&format!("1.2.1.{last}"), FULL, true));
        world.act();
    }
    assert!(!world.manager.add_connection("1.2.1.9", FULL, true));
    assert_eq!((world.count(FULL), world.count(BLOCKS), world.count(FEELER)), (8, 2, 0));
}

#[test]
fn nothing_moves_while_the_network_is_off() {
    let mut world = World::choosing(500, |_| {});
    world.come("60.1.1.1:5", Permissions::NO_BAN);
    world.run(30);
    assert_eq!(world.standing.len(), 11);
    world.answers = Answers::Later;
    world.manager.connect_once("70.1.1.1", true);
    world.act();
    let pending = world.tried.last().unwrap().clone();
    world.manager.set_network_active(false);
    world.act();
    assert!(world.standing.is_empty() && !world.manager.is_network_active());
    let before = world.tried.len();
    world.succeed(&pending);
    world.come("60.1.1.1:6", Permissions::NO_BAN);
    world.run(30);
    assert!(world.standing.is_empty() && world.tried.len() == before, "what comes late, and who comes, goes");
    world.answers = Answers::Everybody;
    world.manager.set_network_active(true);
    world.run(30);
    assert_eq!(world.standing.len(), 10);
}

#[test]
fn addresses_are_kept_every_quarter_of_an_hour_and_bans_when_they_change() {
    let mut world = World::new(settings());
    world.know(50);
    world.run(15 * 60 - 5);
    assert_eq!(world.saved.len(), 0);
    world.run(10);
    assert_eq!(world.saved.iter().map(|(file, _)| *file).collect::<Vec<_>>(), [SavedFile::Peers]);
    assert!(world.manager.ban("9.9.9.0/24".parse().unwrap(), 60, false));
    world.act();
    assert_eq!(world.saved.last().unwrap().0, SavedFile::Bans);
    world.run(15 * 60);
    let files: Vec<_> = world.saved.iter().map(|(file, _)| *file).collect();
    assert_eq!(files[2..], [SavedFile::Peers, SavedFile::Bans], "the ban has expired");
    world.elapsed += Duration::from_secs(1);
    let now = world.now();
    world.manager.end(now);
    world.act();
    let files: Vec<_> = world.saved.iter().map(|(file, _)| *file).collect();
    assert_eq!(files[4..], [SavedFile::Peers], "no anchors of peers that were not chosen");
}
