//! The disk of a running node fills up while it writes `fee_estimates.dat`: a file system in memory, which only the
//! node sees, has room for so many pages of the file. The old file stays until the new one is whole.

use super::Market;
use crate::http::send;
use crate::page_client::wait;
use lydian_stdx::base64;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Makes the file system, copies the data directory of the chain into it, and becomes the node.
const SCRIPT: &str = "set -e
mkdir \"$1/regtest\"
mount -t tmpfs -o size=128m none \"$1/regtest\"
cp -a \"$1/saved/.\" \"$1/regtest\"
folder=$1
shift
exec \"$0\" -regtest \"-datadir=$folder\" \"$@\"";

const CREDENTIALS: &str = "user:password";

/// Size of a page of memory, in which the file system counts.
const PAGE: u64 = 4_096;

/// A node whose data directory is in memory.
struct Node {
    child: Child,
    port: u16,
    /// The data directory of the chain, as the node sees it.
    inside: PathBuf,
    log: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command with a file system of its own. It keeps its process id.
pub(crate) fn with_own_files() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether programs can have a file system of their own; says so if not.
#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn can_mount() -> bool {
    let mounts = with_own_files().args(["mount", "-t", "tmpfs", "none", "/mnt"]).status();
    let can = mounts.is_ok_and(|status| status.success());
    if !can {
        eprintln!("left out: this machine lets no program have a file system of its own");
    }
    can
}

impl Node {
    /// On the files of `folder/saved`.
    fn start(folder: &Path) -> Node {
        let (port, log) = (lydian_oracle::free_port().unwrap(), folder.join("log"));
        let child = with_own_files()
            .args(["sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_lydian")])
            .arg(folder)
            .args(["-par=2", "-printtoconsole=0", "-listen=0", "-noconnect", "-persistmempool=0", "-page=0"])
            .args(["-rpcuser=user", "-rpcpassword=password", "-debug=estimatefee"])
            .args([format!("-rpcport={port}"), format!("-debuglogfile={}", log.display())])
            .spawn()
            .unwrap();
        let inside = PathBuf::from(format!("/proc/{}/root{}/regtest", child.id(), folder.display()));
        let node = Node { child, port, inside, log };
        wait("the node answers", || node.call("getmempoolinfo", "[]").filter(|body| body.contains("\"loaded\":true")));
        node
    }

    /// The answer to a call, if it has no error.
    fn call(&self, method: &str, params: &str) -> Option<String> {
        let body = json!({"method": method, "params": serde_json::from_str::<serde_json::Value>(params).unwrap()});
        let (body, authorization) = (body.to_string(), base64(CREDENTIALS.as_bytes()));
        let request = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {authorization}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = send(self.port, request.as_bytes()).ok()?;
        answer.status.contains(" 200 ").then_some(answer.body)
    }

    /// Leaves room for so many pages.
    fn fill(&self, pages: u64) {
        let path = self.inside.join("filler");
        let _ = fs::remove_file(&path);
        let room = rustix::fs::statvfs(&self.inside).unwrap();
        let size = room.f_bavail * room.f_frsize - pages * PAGE;
        File::create(&path).unwrap().write_all(&vec![0; usize::try_from(size).unwrap()]).unwrap();
        let room = rustix::fs::statvfs(&self.inside).unwrap();
        assert_eq!(room.f_bavail * room.f_frsize, pages * PAGE);
    }

    /// Has the node write the file. Returns whether it says that it did.
    fn write_estimates(&self) -> bool {
        let count = |words: &str| fs::read_to_string(&self.log).unwrap_or_default().matches(words).count();
        let counts = || ["Flushed fee estimates to ", "[warning] Failed to write fee estimates to "].map(count);
        let before = counts();
        self.call("mockscheduler", "[3600]").unwrap();
        wait("the file is written", || {
            let after = counts();
            (after != before).then_some(after[0] > before[0])
        })
    }
}

#[test]
fn a_disk_that_fills_up_keeps_the_file() {
    let Some(mut market) = Market::begin("fees-fills", 9) else { return };
    if !can_mount() {
        return;
    }
    let [old, new] = [6, 12].map(|last| {
        (last - 5..=last).for_each(|number| market.step(number));
        market.stop();
        let [bytes, _] = market.equal_files("the files are equal");
        market.start(&[]);
        bytes
    });
    market.stop();
    let folder = market.story.pair.lydian.folder.clone();
    fs::rename(folder.join("regtest"), folder.join("saved")).unwrap();
    let node = Node::start(&folder);
    let path = node.inside.join("fee_estimates.dat");
    assert_eq!(fs::read(&path).unwrap(), new);
    let pages = u64::try_from(new.len()).unwrap().div_ceil(PAGE);
    assert!(pages > 3 && old != new);
    for room in [0, 1, 2, pages / 2, pages - 1, pages, pages + 1] {
        let _ = fs::remove_file(node.inside.join("filler"));
        fs::write(&path, &old).unwrap();
        node.fill(room);
        let has_room = room >= pages;
        assert_eq!(node.write_estimates(), has_room, "{room} of {pages} pages");
        assert!(fs::read(&path).unwrap() == if has_room { &new[..] } else { &old[..] }, "{room} of {pages} pages");
        assert!(!node.inside.join("fee_estimates.dat.new").exists(), "{room} of {pages} pages");
        assert!(node.call("estimatesmartfee", "[6]").is_some());
    }
    // What is on the disk in the end both programs read.
    let last = fs::read(&path).unwrap();
    drop(node);
    fs::remove_dir(folder.join("regtest")).unwrap();
    fs::rename(folder.join("saved"), folder.join("regtest")).unwrap();
    market.files().iter().for_each(|file| fs::write(file, &last).unwrap());
    market.start(&[]);
    market.compare();
    market.stop();
}
