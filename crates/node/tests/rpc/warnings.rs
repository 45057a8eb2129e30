//! Warnings about this machine and its files: each begins with its cause, is the same in RPC and on the page, runs the
//! command of `-alertnotify`, and ends with its cause. Those about the chain: [`crate::alerts`],
//! [`crate::second_opinion`].

use crate::alerts::{alerts, everywhere, listener, warnings};
use crate::building::{mine, wait_until};
use crate::fees::full::can_mount;
use crate::page_client::{Client, wait};
use crate::server::Server;
use crate::strange::Strange;
use lydian_oracle::{Scratch, free_port};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The warnings, once RPC and the page have the same ones and there are so many.
fn settled(server: &Server, page: u16, count: usize) -> Vec<String> {
    let client = Client::of_cookie(server, page);
    wait(&format!("{count} warnings"), || {
        let of_rpc = warnings(server);
        let shown = client.topic("overview")["warnings"].as_array().unwrap().clone();
        let texts: Value = shown.iter().map(|warning| warning["text"].clone()).collect();
        let is_same = of_rpc == everywhere(&texts) && shown.len() == count;
        is_same.then(|| serde_json::from_value(texts).unwrap())
    })
}

/// The kind of the only warning, and the advice that the page adds.
fn kind_and_advice(server: &Server, page: u16) -> (Value, Value) {
    let shown = Client::of_cookie(server, page).topic("overview")["warnings"][0].clone();
    (shown["kind"].clone(), shown["advice"].clone())
}

fn log(server: &Server) -> String {
    fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap()
}

/// A program that runs the node with a file system in memory for its blocks, which nothing else sees.
fn with_small_disk(folder: &Path, blocks: &Path, size: &str) -> PathBuf {
    fs::create_dir_all(blocks).unwrap();
    let (program, lydian) = (folder.join("lydian-with-small-disk"), env!("CARGO_BIN_EXE_lydian"));
    let script = format!(
        "#!/bin/sh\nexec unshare --mount --map-root-user sh -c 'mount -t tmpfs -o size={size} none \"{}\" && exec \
         \"{lydian}\" \"$@\"' sh \"$@\"\n",
        blocks.display()
    );
    // Written by another process: a file that this one writes may be open for writing in a process that another test
    // starts just then, and cannot be run as long.
    let text = folder.join("script");
    fs::write(&text, script).unwrap();
    let status = Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(status.unwrap().success());
    program
}

#[test]
fn a_disk_that_is_nearly_full_is_reported_until_it_has_space() {
    const MIB: usize = 1 << 20;
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new("rpc-disk");
    let (told, option) = listener(&scratch);
    let (blocks, page) = (scratch.path().join("elsewhere"), free_port().unwrap());
    // On regtest, less than 1.0 GB is little, and from 1.1 GB on it is enough again. Nothing here is written but the
    // filler.
    let program = with_small_disk(scratch.path(), &blocks, "1120m");
    let (dir, port) = (format!("-blocksdir={}", blocks.display()), format!("-pageport={page}"));
    let node = Server::lydian_by(&program, "disk-nearly-full", &["-page", &port, &dir, &option]);
    let inside = PathBuf::from(format!("/proc/{}/root{}", node.id(), blocks.display()));
    let free = || {
        let room = rustix::fs::statvfs(&inside).unwrap();
        room.f_bavail * room.f_frsize
    };
    assert!((1_100_000_000..1_200_000_000).contains(&free()), "{}", free());
    assert_eq!(settled(&node, page, 0), [""; 0]);
    let filler = inside.join("filler");
    fs::write(&filler, vec![1; 190 * MIB]).unwrap();
    assert!(free() < 1_000_000_000);
    let folder = blocks.join("regtest/blocks");
    let words = format!(
        "The disk with \"{}\" is nearly full: it has less than 1.0 GB of free space. Delete other files, or keep fewer \
         blocks with -prune. The node stops when it cannot write.",
        folder.display()
    );
    assert_eq!(settled(&node, page, 1), [words.as_str()]);
    assert_eq!(kind_and_advice(&node, page), (json!("disk"), json!("")));
    assert_eq!(alerts(&told), [words.replace('"', "")], "without what a shell could interpret");
    fs::remove_file(filler).unwrap();
    assert_eq!(settled(&node, page, 0), [""; 0]);
    let log = log(&node);
    assert!(log.contains(&format!("[warning] {words}\n")) && log.contains("The disk has free space again"), "{log}");
    assert_eq!(alerts(&told).len(), 1, "the command runs once");
}

