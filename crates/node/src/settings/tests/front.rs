//! The settings of `lydian serve`.

use super::{disk, load_from, load_with, sentence};
use crate::settings::help;
use lydian_consensus::Chain;
use lydian_disk::Disk;
use std::path::Path;

const INDEX: &str = "-index=cassandra://10.0.0.1/lydian";
const FEED: &str = "-feed=127.0.0.1:3003,https://a.example:3003";

#[test]
fn a_front_end_has_no_data_directory() {
    // A file that a node would refuse is not read.
    let arguments = ["serve", INDEX, FEED, "-feedcert=c.pem", "-electrum", "-signet"];
    let settings = load_with(&arguments, "prune=1000\npar\n").unwrap();
    assert_eq!((settings.params.chain, settings.datadir.as_path()), (Chain::Signet, Path::new("")));
    assert_eq!((settings.conf, settings.log.file), (None, None));
    let nodes: Vec<String> = settings.front.nodes.iter().map(ToString::to_string).collect();
    assert_eq!(nodes, ["127.0.0.1:3003", "https://a.example:3003"]);
    assert_eq!((settings.front.filter_bytes, settings.front.health_port), (256_000_000, 33_004));
    assert!(settings.electrum.is_on && !settings.esplora.is_on);
    assert_eq!(settings.feed.certificate.as_deref(), Some(Path::new("/cwd/c.pem")));
    let two = ["serve", INDEX, "-feed=127.0.0.1:1", "-feed=127.0.0.1:2", "-esplora", "-filters=0", "-healthbind=::1"];
    let settings = load_with(&two, "").unwrap();
    assert_eq!((settings.front.nodes.len(), settings.front.filter_bytes), (2, 0));
    assert_eq!((settings.front.health_bind, settings.front.health_port), (vec!["::1".to_owned()], 3_004));
}

/// A node makes a certificate in its data directory.
#[test]
fn a_front_end_has_tls_if_it_has_a_certificate() {
    let tls = |more: &[&str]| {
        let electrum = load_with(&[&["serve", INDEX, "-feed=127.0.0.1:1", "-electrum"], more].concat(), "").unwrap();
        (electrum.electrum.tls_bind, electrum.electrum.wss_bind)
    };
    assert_eq!(tls(&[]), (None, None));
    assert_eq!(tls(&["-electrumtlsbind=0"]), (None, None));
    let with = ["-electrumcert=c.pem", "-electrumkey=k.pem"];
    assert_eq!(tls(&with), (Some(Vec::new()), Some(Vec::new())));
    let bind = [&with[..], &["-electrumtlsbind=0.0.0.0", "-electrumwssbind=0"]].concat();
    assert_eq!(tls(&bind), (Some(vec!["0.0.0.0".to_owned()]), None));
}

#[test]
fn a_front_end_reads_the_file_that_is_named() {
    let disk = disk("");
    let conf = format!("{}\n{}\nesplora=1\nfeedtoken=0123456789abcdef\n", &INDEX[1..], "feed=127.0.0.1:1");
    disk.write_whole(Path::new("/cwd/serve.conf"), conf.as_bytes()).unwrap();
    let settings = load_from(&["serve", "-conf=serve.conf"], &disk).unwrap();
    assert_eq!(settings.feed.token.0, "0123456789abcdef");
    assert!(settings.esplora.is_on && settings.front.nodes.len() == 1);
    let lines = settings.arguments.join("\n");
    assert!(lines.contains("feedtoken=****") && !lines.contains("0123456789"), "{lines}");
    disk.write_whole(Path::new("/cwd/serve.conf"), format!("{conf}prune=550\n").as_bytes()).unwrap();
    let refused = load_from(&["serve", "-conf=serve.conf"], &disk).unwrap_err().to_string();
    assert_eq!(refused, "lydian serve has no -prune: a front end has no data directory and no peers.");
    assert!(load_from(&["serve", "-conf=other.conf"], &disk).unwrap_err().to_string().contains("/cwd/other.conf"));
}

