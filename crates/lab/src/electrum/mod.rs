//! `lydian-lab electrum`: compares Electrum servers that run in turn on the same chain beside the same node.
//!
//! The queries are those of Casa's report. Input: a chain with address reuse, servers, settings. Output: the cost of
//! building each server's index, the time of each query of each script, loads of many connections, and where answers
//! differ. A server that fails is recorded with the end of its log; its earlier figures are kept, and the others
//! continue. Must never: count an answer that was not compared, or run two servers at once.

pub mod adapter;
pub mod adapters;
pub mod build;
pub mod client;
pub mod compare;
pub mod daemon;
mod esplora;
pub mod load;
pub mod postings;
pub mod process;
pub mod protocol;
pub mod queries;
mod rest;
mod session;
#[cfg(test)]
mod tests_with_a_server;
pub mod wallet;

use crate::error::LabError;
use crate::runs::{Folder, arguments_of, chain, machine, machine_facts, rpc, sources, system};
use crate::runs::{program_facts, version_or_reason};
use adapter::{DaemonPlace, ElectrumServer, ServerJob};
use compare::{Compared, DIFFERENCES_MAX, Digests};
use daemon::{Below, Daemon, Recipe};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::expected::{Expected, Outspends};
use lydian_chains::rng::Random;
use lydian_chains::targets::{Target, Targets};
use lydian_report::electrum::WALLET_TRANSACTIONS_MAX;
use lydian_report::electrum::results::{
    Difference, EXPERIMENT, ElectrumResults, ElectrumSettings, FORMAT, ScriptFacts, ServerResults,
};
use lydian_report::results::{Lab, LeftOut, NodeFacts};
use lydian_report::systems::{Bar, Role, SYSTEMS, System};
use session::{Asked, QUERIES, Session};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server with its name in the results.
#[derive(Debug)]
pub struct Contender {
    pub name: String,
    pub server: Box<dyn ElectrumServer>,
    /// Arguments for this server only.
    pub more: Vec<String>,
}

/// The inputs of a comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub chain: &'a ChainFiles,
    pub targets: &'a Targets,
    /// The node below the servers.
    pub below: Below<'a>,
    pub contenders: &'a [Contender],
    pub left_out: Vec<LeftOut>,
    pub settings: ElectrumSettings,
    /// Seed for the order of the scripts.
    pub seed: u64,
    pub threads: usize,
    /// Time until an index must be built.
    pub build_timeout: Duration,
    /// Whether a cold pass may empty the whole page cache, instead of dropping only the files of the server and the
    /// node.
    pub may_drop_caches: bool,
    /// Everything is written below this folder; the folder of the comparison is made and removed there.
    pub work: &'a Path,
    pub command_line: Vec<String>,
    /// The results of an interrupted comparison: servers that finished are taken over unchanged.
    pub earlier: Option<&'a ElectrumResults>,
    pub interrupted: &'a AtomicBool,
}

/// One server's name and its answers to [`QUERIES`].
type Given = (String, [Digests; QUERIES.len()]);