/// A directory stands where the index writes its next commit record.
#[test]
fn an_index_that_fails_is_reported_until_it_works() {
    let scratch = Scratch::new("rpc-index-fails");
    let (told, option) = listener(&scratch);
    let page = free_port().unwrap();
    let port = format!("-pageport={page}");
    let options = ["-txindex", "-txospenderindex", "-coinstatsindex", "-page", port.as_str(), option.as_str()];
    let mut node = Server::lydian("index-fails", &options);
    wait_until(&node, "the indexes are made", |index| index["synced"] == true);
    assert_eq!(settled(&node, page, 0), [""; 0]);
    node.restart(&[]);
    mine(&node, 5);
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
    let place = node.folder.join("regtest/indexes/tables/commit.new");
    fs::create_dir(&place).unwrap();
    node.start_again(&options);
    let warned = settled(&node, page, 1);
    let info = node.result("getindexinfo", "[]");
    let error = info["txindex"]["error"].as_str().unwrap_or_else(|| panic!("{info}: {}", log(&node)));
    let words = format!("The node runs without txindex, txospenderindex: {}.", error.trim_end_matches('.'));
    assert!(warned[0].starts_with(&words) && warned[0].contains(" Remove the cause and start "), "{warned:?}");
    assert!(error.contains("indexes/tables/commit") && error.contains("directory"), "{error}");
    assert_eq!(kind_and_advice(&node, page), (json!("index"), json!("")));
    assert!(log(&node).contains(" is stopped: "), "it failed at run time: {}", log(&node));
    assert!(alerts(&told)[0].starts_with("The node runs without txindex, txospenderindex: "));
    // The node and the other index go on.
    mine(&node, 2);
    wait("the other index follows", || {
        let other = node.result("getindexinfo", "[\"coinstatsindex\"]");
        (other["coinstatsindex"] == json!({"synced": true, "best_block_height": 7})).then_some(())
    });
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
    fs::remove_dir(&place).unwrap();
    node.start_again(&options);
    wait_until(&node, "the build ends", |index| index["synced"] == true && index["best_block_height"] == 7);
    assert_eq!(settled(&node, page, 0), [""; 0]);
}

#[test]
fn a_signature_engine_that_was_wrong_is_reported_until_its_files_are_gone() {
    let scratch = Scratch::new("rpc-engine-wrong");
    let (told, option) = listener(&scratch);
    let page = free_port().unwrap();
    let port = format!("-pageport={page}");
    let options = ["-page", port.as_str(), option.as_str()];
    let mut node = Server::lydian("engine-wrong", &options);
    assert_eq!(settled(&node, page, 0), [""; 0]);
    let file = node.folder.join("regtest/blocks/index/sigengine-disagreement-3.json");
    fs::write(&file, "{}").unwrap();
    node.restart(&options);
    let words = "A signature engine was wrong (sigengine-disagreement-3.json). What it verified in this data directory \
                 before may be wrong. Run lydian -reindex -sigengine=reference once, then delete the \
                 sigengine-disagreement files in blocks/index.";
    assert_eq!(settled(&node, page, 1), [words]);
    assert_eq!(kind_and_advice(&node, page), (json!("signature_engine"), json!("")));
    assert_eq!(alerts(&told).len(), 1);
    fs::remove_file(file).unwrap();
    assert_eq!(settled(&node, page, 0), [""; 0]);
}

/// Peers whose clocks differ from that of this machine by some seconds. Returns their addresses.
fn peers_with_clocks(offset: &Arc<AtomicI64>, count: usize) -> Vec<String> {
    let start = |_| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let offset = Arc::clone(offset);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                let time = i64::try_from(now).unwrap() + offset.load(Ordering::Relaxed);
                let mut peer = Strange::greet(stream.unwrap(), port, b"/clock/", time);
                while peer.read_whole().is_some() {}
            }
        });
        format!("127.0.0.1:{port}")
    };
    (0..count).map(start).collect()
}

/// As in Core, the median of the outbound peers counts, from five on.
#[test]
fn a_clock_that_is_off_is_reported_until_most_peers_agree() {
    const PEERS: usize = 5;
    let offset = Arc::new(AtomicI64::new(3_600));
    let peers = peers_with_clocks(&offset, PEERS);
    let scratch = Scratch::new("rpc-clock");
    let (told, option) = listener(&scratch);
    let page = free_port().unwrap();
    let port = format!("-pageport={page}");
    let node = Server::lydian("clock-off", &["-page", &port, &option, "-v2transport=0"]);
    // Connects to all of them again.
    let round = || {
        node.result("setnetworkactive", "[false]");
        wait("no peer", || (node.result("getpeerinfo", "[]") == json!([])).then_some(()));
        node.result("setnetworkactive", "[true]");
        peers.iter().for_each(|peer| drop(node.result("addnode", &json!([peer, "onetry"]).to_string())));
        wait("all peers", || {
            let all = node.result("getpeerinfo", "[]").as_array().unwrap().clone();
            let is_done = |peer: &Value| !peer["bytesrecv_per_msg"]["verack"].is_null();
            (all.len() == PEERS && all.iter().all(is_done)).then_some(())
        });
    };
    assert_eq!(settled(&node, page, 0), [""; 0]);
    round();
    let warned = settled(&node, page, 1);
    assert!(warned[0].starts_with("Your computer's date and time appear to be more than 10 minutes"), "{warned:?}");
    let (kind, advice) = kind_and_advice(&node, page);
    assert_eq!(kind, json!("clock"));
    assert!(advice.as_str().unwrap().starts_with("Set the clock of this machine"), "{advice}");
    assert!(alerts(&told)[0].starts_with("Your computers date and time"), "without what a shell could interpret");
    offset.store(0, Ordering::Relaxed);
    round();
    assert_eq!(settled(&node, page, 1), warned, "half of the peers are not most of them");
    round();
    assert_eq!(settled(&node, page, 0), [""; 0]);
}
