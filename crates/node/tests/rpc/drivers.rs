//! Lydian started with the command lines and configuration files that programs use for `bitcoind`: nothing on stderr,
//! an answer to RPC, and exit code 0 after `stop`.
//!
//! Options that Lydian refuses are left out of the lines of the programs that set them.

use crate::http::send;
use lydian_oracle::{Scratch, free_port};
use lydian_stdx::base64;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a start and a stop take.
const PATIENCE: Duration = Duration::from_secs(240);

/// A program that starts `bitcoind`. RPC, P2P, ONION and DIR are placeholders for free ports and the data directory.
struct Driver {
    name: &'static str,
    arguments: &'static [&'static str],
    conf: &'static str,
    /// `user:password`; if empty, the cookie is used.
    credentials: &'static str,
}

/// The salted hash of "password" for the user "user", as made by rpcauth.py.
pub(crate) const RPCAUTH: &str =
    "-rpcauth=user:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af";

const DRIVERS: &[Driver] = &[
    Driver {
        name: "the functional tests of Bitcoin Core",
        arguments: &[
            "-datadir=DIR",
            "-logtimemicros",
            "-debug",
            "-debugexclude=leveldb",
            "-debugexclude=rand",
            "-uacomment=testnode0",
            "-disablewallet",
            "-logthreadnames",
            "-logsourcelocations",
            "-loglevel=trace",
            "-v2transport=0",
            "-nologratelimit",
        ],
        conf: "regtest=1\n[regtest]\nport=P2P\nrpcport=RPC\nrpcdoccheck=1\nrpcthreads=2\nfallbackfee=0.0002\nserver=1\nkeypool=1\ndiscover=0\n\
               dnsseed=0\nfixedseeds=0\nlistenonion=0\npeertimeout=999999999\nprinttoconsole=0\nnatpmp=0\nshrinkdebugfile=0\nunsafesqlitesync=1\n\
               connect=0\nbind=127.0.0.1\n",
        credentials: "",
    },
    Driver {
        name: "lnd",
        arguments: &[
            "-datadir=DIR",
            "-regtest",
            "-disablewallet",
            "-whitelist=127.0.0.1",
            RPCAUTH,
            "-debug",
            "-debugexclude=mempool",
            "-rpcport=RPC",
            "-port=P2P",
            "-bind=127.0.0.1:P2P=onion",
            "-zmqpubrawblock=tcp://127.0.0.1:ZMQ0",
            "-zmqpubrawtx=tcp://127.0.0.1:ZMQ1",
            "-v2transport=1",
        ],
        conf: "",
        credentials: "user:password",
    },
    Driver {
        name: "Core Lightning",
        arguments: &["-datadir=DIR", "-server", "-logtimestamps", "-nolisten"],
        conf: "regtest=1\nrpcuser=rpcuser\nrpcpassword=rpcpass\nfallbackfee=0.00001\n[regtest]\nrpcport=RPC\n",
        credentials: "rpcuser:rpcpass",
    },
    Driver {
        name: "electrs",
        arguments: &[
            "-datadir=DIR",
            "-printtoconsole=0",
            "-regtest",
            "-rpcport=RPC",
            "-port=P2P",
            "-fallbackfee=0.00001",
        ],
        conf: "",
        credentials: "",
    },
    Driver {
        name: "BTCPay Server with NBXplorer",
        arguments: &["-datadir=DIR"],
        conf: "regtest=1\nprinttoconsole=1\nwhitelist=0.0.0.0/0\n[regtest]\nrpcport=RPC\nrpcbind=127.0.0.1:RPC\nrpcallowip=0.0.0.0/0\nport=P2P\n\
               whitelist=0.0.0.0/0\nwhitebind=127.0.0.1:P2P\nmaxmempool=500\nfallbackfee=0.0002\nrpcauth=user:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af\n\
               deprecatedrpc=signrawtransaction\n",
        credentials: "user:password",
    },
    Driver {
        name: "RaspiBlitz",
        arguments: &["-datadir=DIR", "-conf=DIR/raspiblitz.conf", "-pid=DIR/bitcoind.pid"],
        conf: "regtest=1\nserver=1\ndaemon=0\nlogips=1\nprinttoconsole=0\ndisablewallet=1\ndatacarriersize=83\nmain.zmqpubrawblock=tcp://127.0.0.1:28332\n\
               main.rpcport=8332\nmain.debuglogfile=/nowhere/debug.log\nregtest.rpcport=RPC\nregtest.port=P2P\nregtest.rpcbind=127.0.0.1\n\
               rpcallowip=127.0.0.1\nregtest.zmqpubrawblock=tcp://127.0.0.1:ZMQ0\nregtest.zmqpubrawtx=tcp://127.0.0.1:ZMQ1\n\
               regtest.zmqpubhashblock=tcp://*:ZMQ2\ndbcache=512\nmaxmempool=300\nmaxconnections=20\nmaxuploadtarget=1000\npeerbloomfilters=1\n\
               onlynet=onion\nproxy=127.0.0.1:9050\nregtest.bind=127.0.0.1\ndnsseed=0\ndns=0\nrpcuser=raspibolt\nrpcpassword=passwordB\n",
        credentials: "raspibolt:passwordB",
    },
    Driver {
        name: "Umbrel",
        arguments: &[
            "-datadir=DIR",
            "-chain=regtest",
            "-proxy=127.0.0.1:9050",
            "-listen",
            "-bind=127.0.0.1:P2P",
            "-bind=127.0.0.1:ONION=onion",
            "-port=P2P",
            "-rpcport=RPC",
            "-rpcbind=127.0.0.1",
            "-rpcallowip=127.0.0.1",
            "-rpcallowip=10.21.0.0/16",
            "-rpcauth=user:5c6e4ba7b1f0a1d1$b5c915cf7582f23156fd1d1e094d31a0f9cfdad3765b93d909a869df33aee6af",
            "-dbcache=450",
            "-zmqpubrawblock=tcp://0.0.0.0:ZMQ0",
            "-zmqpubrawtx=tcp://0.0.0.0:ZMQ1",
            "-zmqpubhashblock=tcp://0.0.0.0:ZMQ2",
            "-zmqpubsequence=tcp://0.0.0.0:ZMQ3",
            "-deprecatedrpc=create_bdb",
            "-whitelist=127.0.0.1",
            "-torcontrol=127.0.0.1:9051",
            "-torpassword=moneyprintergobrrr",
            "-i2pacceptincoming=1",
            "-peerbloomfilters=1",
            "-datacarrier=1",
            "-permitbaremultisig=1",
            "-maxmempool=300",
            "-mempoolexpiry=336",
            "-persistmempool=1",
            "-rpcworkqueue=128",
        ],
        conf: "",
        credentials: "user:password",
    },
];