impl Comparison<'_> {
    /// Runs the servers in turn. After each server `done` receives the results so far. An interruption stops the
    /// comparison and keeps the finished servers.
    pub fn run(
        &self,
        print_progress: &mut dyn FnMut(&str),
        done: &mut dyn FnMut(&ElectrumResults) -> Result<(), LabError>,
    ) -> Result<ElectrumResults, LabError> {
        let folder = Folder::new(&self.work.join("electrum"))?;
        let targets = in_order(self.targets, self.seed);
        print_progress("computing the right answers from the blocks");
        let expected = Expected::of(self.chain, &targets)?;
        print_progress("the node below the servers validates the chain and builds its indexes");
        let recipe = Recipe {
            below: self.below,
            chain: self.chain,
            arguments: self.daemon_arguments(),
            threads: self.threads,
            folder: &folder.0.join("node"),
            timeout: self.build_timeout,
            interrupted: self.interrupted,
        };
        let Some(daemon) = Daemon::start(&recipe)? else {
            return Err(LabError::Usage("interrupted before the first server".to_owned()));
        };
        let mut asked = Asked::new(&targets, &expected, postings::postings(self.chain)?);
        if self.settings.esplora {
            asked.add_esplora(&expected, &Outspends::of(self.chain, &expected)?);
        }
        drop(expected);
        let mut results = self.begin(&targets, &daemon);
        let earlier = self.earlier.map(|earlier| same_comparison(earlier, &results).map(|()| earlier)).transpose()?;
        let mut answers: Vec<Given> = Vec::new();
        for contender in self.contenders {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let same = earlier.map(|earlier| self.finished(earlier, contender, &daemon, &folder.0)).transpose()?;
            if let Some(server) = same.flatten() {
                print_progress(&format!("{}: keeping its earlier figures", contender.name));
                results.servers.push(server.clone());
                settle(&mut results, &asked, &answers, earlier);
                continue;
            }
            let (server, digests) = self.one(contender, &asked, &daemon, &folder.0, &mut results, print_progress)?;
            results.servers.push(server);
            answers.extend(digests.map(|digests| (contender.name.clone(), digests)));
            settle(&mut results, &asked, &answers, earlier);
            done(&results)?;
        }
        Ok(results)
    }

    /// The earlier figures of exactly the same server; if its version, program or arguments differ, it is measured
    /// again.
    fn finished<'a>(
        &self,
        earlier: &'a ElectrumResults,
        contender: &Contender,
        daemon: &Daemon,
        folder: &Path,
    ) -> Result<Option<&'a ServerResults>, LabError> {
        let mut now = facts(contender);
        if self.unable(contender).is_none() {
            let folder = Folder::new(&folder.join("server"))?;
            now.arguments = arguments_for(contender.server.as_ref(), &self.job(&folder.0, daemon, contender)?)?;
        }
        Ok(finished(earlier, &now))
    }

    /// Why a server takes no part: by design, or because it is not installed.
    pub fn unable<'b>(&self, contender: &'b Contender) -> Option<&'b str> {
        let server = contender.server.as_ref();
        server.cannot().or_else(|| server.absent())
    }

    /// The arguments that the servers require, each once.
    fn daemon_arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        let able = self.contenders.iter().filter(|contender| self.unable(contender).is_none());
        for argument in able.flat_map(|contender| contender.server.daemon_arguments()) {
            if !arguments.iter().any(|known| known == argument) {
                arguments.push((*argument).to_owned());
            }
        }
        arguments
    }

    fn begin(&self, targets: &Targets, daemon: &Daemon) -> ElectrumResults {
        let fact = |target: &Target| ScriptFacts {
            scripthash: target.scripthash.clone(),
            transactions: target.transactions,
            utxos: target.utxos,
        };
        ElectrumResults {
            format: FORMAT,
            lab: Lab {
                version: env!("CARGO_PKG_VERSION").into(),
                commit: machine::commit(),
                command_line: self.command_line.clone(),
            },
            experiment: EXPERIMENT.to_owned(),
            started: system::unix_seconds(),
            machine: machine_facts(self.work),
            chain: chain::facts(self.chain),
            settings: self.settings.clone(),
            daemon: daemon.facts().clone(),
            servers: Vec::new(),
            left_out: self.left_out.clone(),
            scripts: targets.scripts.iter().map(fact).collect(),
            differences: Vec::new(),
            is_agreed: false,
            thinned: None,
        }
    }

    /// Runs one server. The second value is its answers, if it was started.
    fn one(
        &self,
        contender: &Contender,
        asked: &Asked<'_>,
        daemon: &Daemon,
        folder: &Path,
        so_far: &mut ElectrumResults,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<(ServerResults, Option<[Digests; QUERIES.len()]>), LabError> {
        let mut results = ServerResults::new(facts(contender));
        if let Some(reason) = self.unable(contender) {
            print_progress(&format!("{}: {reason}", contender.name));
            results.failure = Some(reason.to_owned());
            return Ok((results, None));
        }
        let folder = Folder::new(&folder.join("server"))?;
        let job = self.job(&folder.0, daemon, contender)?;
        let Some(mut session) = Session::new(self, contender, asked, daemon, job, print_progress) else {
            return Err(LabError::Usage("there are no scripts to ask for".to_owned()));
        };
        session.run(&mut results);
        if let Some(way) = session.emptied_by {
            so_far.settings.cache_emptied_by = Some(way.to_owned());
        }
        Ok((results, Some(session.into_digests())))
    }

    fn job(&self, folder: &Path, daemon: &Daemon, contender: &Contender) -> Result<ServerJob, LabError> {
        let has_esplora = self.settings.esplora && contender.server.has_esplora();
        Ok(ServerJob {
            folder: folder.to_path_buf(),
            port: rpc::free_port()?,
            other_ports: [rpc::free_port()?, rpc::free_port()?],
            esplora_port: has_esplora.then(rpc::free_port).transpose()?,
            daemon: daemon.place()?,
            more: contender.more.clone(),
        })
    }
}

