//! Compares `lydian-cli` with Bitcoin Core's `bitcoin-cli`.
//!
//! Both get the same command line for the same server; except for names, their output and exit code must be identical.
//! The servers are Core's daemon, `lydian`, and one that sends replies which no node sends.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and creates its own files"
)]

mod bcli;
mod cases;
mod pretender;
mod server;
mod shells;

use cases::{AFTER, BEFORE};
use lydian_oracle::Scratch;
use pretender::Pretender;
use server::Server;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OURS: &str = env!("CARGO_BIN_EXE_lydian-cli");

/// The output of a client and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientOutput {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn run_client(program: &Path, words: &[String], input: &str, home: &Path) -> ClientOutput {
    let mut child = Command::new(program)
        .args(words)
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A client that refuses its options does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    ClientOutput { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// Replaces Core's names with ours, and removes what depends on the clock.
fn in_our_names(output: ClientOutput) -> ClientOutput {
    let replace = |text: &str| {
        let text = text
            .replace("bitcoin-cli", "lydian-cli")
            .replace("the bitcoind server", "the lydian server")
            .replace("bitcoin.conf", "lydian.conf")
            .replace("/.bitcoin/", "/.lydian/");
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        for line in &mut lines {
            if let Some((client, rest)) = line.split_once(" client v")
                && ["Bitcoin Core", "Lydian"].contains(&client)
            {
                let (_, rest) = rest.split_once(' ').unwrap();
                *line = format!("Lydian client {rest}");
            }
            if line.contains("\"verificationprogress\": ") {
                line.clear();
            }
        }
        lines.join("\n")
    };
    ClientOutput { stdout: replace(&output.stdout), stderr: replace(&output.stderr), code: output.code }
}

/// The two clients, and the number of command lines compared.
struct Pair {
    theirs: PathBuf,
    home: Scratch,
    count: usize,
}

impl Pair {
    fn new(name: &str) -> Option<Pair> {
        let theirs = lydian_oracle::or_skip(name, lydian_oracle::build::locate())?.bitcoin_cli;
        let home = Scratch::new(name);
        fs::create_dir_all(home.path()).unwrap();
        Some(Pair { theirs, home, count: 0 })
    }

    /// Runs both clients and checks that they print the same.
    fn check(&mut self, words: &[String], input: &str) -> ClientOutput {
        let theirs = in_our_names(run_client(&self.theirs, words, input, self.home.path()));
        let ours = in_our_names(run_client(Path::new(OURS), words, input, self.home.path()));
        assert_eq!(ours, theirs, "{words:?} {input:?}");
        self.count += 1;
        ours
    }
}

fn all_cases(pair: &mut Pair, server: &Server) {
    // A file for each client, with the same content.
    for name in ["lydian.conf", "bitcoin.conf"] {
        fs::write(server.folder.join(name), "rpcclienttimeout=60\n[regtest]\nunknown=1\n").unwrap();
        fs::write(server.folder.join("user.conf"), "regtest=1\nrpcuser=alice\nrpcpassword=wrong\n").unwrap();
        fs::write(server.folder.join("bad.conf"), "regtest=1\n\nnoserver\n").unwrap();
        fs::write(server.folder.join("hash.conf"), "rpcpassword=a#b\n").unwrap();
        fs::write(server.folder.join("conf.conf"), "conf=x\n").unwrap();
        fs::write(server.folder.join("dir.conf"), "datadir=/nowhere\n").unwrap();
        fs::write(server.folder.join("chain.conf"), "signet=1\n").unwrap();
        fs::write(server.folder.join("include.conf"), "regtest=1\nincludeconf=bad.conf\nincludeconf=none.conf\n")
            .unwrap();
    }
    let hash = run_client(Path::new(OURS), &server.words(&["getblockhash", "2"]), "", pair.home.path());
    assert_eq!((hash.code, hash.stdout.len()), (Some(0), 65), "{hash:?}");
    let cookie = fs::read_to_string(server.folder.join("regtest/.cookie")).unwrap();
    let password = cookie.trim().split_once(':').unwrap().1.to_owned();
    let fill = |text: &str| {
        text.replace("HASH", hash.stdout.trim())
            .replace("PORT", &server.port.to_string())
            .replace("DIR", &server.folder.display().to_string())
            .replace("PASSWORD", &password)
    };
    for (words, input) in BEFORE {
        let words: Vec<String> = words.iter().map(|word| fill(word)).collect();
        pair.check(&words, &fill(input));
    }
    for (words, input) in AFTER {
        let words: Vec<String> = words.iter().map(|word| fill(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        pair.check(&server.words(&words), &fill(input));
    }
}

#[test]
fn the_same_words_about_cores_daemon() {
    let Some(mut pair) = Pair::new("cli-core") else { return };
    let core = pair.theirs.with_file_name("bitcoind");
    let server = Server::core(&core);
    let made =
        run_client(Path::new(OURS), &server.words(&["generatetodescriptor", "3", "raw(51)"]), "", pair.home.path());
    assert_eq!(made.code, Some(0), "{made:?}");
    all_cases(&mut pair, &server);
    assert!(pair.count > 100, "{}", pair.count);
}

/// The node, which cargo builds beside this test only if the whole workspace is tested.
#[expect(clippy::print_stderr, reason = "a test that did not run has to say so")]
fn lydian(test: &str) -> Option<PathBuf> {
    let lydian = Path::new(OURS).with_file_name("lydian");
    if lydian.is_file() {
        return Some(lydian);
    }
    let is_required = std::env::var(lydian_oracle::REQUIRE).is_ok_and(|value| value == "1");
    assert!(!is_required, "{} is missing", lydian.display());
    eprintln!("not run: {test}: {} is missing", lydian.display());
    None
}

#[test]
fn the_same_words_about_lydian() {
    let Some(lydian) = lydian("the_same_words_about_lydian") else { return };
    let Some(mut pair) = Pair::new("cli-lydian") else { return };
    let server = Server::lydian(&lydian);
    let made =
        run_client(Path::new(OURS), &server.words(&["generatetodescriptor", "3", "raw(51)"]), "", pair.home.path());
    assert_eq!(made.code, Some(0), "{made:?}");
    all_cases(&mut pair, &server);
}

#[test]
fn the_same_words_about_answers_that_no_node_gives() {
    let Some(mut pair) = Pair::new("cli-pretender") else { return };
    for (answer, words) in pretender::ANSWERS {
        let pretender = Pretender::start(answer);
        let all = pretender.words(words);
        let output = pair.check(&all, "");
        assert_ne!(output.stdout.len() + output.stderr.len(), 0, "{words:?}");
    }
}

#[test]
fn peers_wallets_and_blocks_that_are_made() {
    let Some(mut pair) = Pair::new("cli-wallet") else { return };
    let pretender = Pretender::start_wallet();
    for words in [
        &["-getinfo"][..],
        &["-getinfo", "-color=always"],
        &["-getinfo", "-rpcwallet=a b"],
        &["-netinfo"],
        &["-netinfo", "1"],
        &["-netinfo", "2"],
        &["-netinfo", "3"],
        &["-netinfo", "4"],
        &["-netinfo", "4", "outonly"],
        &["-addrinfo"],
        &["-generate"],
        &["-generate", "7", "1000"],
        &["-generate", "x"],
        &["-generate", "1", "2", "3"],
        &["-named", "-generate", "2"],
    ] {
        let all = pretender.words(words);
        pair.check(&all, "");
    }
}

/// The parts that are only ours: help, versions, and an option that would send a secret needlessly.
#[test]
fn words_of_our_own() {
    let home = Scratch::new("cli-own");
    fs::create_dir_all(home.path()).unwrap();
    let ask = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run_client(Path::new(OURS), &words, "secret\n", home.path())
    };
    let version = format!("Lydian RPC client version v{}", env!("CARGO_PKG_VERSION"));
    let output = ask(&["-version"]);
    assert!(output.stdout.starts_with(&format!("{version}\nBuild: commit ")), "{output:?}");
    assert_eq!((output.stdout.lines().count(), output.stderr.as_str(), output.code), (2, "", Some(0)));
    for help in [&["-help"][..], &["-h"], &["-?"], &["-help", "getblock"]] {
        let output = ask(help);
        assert!(
            output.stdout.starts_with(&version) && output.stdout.contains("-rpcconnect=<host[:port]>"),
            "{output:?}"
        );
        assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)));
    }
    let output = ask(&[]);
    assert_eq!((output.stderr.as_str(), output.code), ("Error: too few parameters\n", Some(1)));
    assert!(output.stdout.starts_with(&version));
    let output = ask(&["-netinfo", "help"]);
    assert!(output.stdout.starts_with("-netinfo [level [outonly]]") && output.code == Some(0), "{output:?}");
    let output = ask(&["-stdinwalletpassphrase", "walletpassphrase", "60"]);
    let words = "error: -stdinwalletpassphrase: Lydian has no wallet, so a passphrase is neither read nor sent\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.code), ("", words, Some(1)));
}
