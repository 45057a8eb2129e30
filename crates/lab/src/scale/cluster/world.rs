//! The processes of an installation: nodes, the store, front ends; and what is done to them.
//!
//! Input: programs, folders, ports. Output: running processes that can be killed, paused and started again on the same
//! ports, and what each role has used. Invariants: everything listens on loopback; no process survives the value; CPU
//! time of a process that was ended here is not lost. Must never: use a store that it did not start for a failure.

use super::changes::Caller;
use super::oracle::{About, Oracle, Verdict};
use crate::electrum::client::{Client, Place};
use crate::electrum::process::{Process, Used};
use crate::electrum::protocol::ScriptQuery;
use crate::error::LabError;
use crate::limits::METRICS_BYTES_MAX;
use crate::runs::{log_end, procfs, rpc, system};
use crate::scale::balancer::OWN_ADDRESS;
use crate::scale::node::{Home, Node, PROTOCOL_MAX};
use crate::store::{Cluster, Consistency, Join, Recipe};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(5);
const SLOW_POLL: Duration = Duration::from_millis(100);
const STOP_PATIENCE: Duration = Duration::from_secs(60);
const HTTP_TIMEOUT: Duration = Duration::from_secs(5);
/// The name of the figure that counts reads of the store.
const READS: &str = "store_reads";
/// The tables of the index, and a column of each.
const TABLES: &[(&str, &str)] = &[("pages", "generation"), ("deltas", "series"), ("commits", "id")];

/// Whose CPU time and memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Node,
    Store,
    Front,
    /// Clients, balancer, and the lab itself.
    Lab,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Node, Role::Store, Role::Front, Role::Lab];

    pub fn name(self) -> &'static str {
        match self {
            Role::Node => "nodes",
            Role::Store => "store",
            Role::Front => "front ends",
            Role::Lab => "clients",
        }
    }
}

/// The ports of a node, the same for each of its processes.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub rpc: u16,
    pub electrum: u16,
    pub feed: u16,
}

impl Ports {
    pub fn free() -> Result<Ports, LabError> {
        Ok(Ports { rpc: rpc::free_port()?, electrum: rpc::free_port()?, feed: rpc::free_port()? })
    }
}

/// Where the index is in a store.
#[derive(Debug)]
pub struct Store {
    /// `None` for one that runs already.
    pub cluster: Option<Cluster>,
    pub url: String,
    pub keyspace: String,
}

impl Store {
    /// Starts a cluster, or uses the one at `hosts`.
    pub fn start(
        hosts: Option<&str>,
        recipe: &Recipe<'_>,
        small_disk_mib: Option<u32>,
        keyspace: &str,
    ) -> Result<Store, LabError> {
        let interrupted = || LabError::Usage("interrupted".to_owned());
        let cluster = match hosts {
            Some(_) => None,
            None => Some(Cluster::start_with(recipe, small_disk_mib)?.ok_or_else(interrupted)?),
        };
        let hosts = cluster.as_ref().map_or_else(|| hosts.unwrap_or_default().to_owned(), Cluster::hosts);
        let url = format!("cassandra://{hosts}/{keyspace}");
        Ok(Store { cluster, url, keyspace: keyspace.to_owned() })
    }

    /// The cluster that the lab started.
    pub fn own(&mut self) -> Result<&mut Cluster, LabError> {
        self.cluster.as_mut().ok_or_else(|| LabError::Usage("the lab did not start this store".to_owned()))
    }
}

/// A front end.
#[derive(Debug)]
pub struct Front {
    process: Option<Process>,
    pub port: u16,
    pub health: u16,
    output: PathBuf,
}