/// The servers of the published comparisons that are not among these names, with or without a label.
pub fn left_out(names: &[String]) -> Vec<LeftOut> {
    let takes_part = |system: &System| names.iter().any(|name| name.split(':').next() == Some(system.kind));
    let absent = SYSTEMS.iter().filter(|system| system.role == Role::Electrum && !takes_part(system));
    absent
        .map(|system| match system.bar(Bar::Electrum) {
            Some(_) => system.left_out(Bar::Electrum),
            None => system.not_among("--servers"),
        })
        .collect()
}

/// The same scripts in an order given by the seed, so that a pass cut short for lack of time has seen a fair sample;
/// fat scripts come last, from the smallest to the largest.
fn in_order(targets: &Targets, seed: u64) -> Targets {
    let mut random = Random::new(seed, "electrum order");
    let (mut fat, mut scripts): (Vec<Target>, Vec<Target>) =
        targets.scripts.iter().cloned().partition(|target| target.transactions > WALLET_TRANSACTIONS_MAX);
    for last in (1..scripts.len()).rev() {
        scripts.swap(last, random.index(last + 1));
    }
    fat.sort_by_key(|target| target.transactions);
    scripts.extend(fat);
    Targets { scripts }
}

fn facts(contender: &Contender) -> NodeFacts {
    let server = contender.server.as_ref();
    NodeFacts {
        arguments: contender.more.clone(),
        cannot: server.cannot().map(|reason| sources::with_source(&contender.name, reason)),
        ..program_facts(&contender.name, server.program(), version_or_reason(server.version()), server.notes())
    }
}

/// Figures are combined only if they were measured under the same conditions.
fn same_comparison(earlier: &ElectrumResults, now: &ElectrumResults) -> Result<(), LabError> {
    let settings = |of: &ElectrumResults| ElectrumSettings { cache_emptied_by: None, ..of.settings.clone() };
    let what = match () {
        () if earlier.chain.sha256 != now.chain.sha256 => "chain",
        () if settings(earlier) != settings(now) => "settings",
        () if earlier.scripts != now.scripts => "scripts, or order of scripts (--seed, --ask)",
        () if earlier.machine != now.machine => "machine",
        () if earlier.daemon.build() != now.daemon.build() => "node below the servers",
        () => return Ok(()),
    };
    let text = format!("--resume: not the same {what} as before; start over without --resume, into another file");
    Err(LabError::Usage(text))
}

fn finished<'a>(earlier: &'a ElectrumResults, now: &NodeFacts) -> Option<&'a ServerResults> {
    let is_same = |then: &NodeFacts| {
        (&then.name, &then.program, &then.version) == (&now.name, &now.program, &now.version)
            && then.arguments == now.arguments
            && then.build() == now.build()
    };
    earlier.servers.iter().find(|server| is_same(&server.facts) && server.failure.is_none())
}

/// Computes the differences and the agreement of all servers so far. For servers taken over from an earlier file there
/// are no answers, only the differences found then.
fn settle(results: &mut ElectrumResults, asked: &Asked<'_>, answers: &[Given], earlier: Option<&ElectrumResults>) {
    let is_earlier = |name: &String| {
        let is_there = results.servers.iter().any(|server| server.facts.name == *name);
        is_there && !answers.iter().any(|(given, _)| given == name)
    };
    let mut differences: Vec<Difference> = earlier.map_or(Vec::new(), |earlier| earlier.differences.clone());
    differences.retain(|difference| difference.answers.iter().any(|(name, _)| is_earlier(name)));
    for (number, query) in QUERIES.into_iter().enumerate() {
        let servers: Vec<(&str, &Digests)> =
            answers.iter().filter_map(|(name, digests)| Some((name.as_str(), digests.get(number)?))).collect();
        let (whats, expected) = asked.of(number);
        let compared = Compared { query, whats: &whats, expected, servers: &servers };
        let left = DIFFERENCES_MAX.saturating_sub(differences.len());
        differences.extend(compared.differences(left));
    }
    results.differences = differences;
    let queries = || results.servers.iter().flat_map(|server| &server.queries);
    results.is_agreed = queries().next().is_some() && queries().all(|query| query.wrong == 0);
}