impl Driver {
    fn drive(&self) -> Result<(), String> {
        let folder = Scratch::new(&format!("driver-{}", self.name.replace(' ', "-")));
        let data = folder.path().display().to_string();
        let (rpc, p2p, onion) = (free_port().unwrap(), free_port().unwrap(), free_port().unwrap());
        let zmq: [u16; 4] = std::array::from_fn(|_| free_port().unwrap());
        let fill = |text: &str| {
            let text = text.replace("DIR", &data).replace("RPC", &rpc.to_string());
            let text = text.replace("P2P", &p2p.to_string()).replace("ONION", &onion.to_string());
            (0..).zip(zmq).fold(text, |text, (index, port)| text.replace(&format!("ZMQ{index}"), &port.to_string()))
        };
        fs::create_dir_all(folder.path().join("regtest")).unwrap();
        let name = if self.name == "RaspiBlitz" { "raspiblitz.conf" } else { "bitcoin.conf" };
        if !self.conf.is_empty() {
            fs::write(folder.path().join(name), fill(self.conf)).unwrap();
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_lydian"))
            .args(self.arguments.iter().map(|argument| fill(argument)))
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let mut is_stopped = false;
        while start.elapsed() < PATIENCE && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(20));
            let cookie = fs::read_to_string(folder.path().join("regtest/.cookie")).unwrap_or_default();
            let credentials = if self.credentials.is_empty() { cookie.trim() } else { self.credentials };
            let ask = |method: &str| send(rpc, &request(credentials, method));
            if !is_stopped && ask("getblockcount").is_ok_and(|answer| answer.status.contains(" 200 ")) {
                is_stopped = ask("stop").is_ok_and(|answer| answer.status.contains(" 200 "));
            }
        }
        let has_ended = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        match has_ended && is_stopped && stderr.is_empty() && output.status.code() == Some(0) {
            true => Ok(()),
            false => Err(format!(
                "{}: stopped by RPC {is_stopped}, ended {has_ended} with {}, stderr {stderr:?}",
                self.name, output.status
            )),
        }
    }
}

/// A call as these programs send it.
fn request(credentials: &str, method: &str) -> Vec<u8> {
    let body = format!("{{\"method\":\"{method}\"}}");
    let authorization = base64(credentials.as_bytes());
    format!(
        "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {authorization}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Programs that start and watch `bitcoind` treat output on stderr as a failure. Regression test: most of these lines
/// caused warnings there, and some did not start.
#[test]
fn programs_that_start_bitcoind_start_lydian() {
    let failed: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = DRIVERS.iter().map(|driver| scope.spawn(|| driver.drive())).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap().err()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