/// What is the same for all front ends.
#[derive(Debug)]
pub struct FrontRecipe {
    pub program: PathBuf,
    pub chain: &'static str,
    /// Below it, each has its output.
    pub folder: PathBuf,
    pub url: String,
    /// In the order in which they are followed.
    pub feeds: Vec<u16>,
    pub more: Vec<String>,
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct World<'a> {
    pub homes: &'a [Home<'a>],
    pub ports: Vec<Ports>,
    /// For every start of each node.
    pub arguments: Vec<Vec<String>>,
    pub callers: &'a [Caller],
    pub nodes: Vec<Option<Node<'a>>>,
    pub store: Option<Store>,
    pub fronts: Vec<Front>,
    pub front_recipe: Option<FrontRecipe>,
    /// CPU seconds of processes that were ended.
    ended: BTreeMap<Role, f64>,
    pub timeout: Duration,
    pub interrupted: &'a AtomicBool,
}

impl<'a> World<'a> {
    pub fn new(
        homes: &'a [Home<'a>],
        ports: &[Ports],
        callers: &'a [Caller],
        arguments: Vec<Vec<String>>,
        timeout: Duration,
        interrupted: &'a AtomicBool,
    ) -> World<'a> {
        World {
            nodes: homes.iter().map(|_| None).collect(),
            homes,
            ports: ports.to_vec(),
            arguments,
            callers,
            store: None,
            fronts: Vec::new(),
            front_recipe: None,
            ended: BTreeMap::new(),
            timeout,
            interrupted,
        }
    }

    pub fn check_interrupted(&self) -> Result<(), LabError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(LabError::Usage("interrupted".to_owned())),
            false => Ok(()),
        }
    }

    // Nodes

    /// Starts a node; it gets no changes yet.
    pub fn start_node(&mut self, number: usize) -> Result<(), LabError> {
        let (Some(home), Some(ports)) = (self.homes.get(number), self.ports.get(number)) else {
            return Err(LabError::Usage(format!("there is no node {number}")));
        };
        let more = self.arguments.get(number).cloned().unwrap_or_default();
        let node = home.start_on(ports.rpc, ports.electrum, &more)?;
        let answers = || -> Result<Option<()>, LabError> {
            if node.has_ended() {
                return Err(home.error("it ended before it answered"));
            }
            Ok(node.indexed().ok().map(|_| ()))
        };
        home.wait_until(answers, "starting", SLOW_POLL)?;
        if let Some(place) = self.nodes.get_mut(number) {
            *place = Some(node);
        }
        Ok(())
    }

    pub fn node(&self, number: usize) -> Result<&Node<'a>, LabError> {
        let missing = || LabError::Usage(format!("node {number} does not run"));
        self.nodes.get(number).and_then(Option::as_ref).ok_or_else(missing)
    }

    /// It gets no further changes.
    fn leave_out(&self, number: usize) {
        if let Some(caller) = self.callers.get(number) {
            caller.is_up.store(false, Ordering::Relaxed);
        }
    }

    fn take_node(&mut self, number: usize) -> Result<Node<'a>, LabError> {
        self.leave_out(number);
        let missing = || LabError::Usage(format!("node {number} does not run"));
        let node = self.nodes.get_mut(number).and_then(Option::take).ok_or_else(missing)?;
        *self.ended.entry(Role::Node).or_default() += node.used().cpu_seconds;
        Ok(node)
    }

    pub fn kill_node(&mut self, number: usize) -> Result<(), LabError> {
        self.take_node(number)?.kill()
    }

    pub fn stop_node(&mut self, number: usize) -> Result<(), LabError> {
        self.take_node(number)?.stop().map(|_| ())
    }

    /// It must not get changes any more.
    pub fn pause_node(&mut self, number: usize) -> Result<(), LabError> {
        signal(self.node(number)?.pid(), Signal::STOP)
    }

    pub fn resume_node(&mut self, number: usize) -> Result<(), LabError> {
        signal(self.node(number)?.pid(), Signal::CONT)
    }

    // The store

    pub fn store(&mut self) -> Result<&mut Cluster, LabError> {
        self.store.as_mut().ok_or_else(|| LabError::Usage("there is no store".to_owned()))?.own()
    }

    fn keep_store_cpu(&mut self, number: usize) -> Result<(), LabError> {
        let used = self.store()?.node_mut(number)?.used().map_or(0.0, |used| used.cpu_seconds);
        *self.ended.entry(Role::Store).or_default() += used;
        Ok(())
    }

    pub fn kill_store_node(&mut self, number: usize) -> Result<(), LabError> {
        self.keep_store_cpu(number)?;
        self.store()?.node_mut(number)?.kill()
    }

    pub fn stop_store_node(&mut self, number: usize) -> Result<(), LabError> {
        self.keep_store_cpu(number)?;
        self.store()?.node_mut(number)?.stop()
    }

    /// Starts a node of the store that ended; [`World::wait_for_store`] waits for it.
    pub fn start_store_node(&mut self, number: usize) -> Result<(), LabError> {
        self.store()?.start_node(number, Join::Plainly)
    }

    /// Starts a node of the store without data in the place of the one that had them, and waits until it has joined.
    pub fn replace_store_node(&mut self, number: usize) -> Result<(), LabError> {
        let (timeout, interrupted) = (self.timeout, self.interrupted);
        self.store()?.replace_node(number, timeout, interrupted)?;
        self.check_interrupted()
    }

    /// Waits until all nodes of the store know each other.
    pub fn wait_for_store(&mut self) -> Result<(), LabError> {
        let (timeout, interrupted) = (self.timeout, self.interrupted);
        self.store()?.wait(timeout, interrupted)?;
        self.check_interrupted()
    }

    pub fn restart_store_node(&mut self, number: usize) -> Result<(), LabError> {
        self.start_store_node(number)?;
        self.wait_for_store()
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        let keyspace = self.store.as_ref().map(|store| store.keyspace.clone()).unwrap_or_default();
        TABLES.iter().map(|(table, column)| (format!("{keyspace}.{table}"), *column)).collect()
    }

    /// Rows of the index that one node of the store has itself.
    fn rows_of(&mut self, number: usize) -> Result<u64, LabError> {
        let tables = self.tables();
        let node = self.store()?.node_mut(number)?;
        tables.iter().map(|(table, column)| node.count(table, column)).sum()
    }

    /// Reads every row of the index from all replicas, which gives them to those that lack them.
    pub fn read_from_all(&mut self) -> Result<(), LabError> {
        let tables = self.tables();
        let node = self.store()?.node_mut(0)?;
        tables.iter().try_for_each(|(table, _)| node.read_from_all(table).map(|_| ()))
    }

    /// Waits until this node of the store has as many rows of the index as the first one, and not none.
    pub fn wait_for_rows(&mut self, number: usize) -> Result<(), LabError> {
        let start = system::now();
        loop {
            let rows = (self.rows_of(0)?, self.rows_of(number)?);
            if rows.0 > 0 && rows.0 == rows.1 {
                return Ok(());
            }
            self.check_interrupted()?;
            if start.elapsed() > self.timeout {
                let reason = format!("node {number} has {} rows, the first one {}", rows.1, rows.0);
                return Err(LabError::program("Cassandra", reason));
            }
            thread::sleep(SLOW_POLL);
        }
    }

    /// Lets the tables of the index be written to disk every so many milliseconds, as under heavy load; 0: as usual.
    pub fn flush_often(&mut self, through: usize, milliseconds: u32) -> Result<(), LabError> {
        let tables = self.tables();
        let node = self.store()?.node_mut(through)?;
        tables.iter().try_for_each(|(table, _)| {
            let statement = format!("ALTER TABLE {table} WITH memtable_flush_period_in_ms = {milliseconds}");
            node.query(&statement, Consistency::One).map(|_| ())
        })
    }

    pub fn store_nodes(&self) -> usize {
        self.store.as_ref().and_then(|store| store.cluster.as_ref()).map_or(0, |cluster| cluster.nodes().len())
    }

    // Front ends

    /// Adds a front end that does not run yet.
    pub fn add_front(&mut self) -> Result<usize, LabError> {
        let number = self.fronts.len();
        let folder = self.front_recipe.as_ref().map(|recipe| recipe.folder.clone()).unwrap_or_default();
        let output = folder.join(format!("front-{number}.txt"));
        self.fronts.push(Front { process: None, port: rpc::free_port()?, health: rpc::free_port()?, output });
        Ok(number)
    }

    /// Starts a front end; returns the seconds from the start of its process to its first answer, which must be one
    /// that the node gave.
    pub fn start_front(&mut self, number: usize, oracle: &Oracle) -> Result<f64, LabError> {
        let (Some(recipe), Some(front)) = (&self.front_recipe, self.fronts.get_mut(number)) else {
            return Err(LabError::Usage(format!("there is no front end {number}")));
        };
        front.process = Some(Process::start(recipe.command(front), &front.output)?);
        let place = front.place();
        let (about, start) = (About::Script(ScriptQuery::History), system::now());
        let mut last = String::from("it does not listen");
        while start.elapsed() < recipe.timeout {
            let Some(process) = &front.process else { break };
            if process.has_ended() {
                let said = log_end(Path::new(""), &front.output);
                return Err(LabError::program("lydian serve", format!("it ended at its start; it said:\n{said}")));
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Usage("interrupted".to_owned()));
            }
            let asked = system::now();
            match Client::connect(&place) {
                Ok(mut client) => match client.ask(&about.method(), oracle.request(0, about)) {
                    Ok(answer) => match oracle.judge(0, about, answer.line, asked) {
                        Verdict::Known { .. } => return Ok(process.seconds()),
                        Verdict::Unknown { .. } | Verdict::None => {
                            last = String::from_utf8_lossy(answer.line).chars().take(300).collect();
                        }
                    },
                    Err(error) => last = error.to_string(),
                },
                Err(error) => last = error.to_string(),
            }
            thread::sleep(POLL);
        }
        let said = log_end(Path::new(""), &front.output);
        let seconds = recipe.timeout.as_secs();
        Err(LabError::program("lydian serve", format!("no right answer within {seconds} s: {last}; it said:\n{said}")))
    }

    /// `kill -9`.
    pub fn kill_front(&mut self, number: usize) -> Result<(), LabError> {
        let missing = || LabError::Usage(format!("there is no front end {number}"));
        let mut process = self.fronts.get_mut(number).and_then(|front| front.process.take()).ok_or_else(missing)?;
        *self.ended.entry(Role::Front).or_default() += process.used().cpu_seconds;
        process.stop(Signal::KILL, STOP_PATIENCE)
    }

    /// Waits until every server has the tip of the first node.
    pub fn wait_for_tip(&self) -> Result<(), LabError> {
        let places: Vec<Place> = match self.fronts.is_empty() {
            true => self.nodes.iter().flatten().map(Node::place).collect(),
            false => self.fronts.iter().map(Front::place).collect(),
        };
        let start = system::now();
        for place in places {
            loop {
                let tip = |place| Client::connect(place)?.call("blockchain.headers.subscribe", &json!([]));
                let (wanted, has) = (tip(&self.node(0)?.place())?, tip(&place));
                if has.as_ref().is_ok_and(|has| *has == wanted) {
                    break;
                }
                self.check_interrupted()?;
                if start.elapsed() > self.timeout {
                    let reason = format!("it does not reach the tip {wanted}: {has:?}");
                    return Err(LabError::program(&place.name, reason));
                }
                thread::sleep(SLOW_POLL);
            }
        }
        Ok(())
    }

    /// Keys that all front ends have asked of the store; `None` if they do not say.
    pub fn reads(&self) -> Option<f64> {
        let reads = self.fronts.iter().filter(|front| front.process.is_some()).map(|front| reads(front.health));
        reads.sum::<Option<f64>>().filter(|_| !self.fronts.is_empty())
    }

    /// Growth of a front end's memory by a connection that subscribes as a wallet does.
    pub fn connection_bytes(&self, number: usize, oracle: &Oracle, count: u32) -> Result<f64, LabError> {
        let missing = || LabError::Usage(format!("there is no front end {number}"));
        let front = self.fronts.get(number).ok_or_else(missing)?;
        let open = || -> Result<Client, LabError> {
            let mut client = Client::connect(&front.place())?;
            client.call("blockchain.headers.subscribe", &json!([]))?;
            for target in oracle.targets.iter().take(12) {
                client.call("blockchain.scripthash.subscribe", &json!([target.scripthash]))?;
            }
            Ok(client)
        };
        // What the first connections fill is not of each connection.
        let _first = open()?;
        let before = front.rss_bytes();
        let open = (0..count).map(|_| open()).collect::<Result<Vec<Client>, LabError>>()?;
        let grown = front.rss_bytes().saturating_sub(before);
        drop(open);
        Ok(to_f64(grown) / f64::from(count.max(1)))
    }

    // What everything used

    /// CPU seconds of each role since its start.
    pub fn cpu(&self) -> BTreeMap<Role, f64> {
        let mut cpu = self.ended.clone();
        let mut add = |role, used: Used| *cpu.entry(role).or_default() += used.cpu_seconds;
        // The first node only knows the right answers, if front ends are measured.
        let measured = usize::from(!self.fronts.is_empty());
        self.nodes.iter().skip(measured).flatten().for_each(|node| add(Role::Node, node.used()));
        self.fronts.iter().filter_map(|front| front.process.as_ref()).for_each(|one| add(Role::Front, one.used()));
        let cluster = self.store.as_ref().and_then(|store| store.cluster.as_ref());
        cluster.iter().flat_map(|cluster| cluster.nodes()).filter_map(|node| node.used()).for_each(|used| {
            add(Role::Store, used);
        });
        cpu.insert(Role::Lab, own_seconds());
        cpu
    }

    /// Resident bytes of each process of a role.
    pub fn rss_bytes(&self, role: Role) -> Vec<f64> {
        let of = |used: Used| to_f64(used.rss_bytes);
        match role {
            Role::Node => self.nodes.iter().flatten().map(|node| of(node.used())).collect(),
            Role::Front => {
                self.fronts.iter().filter_map(|front| front.process.as_ref()).map(|one| of(one.used())).collect()
            }
            Role::Store => {
                let cluster = self.store.as_ref().and_then(|store| store.cluster.as_ref());
                cluster.iter().flat_map(|cluster| cluster.nodes()).filter_map(|node| node.used()).map(of).collect()
            }
            Role::Lab => {
                let own = system::process_memory(std::process::id());
                own.iter().map(|procfs::Memory { rss_bytes, .. }| to_f64(*rss_bytes)).collect()
            }
        }
    }
}