/// The arguments that a server is started with, for the results; port 0 stands for a free port.
fn arguments_for(server: &dyn ElectrumServer, job: &ServerJob) -> Result<Vec<String>, LabError> {
    let daemon = DaemonPlace { rpc_port: 0, p2p_port: 0, ..job.daemon.clone() };
    let esplora_port = job.esplora_port.map(|_| 0);
    let command = server.start(&ServerJob { port: 0, other_ports: [0; 2], esplora_port, daemon, ..job.clone() })?;
    Ok(shown(&command, job))
}

fn shown(command: &std::process::Command, job: &ServerJob) -> Vec<String> {
    let places = [(job.folder.display().to_string(), "FOLDER"), (job.daemon.data.display().to_string(), "NODE")];
    let secret = (job.daemon.password.clone(), "PASSWORD");
    let hidden: Vec<_> = places.into_iter().chain([secret]).filter(|(text, _)| !text.is_empty()).collect();
    let shown = |text: String| hidden.iter().fold(text, |text, (part, name)| text.replace(part, name));
    let variables = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value?.to_string_lossy());
        let is_setting = name != "PATH" && name != "HOME";
        is_setting.then(|| format!("{name}={value}"))
    });
    variables.chain(arguments_of(command)).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_a_reason() {
        let found = left_out(&["electrs".to_owned(), "electrumx:old".to_owned()]);
        let reason = |name: &str| found.iter().find(|left| left.name == name).map(|left| left.reason.as_str());
        assert_eq!((found.len(), reason("electrs"), reason("ElectrumX")), (3, None, None));
        assert!(reason("Fulcrum").is_some_and(|reason| reason.starts_with("it was not among --servers")));
        assert!(reason("Lydian").is_some_and(|reason| reason.starts_with("it was not among --servers")));
    }

    #[test]
    fn earlier_figures_stay_only_under_the_same_conditions() {
        let document = include_str!("../../../../docs/formats/lab-electrum.md");
        let (_, rest) = document.split_once("```json\n").unwrap();
        let now: ElectrumResults = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        let mut earlier = now.clone();
        earlier.settings.cache_emptied_by = Some("drop_caches".into());
        same_comparison(&earlier, &now).unwrap();
        let facts =
            |name: &str| now.servers.iter().map(|server| &server.facts).find(|facts| facts.name == name).unwrap();
        let electrs = facts("electrs");
        assert!(finished(&earlier, electrs).is_some());
        let others = [
            NodeFacts { version: "another".into(), ..electrs.clone() },
            NodeFacts { program_sha256: Some("00".into()), ..electrs.clone() },
            NodeFacts { program: "another".into(), ..electrs.clone() },
            NodeFacts { arguments: vec!["--more".into()], ..electrs.clone() },
            NodeFacts { name: "fulcrum".into(), ..electrs.clone() },
            facts("lydian").clone(),
        ];
        assert!(others.iter().all(|other| finished(&earlier, other).is_none()));
        earlier.settings.passes += 1;
        assert!(same_comparison(&earlier, &now).unwrap_err().to_string().contains("not the same settings"));
        earlier.chain.sha256.clear();
        assert!(same_comparison(&earlier, &now).unwrap_err().to_string().contains("not the same chain"));
        let other = ElectrumResults { scripts: Vec::new(), ..now.clone() };
        assert!(same_comparison(&other, &now).unwrap_err().to_string().contains("order of scripts"));
    }

    #[test]
    fn the_order_follows_from_the_seed_and_has_fat_scripts_last() {
        let target = |number: u32| {
            let transactions = if number >= 98 { number * 100 } else { number };
            Target::new(number.to_le_bytes().to_vec(), transactions, 0)
        };
        let targets = Targets { scripts: (0..100).map(target).collect() };
        let order = in_order(&targets, 1);
        assert_eq!(order, in_order(&targets, 1));
        assert_ne!(order, in_order(&targets, 2));
        assert_eq!((order.scripts[98].transactions, order.scripts[99].transactions), (9_800, 9_900));
        let mut sorted = order.scripts.clone();
        sorted.sort_by_key(|target| target.transactions);
        assert_eq!(sorted, targets.scripts, "each once");
    }
}
