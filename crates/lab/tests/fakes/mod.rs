//! Nodes that are not what they claim: shell scripts in place of a node, and one that accepts every block it is given.
//!
//! Input: a script and the answer that it is to give. Output: adapters for the runner. Each test file that includes
//! this module uses a part of it.

#![allow(dead_code, reason = "each test file uses a part")]

use lydian_chains::chain_files::{ChainFiles, Network};
use lydian_chains::presets::empty;
use lydian_lab::LabError;
use lydian_lab::runs::adapter::{Adapter, Job};
use lydian_lab::runs::rpc::Server;
use lydian_oracle::Scratch;
use lydian_report::results::{Answer, Settings, Stage, Validation};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// A chain of empty blocks, written into the folder of a test.
pub(crate) fn empty_chain(scratch: &Scratch, blocks: u32) -> ChainFiles {
    let folder = scratch.path().join("chain");
    empty::write(blocks, &folder).unwrap();
    ChainFiles::open(&folder, None).unwrap()
}

/// The settings of one run of a script.
pub(crate) fn one_run(timeout_seconds: u64) -> Settings {
    Settings {
        runs: 1,
        threads: 2,
        cache_mib: 4,
        timeout_seconds,
        memory_max_bytes: 1 << 40,
        disk_free_min_bytes: 0,
        from_height: None,
        validation: Validation::Full,
        cgroup_memory_bytes: None,
    }
}

/// Writes a program. Another process does so: starting a program fails as busy while any process has it open for
/// writing, and a child that another test starts meanwhile inherits what this process has open.
pub(crate) fn write_program(path: &Path, script: &str) {
    let write = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let status = Command::new("sh").args(["-c", write, "sh", script]).arg(path).status().unwrap();
    assert!(status.success(), "{}", path.display());
}

/// Runs its script, then exits cleanly and gives the answer.
#[derive(Clone, Debug)]
pub(crate) struct Fake {
    pub(crate) script: String,
    pub(crate) answer: Answer,
    /// The program that runs the script.
    pub(crate) shell: &'static str,
    pub(crate) networks: &'static [&'static str],
    pub(crate) stages: Vec<Stage>,
}

impl Fake {
    pub(crate) fn new(script: &str, answer: &Answer) -> Fake {
        Fake { script: script.into(), answer: answer.clone(), shell: "sh", networks: &["regtest"], stages: Vec::new() }
    }
}

impl Adapter for Fake {
    fn program(&self) -> &Path {
        Path::new(self.shell)
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("fake 1".into())
    }

    /// `$1` is the data directory, `$2` the log.
    fn reindex(&self, job: &Job) -> Command {
        let mut command = job.command(self.shell);
        command.args(["-c", &self.script, "sh"]).arg(&job.data).arg(job.log());
        command
    }

    fn sync(&self, job: &Job) -> Command {
        self.reindex(job)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        (!self.networks.contains(&network.name)).then(|| format!("it knows nothing of {}", network.name))
    }

    fn stages(&self, _: &Job) -> Vec<Stage> {
        self.stages.clone()
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Ok(self.answer.clone())
    }
}

/// Gives the right tip and the right UTXO set without having looked at a single script: runs alone cannot reveal it.
/// Offline it accepts every block that it is given, however invalid, and reports it as its tip.
#[derive(Debug)]
pub(crate) struct Gullible(pub(crate) Fake);

impl Adapter for Gullible {
    fn program(&self) -> &Path {
        self.0.program()
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("gullible 1".into())
    }

    fn reindex(&self, job: &Job) -> Command {
        self.0.reindex(job)
    }

    fn sync(&self, job: &Job) -> Command {
        self.0.sync(job)
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
        let mut tip = genesis.to_owned();
        serve(job.rpc_port, move |method, params| match method {
            "submitblock" => {
                tip = hash_of(params[0].as_str().unwrap());
                Value::Null
            }
            _ => json!(tip),
        });
        let mut command = job.command("sh");
        command.args(["-c", "sleep 600"]);
        Some(command)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Some(Server { port: job.rpc_port, credentials: "a:b".into() })
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        self.0.answer(job)
    }
}

/// The hash of a block in hexadecimal, as displayed.
fn hash_of(block: &str) -> String {
    let byte = |index: usize| u8::from_str_radix(&block[2 * index..2 * index + 2], 16).unwrap();
    let header: Vec<u8> = (0..80).map(byte).collect();
    lydian_primitives::Header::parse(header.first_chunk::<80>().unwrap()).hash().to_string()
}

/// An RPC server in the test itself, one answer per connection; it ends with the process. Returns its port; port 0
/// selects a free one.
pub(crate) fn serve(port: u16, mut answer: impl FnMut(&str, &Value) -> Value + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(question) = question(&mut stream) else { continue };
            let result = answer(question["method"].as_str().unwrap(), &question["params"]);
            let body = json!({ "result": result, "error": null, "id": 0 }).to_string();
            // A client that goes away does no harm.
            let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes());
        }
    });
    port
}

fn question(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        bytes.extend_from_slice(&buffer[..size]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(question) = serde_json::from_str(body)
        {
            return Some(question);
        }
    }
}