impl Front {
    fn place(&self) -> Place {
        Place {
            name: "lydian serve".to_owned(),
            port: self.port,
            timeout: Duration::from_secs(10),
            protocol_max: PROTOCOL_MAX.to_owned(),
        }
    }

    fn rss_bytes(&self) -> u64 {
        self.process.as_ref().map_or(0, |process| process.used().rss_bytes)
    }
}

impl FrontRecipe {
    fn command(&self, front: &Front) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(format!("-chain={}", self.chain)).arg(format!("-index={}", self.url));
        let feeds: Vec<String> = self.feeds.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        command.arg(format!("-feed={}", feeds.join(",")));
        command.args(["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0"]);
        command.arg(format!("-electrumbind=127.0.0.1:{}", front.port));
        command.arg(format!("-healthbind=127.0.0.1:{}", front.health)).args(behind_balancer()).args(&self.more);
        command
    }
}

/// The options of a server behind the balancer: clients of one address cost nothing here, and the balancer names them.
pub fn behind_balancer() -> [String; 3] {
    let proxy = format!("-electrumproxy={OWN_ADDRESS}");
    [proxy, "-electrumcostsoft=0".to_owned(), "-electrumcosthard=0".to_owned()]
}

/// Whether the program has feeds and front ends.
pub fn must_serve(program: &Path) -> Result<(), LabError> {
    let mut command = Command::new(program);
    command.arg("-help");
    match crate::runs::adapter::ask(command)?.contains("-feedbind") {
        true => Ok(()),
        false => Err(LabError::Usage(format!(
            "{} has no feed (-feedbind) and no front ends (`lydian serve`): give another one with --node-path, or \
             measure whole nodes with --whole-copies",
            program.display()
        ))),
    }
}

