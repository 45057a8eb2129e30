//! `lydian doctor --bundle`: secrets of every kind are planted, and none is in the archive.

use super::state;
use crate::{Place, small_chain};
use std::fs;
use std::process::Command;

const AUTH: &str =
    "planteduser:0123456789abcdef0123456789abcdef$fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const TXID: &str = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";

/// Each is in the settings, the log, the cookie or the directory, and must not be in the archive.
const PLANTED: &[&str] = &[
    "planteduser",
    "0123456789abcdef",
    "fedcba98765432",
    "plantedpassword",
    "plantedtorpassword",
    "plantedproxylogin",
    "plantedcookie",
    "planted.example.org",
    "plantedcommand",
    "203.0.113.77",
    "2001:db8::77",
    "198.51.100.7",
    "plantedplantedplantedplantedplantedplantedplantedplanted",
    "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ",
    "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
    TXID,
];

fn conf() -> String {
    format!(
        "rpcauth={AUTH}\nrpcuser=planteduser\nrpcpassword=plantedpassword\ntorpassword=plantedtorpassword\n\
         blocknotify=plantedcommand --key=x\n[regtest]\naddnode=planted.example.org:18444\naddnode=203.0.113.77\n\
         connect=198.51.100.7\nuacomment=plantedcookie\n"
    )
}

fn log() -> String {
    let onion = "plantedplantedplantedplantedplantedplantedplantedplanted.onion:8333";
    let words = [
        "Config file arg: rpcuser=planteduser",
        "New outbound peer connected: version: 70016, peer=0, peeraddr=203.0.113.77:18444",
        "connection to [2001:db8::77]:18444 failed; trying 198.51.100.7",
        onion,
        "lookup of planted.example.org failed",
        "http://plantedproxylogin:plantedpassword@127.0.0.1:9050 refused",
        "pays bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080 and 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "key L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ",
        "wpkh(xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8/0/*)",
        "cookie __cookie__:plantedcookie",
        "a harmless line that must stay",
    ];
    let lines: Vec<String> = words.iter().map(|words| format!("2026-11-27T08:00:00Z {words}")).collect();
    format!("{}\n2026-11-27T08:00:01Z AcceptToMemoryPool: accepted {TXID} (poolsz 1 txn)\n", lines.join("\n"))
}

#[test]
fn no_secret_is_in_the_archive() {
    let place = Place::new("doctor-bundle");
    assert_eq!(place.import(&small_chain(&place)).2, 0);
    fs::write(place.data().join("lydian.conf"), conf()).unwrap();
    fs::write(place.chain_folder().join("debug.log"), log()).unwrap();
    fs::write(place.chain_folder().join(".cookie"), "__cookie__:plantedcookie").unwrap();
    let before = state(&place.data());
    let (out, err, code) = place.run(&["doctor", "--bundle", "report.tar.zst"]);
    assert!(code < 3 && err.is_empty() && out.contains(" not asked, in "), "{code} {err}");
    assert_eq!(state(&place.data()), before);
    let packed = fs::read(place.directory.join("report.tar.zst")).unwrap();
    let archive = zstd::stream::decode_all(&packed[..]).unwrap();
    let text = String::from_utf8(archive.clone()).unwrap();
    for planted in PLANTED {
        assert!(!text.contains(planted), "{planted} is in\n{text}");
    }
    for kept in ["a harmless line that must stay", "\"checks\": [", "Lydian daemon version", "rpcauth=[1 not shown]"] {
        assert!(text.contains(kept), "{kept} is not in\n{text}");
    }
    let folder = place.directory.join("unpacked");
    fs::create_dir(&folder).unwrap();
    let tar = place.directory.join("report.tar");
    fs::write(&tar, &archive).unwrap();
    assert!(Command::new("tar").arg("-xf").arg(&tar).arg("-C").arg(&folder).status().unwrap().success());
    let mut names: Vec<String> = state(&folder.join("lydian-doctor")).into_keys().collect();
    names.iter_mut().for_each(|name| *name = name.rsplit('/').next().unwrap().to_owned());
    assert_eq!(names, ["debug.log", "report.json", "report.txt", "settings.txt", "versions.txt"]);
    let log = fs::read_to_string(folder.join("lydian-doctor/debug.log")).unwrap();
    assert!(log.ends_with("accepted [removed] (poolsz 1 txn)\n"), "{log}");
}

#[test]
fn a_file_that_exists_is_not_replaced() {
    let place = Place::new("doctor-exists");
    let path = place.directory.join("report.tar.zst");
    fs::write(&path, "mine").unwrap();
    for (words, said) in [
        (&["--bundle", "report.tar.zst"][..], "report.tar.zst exists and is not replaced: choose another name"),
        (&["--bundle=report.tar.zst"], "exists and is not replaced"),
        (&["--bundle=."], "exists and is not replaced"),
        (&["--bundle=none/x.tar.zst"], "there is no directory"),
        (&["--bundle"], "--bundle needs one FILE"),
        (&["report.tar.zst"], "lydian doctor takes no 'report.tar.zst': write --bundle FILE"),
    ] {
        let (out, err, code) = place.run(&[&["doctor"], words].concat());
        assert!(code == 2 && out.is_empty() && err.contains(said), "{words:?}: {out}{err}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let left: Vec<String> = state(&place.directory).into_keys().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