#[test]
fn what_makes_no_front_end_is_refused() {
    let feed = "-feed=127.0.0.1:1";
    let of_node = |name: &str| format!("lydian serve has no -{name}: a front end has no data directory and no peers.");
    let no_certificate = |name: &str| {
        let reason = "a front end has no data directory for a certificate of its own.";
        format!("-{name} needs -electrumcert and -electrumkey: {reason}")
    };
    for (arguments, expected) in [
        (
            &[feed, "-electrum"][..],
            "lydian serve needs the index that it reads: -index=cassandra://HOST[:PORT],HOST/KEYSPACE.".to_owned(),
        ),
        (&[INDEX, "-electrum"], "lydian serve needs the nodes that it follows: -feed=HOST:PORT,HOST:PORT.".to_owned()),
        (
            &[],
            "lydian serve needs the index that it reads: -index=cassandra://HOST[:PORT],HOST/KEYSPACE; the nodes \
             that it follows: -feed=HOST:PORT,HOST:PORT; and -electrum, -esplora or both."
                .to_owned(),
        ),
        (&[INDEX, feed], "lydian serve needs -electrum, -esplora or both.".to_owned()),
        (&[INDEX, feed, "-electrum", "-prune=0"], of_node("prune")),
        (&[INDEX, feed, "-electrum", "-addressindex"], of_node("addressindex")),
        (&[INDEX, feed, "-electrum", "-daemon"], of_node("daemon")),
        (&[INDEX, feed, "-electrum", "-feedbind=127.0.0.1"], of_node("feedbind")),
        (&[INDEX, feed, "-electrum", "-disablewallet"], of_node("disablewallet")),
        (&[INDEX, feed, "-electrum", "-electrumtlsbind=0.0.0.0"], no_certificate("electrumtlsbind")),
        (&[INDEX, feed, "-electrum", "-electrumwssbind=0.0.0.0"], no_certificate("electrumwssbind")),
        (
            &[INDEX, FEED, "-electrum"],
            "-feed=https://a.example:3003 needs -feedcert: the certificate of the node, or of those that certified it."
                .to_owned(),
        ),
        (&[INDEX, feed, "-electrum", "-feedkey=k.pem"], of_node("feedkey")),
        (
            &[INDEX, feed, "-electrum", "-noconf"],
            "lydian serve reads a configuration file only if it is named: -conf=<file>".to_owned(),
        ),
    ] {
        assert_eq!(sentence(&[&["serve"], arguments].concat(), ""), expected, "{arguments:?}");
    }
    let far = sentence(&["serve", INDEX, "-feed=10.0.0.1:3003", "-electrum"], "");
    assert!(far.starts_with("Invalid -feed: ") && far.contains("10.0.0.1:3003"), "{far}");
    let node = sentence(&["-feed=127.0.0.1:1"], "");
    assert_eq!(node, "The -feed option cannot be used with 'lydian', only with: serve");
}

/// The help of `lydian serve` has every option that a front end has, and no other.
#[test]
fn the_help_has_the_options_of_a_front_end_only() {
    let text = help::front_help(100);
    let own = text.find("\nFront end options:\n").unwrap();
    assert!(text.match_indices(":\n\n").all(|(at, _)| at > own), "its own options come first");
    let has = |name: &str| {
        text.lines().any(|line| {
            let rest = line.strip_prefix(&format!("  -{name}"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', ' ', '[']))
        })
    };
    for name in ["feed", "healthbind", "filters", "index", "feedtoken", "electrum", "esploracors", "chain", "conf"] {
        assert!(has(name), "{name}: {text}");
    }
    for name in ["prune", "datadir", "dbcache", "feedbind", "addressindex", "rpcport"] {
        assert!(!has(name), "{name}: {text}");
    }
    assert!(help::front_help(1).lines().count() > text.lines().count(), "a narrow terminal gets shorter lines");
}