/// Writes the index of a data directory into the store, as `lydian index load` does; returns the seconds.
pub fn load_index(home: &Home<'_>, url: &str) -> Result<f64, LabError> {
    let start = system::now();
    let mut command = Command::new(home.program);
    command.arg(format!("-datadir={}", home.data.display())).arg(format!("-chain={}", home.network.name));
    command.args(["-printtoconsole=0", "index", "load", url]);
    crate::runs::adapter::ask(command)?;
    Ok(start.elapsed().as_secs_f64())
}

fn signal(pid: u32, signal: Signal) -> Result<(), LabError> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| LabError::program("lydian", "it has no process"))?;
    kill_process(pid, signal).map_err(|error| LabError::program("lydian", error))
}

fn own_seconds() -> f64 {
    let ticks = system::process_times(std::process::id()).map_or(0, |times| times.own_ticks);
    to_f64(ticks) / system::ticks_per_second()
}

#[allow(clippy::cast_precision_loss, reason = "bytes and ticks of a process lie far below 2^52")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// The reads of the store that a front end counts at `/metrics`.
fn reads(port: u16) -> Option<f64> {
    sum_of(&metrics(port).ok()?, READS)
}

/// The sum of all figures whose name contains these words; `None` without any.
fn sum_of(metrics: &str, words: &str) -> Option<f64> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        name.split('{').next().filter(|name| name.contains(words))?;
        value.parse::<f64>().ok()
    };
    let mut found = lines.filter_map(value).peekable();
    found.peek()?;
    Some(found.sum())
}

