//! Lydian and Core as programs, each with its own data directory and port, called over HTTP.

use crate::http::{Answer, send};
use lydian_stdx::base64;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Options that make Core a judge: no peers, one script thread beside the main one.
const CORE_OPTIONS: &[&str] = &[
    "-server=1",
    "-listen=0",
    "-connect=0",
    "-dnsseed=0",
    "-fixedseeds=0",
    "-par=2",
    "-assumevalid=0",
    "-persistmempool=0",
    "-printtoconsole=0",
    "-checkblockindex=0",
    "-logratelimit=0",
];

/// A running program that answers. Killed when dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// The data directory; it is removed with the program.
    pub(crate) folder: PathBuf,
    /// Core's name of the chain, which is that of its folder.
    chain: &'static str,
    credentials: String,
    child: Child,
    program: PathBuf,
    /// The arguments of every start of this program.
    options: Vec<String>,
}

impl Server {
    pub(crate) fn lydian(name: &str, options: &[&str]) -> Server {
        Server::lydian_on("regtest", name, options)
    }

    /// Started by another program, which becomes it.
    pub(crate) fn lydian_by(program: &Path, name: &str, options: &[&str]) -> Server {
        Server::start(program, "regtest", name, LYDIAN_OPTIONS, options)
    }

    /// On another chain.
    pub(crate) fn lydian_on(chain: &'static str, name: &str, options: &[&str]) -> Server {
        Server::start(Path::new(env!("CARGO_BIN_EXE_lydian")), chain, name, LYDIAN_OPTIONS, options)
    }

    pub(crate) fn core(program: &Path, name: &str, options: &[&str]) -> Server {
        Server::core_on("regtest", program, name, options)
    }

    pub(crate) fn core_on(chain: &'static str, program: &Path, name: &str, options: &[&str]) -> Server {
        Server::start(program, chain, name, CORE_OPTIONS, options)
    }

    fn start(program: &Path, chain: &'static str, name: &str, own: &[&str], options: &[&str]) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lydian-rpc-{name}-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let port = lydian_oracle::free_port().unwrap();
        let own = own.iter().map(|option| (*option).to_owned());
        let own: Vec<String> = own.chain([format!("-chain={chain}")]).collect();
        let child = spawn(program, &folder, port, &own, options);
        let mut server = Server {
            port,
            folder,
            chain,
            credentials: String::new(),
            child,
            program: program.to_owned(),
            options: own,
        };
        server.wait_until_up();
        server
    }

    /// Stops the program, and starts it on the same folder with these additional options.
    pub(crate) fn restart(&mut self, options: &[&str]) {
        self.result("stop", "[]");
        assert_eq!(self.wait(), Some(0));
        self.start_again(options);
    }

    /// Ends the program as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether the program has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal to the program: `STOP` halts it until `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Starts the program after its end, on the same folder.
    pub(crate) fn start_again(&mut self, options: &[&str]) {
        self.child = spawn(&self.program, &self.folder, self.port, &self.options, options);
        self.wait_until_up();
    }

    fn wait_until_up(&mut self) {
        let server = self;
        for _ in 0..2_400 {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(server.child.try_wait().unwrap(), None, "{} ended", server.program.display());
            if let Ok(cookie) = fs::read_to_string(server.cookie()) {
                server.credentials = cookie.trim().to_owned();
                // The port is not open yet, or the answer is -28.
                if send(server.port, &server.request(CALL)).is_ok_and(|answer| answer.status.contains(" 200 ")) {
                    return;
                }
            }
        }
        panic!("{} does not answer", server.program.display());
    }

    /// The data directory of the chain: that of main is the whole one.
    fn chain_folder(&self) -> PathBuf {
        if self.chain == "main" { self.folder.clone() } else { self.folder.join(self.chain) }
    }

    pub(crate) fn cookie(&self) -> PathBuf {
        self.chain_folder().join(".cookie")
    }

    /// The bytes of a request with this body.
    pub(crate) fn request(&self, body: &str) -> Vec<u8> {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {}\r\nContent-Length: {}\r\n\r\n",
            self.authorization(),
            body.len()
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }

    pub(crate) fn authorization(&self) -> String {
        base64(self.credentials.as_bytes())
    }

    pub(crate) fn post(&self, body: &str) -> Answer {
        send(self.port, &self.request(body)).unwrap()
    }

    /// The whole answer to a call.
    pub(crate) fn call(&self, method: &str, params: &str) -> Answer {
        self.post(&format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":7}}"))
    }

    /// The result as JSON; the test fails on an error.
    pub(crate) fn result(&self, method: &str, params: &str) -> serde_json::Value {
        let answer: serde_json::Value = serde_json::from_str(&self.call(method, params).body).unwrap();
        assert_eq!(answer["error"], serde_json::Value::Null, "{method} {params}");
        answer["result"].clone()
    }

    /// Runs Core's `bitcoin-cli` on this server.
    pub(crate) fn cli(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command
            .arg(format!("-datadir={}", self.folder.display()))
            .args(["-regtest", &format!("-rpcport={}", self.port)]);
        command.args(arguments).output().unwrap()
    }

    /// Memory that the program uses.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    }

    /// A file of the program's folder in `/proc`.
    pub(crate) fn proc(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end; returns the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        for _ in 0..6_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    }
}

/// Lydian's options here: no peers, no page, and every answer is compared with its description in the help.
const LYDIAN_OPTIONS: &[&str] =
    &["-par=2", "-printtoconsole=0", "-listen=0", "-noconnect", "-persistmempool=0", "-rpcdoccheck=1", "-page=0"];

fn spawn(program: &Path, folder: &Path, port: u16, own: &[String], options: &[&str]) -> Child {
    Command::new(program)
        .arg(format!("-datadir={}", folder.display()))
        .arg(format!("-rpcport={port}"))
        .args(own)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

const CALL: &str = "{\"method\":\"getblockcount\"}";

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