fn metrics(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), HTTP_TIMEOUT)?;
    stream.set_read_timeout(Some(HTTP_TIMEOUT))?;
    stream.set_write_timeout(Some(HTTP_TIMEOUT))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(METRICS_BYTES_MAX + 1).read_to_end(&mut answer)?;
    if answer.len() as u64 > METRICS_BYTES_MAX {
        return Err(std::io::Error::other("the answer is too long"));
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn reads_are_summed_over_their_labels() {
        let text = "# HELP lydian_store_reads_total Keys.\nlydian_store_reads_total{kind=\"page\"} 7\n\
                    lydian_store_reads_total{kind=\"delta\"} 5\nlydian_store_calls_total 99\n";
        assert_eq!((sum_of(text, READS), sum_of("a 1\n", READS), sum_of("", READS)), (Some(12.0), None, None));
    }

    #[test]
    fn a_program_without_front_ends_is_named() {
        let error = must_serve(Path::new("/bin/echo")).unwrap_err().to_string();
        assert!(error.starts_with("/bin/echo has no feed (-feedbind)"), "{error}");
    }

    /// limit: METRICS_BYTES_MAX at
    /// limit: METRICS_BYTES_MAX above
    #[test]
    fn figures_have_a_limit() {
        let answer = |length: u64| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                let mut asked = [0; 1_024];
                let _ = stream.read(&mut asked).unwrap();
                // The client closes the connection once it has read enough.
                let _ = stream.write_all(&vec![b'x'; usize::try_from(length).unwrap()]);
            });
            let text = metrics(port);
            server.join().unwrap();
            text
        };
        assert_eq!(answer(METRICS_BYTES_MAX).unwrap().len() as u64, METRICS_BYTES_MAX);
        assert!(answer(METRICS_BYTES_MAX + 1).is_err());
    }
}
