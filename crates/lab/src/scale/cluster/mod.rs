//! `lydian-lab scale cluster`: a whole installation under the load of wallets, while parts of it fail.
//!
//! Input: a chain with scripts, the program `lydian`, settings. Output: [`ClusterResults`]: requests, failures, wrong
//! answers, times and CPU time by role, for each failure. Either front ends that read a store, with two nodes that have
//! feeds, one of which writes the index into the store; or several whole nodes. Clients reach both through the same
//! balancer. Invariants: every answer is compared with what the first node's own Electrum server answers, which is no
//! part of the installation if there are front ends; during each failure, six blocks leave the chain. Must never:
//! measure beside another lab.

pub mod changes;
pub mod commits;
pub mod fault;
pub mod oracle;
mod reorganisation;
mod report;
mod results;
pub mod wallet;
pub mod watch;
pub mod world;

pub use fault::{Fault, Kind};
pub use results::{ClusterResults, KindResults, Latencies, Notified, PhaseResults};

use super::balancer::{self, Backend, Balancer, Check};
use super::facts;
use super::node::{Home, PROTOCOL_MAX};
use super::project::{Costs, Estimate};
use crate::electrum::client::{Client, Place};
use crate::error::LabError;
use crate::limits::BALANCED_CONNECTIONS_MAX;
use crate::runs::{Folder, system};
use crate::store::{Recipe, SmallDisk};
use changes::{Caller, Change, Changes, Payer};
use commits::Commits;
use fault::{FOLLOWED, Means, NODES, WRITER};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::maker::{Maker, TRUE_SCRIPT};
use lydian_chains::rng::Random;
use lydian_chains::targets::{Target, Targets};
use lydian_stdx::lock;
use oracle::Oracle;
use results::{Announced, Mark};
use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wallet::{Market, Seen};
use watch::Heard;
use world::{FrontRecipe, Ports, Store, World, behind_balancer, load_index, must_serve};

/// Clients: a server accepts 512 of one address, and one server may be left with all of them.
pub const CLIENTS_MAX: u32 = 500;
/// After the last change, time for its notifications.
const SETTLES: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);
/// A client has a try of this length, and repeats it.
const TRY: Duration = Duration::from_secs(10);
/// Connections whose memory is measured.
const MEASURED_CONNECTIONS: u32 = 100;
/// The disk that is filled.
const SMALL_DISK_MIB: u32 = 256;
/// A reorganisation pauses between its blocks for this part of the time between blocks.
const PAUSES: u32 = 10;
/// A thread of a client only reads, writes and compares.
const STACK_BYTES: usize = 512 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Number of front ends; of whole nodes if `is_whole`.
    pub servers: u8,
    /// Whole nodes instead of front ends.
    pub is_whole: bool,
    /// Nodes of the store, and the heap of each.
    pub store_nodes: u8,
    pub heap_mib: u32,
    pub clients: u32,
    /// Between two requests of a client.
    pub pause_ms: u64,
    /// Phases without a failure; their spread is the error of the figures.
    pub rounds: u32,
    pub phase_seconds: u64,
    /// Kills of the node that writes the index.
    pub kills: u32,
    /// How long a paused process is paused.
    pub stopped_seconds: u64,
    /// A block in every so many seconds, and scripts that it and the mempool touch.
    pub block_seconds: u64,
    pub touched: u32,
    pub timeout_seconds: u64,
}

/// The inputs of a measurement.
#[derive(Debug)]
pub struct Measurement<'a> {
    pub chain: &'a ChainFiles,
    /// The folder of its files.
    pub folder: &'a Path,
    /// The scripts of wallets.
    pub targets: &'a [Target],
    pub program: &'a Path,
    pub settings: Settings,
    pub failures: Vec<Fault>,
    /// Hosts of a store that runs already; its keyspace stays.
    pub hosts: Option<&'a str>,
    /// Arguments for every start of a node, and of a front end.
    pub node_arguments: &'a [String],
    pub front_arguments: &'a [String],
    pub work: &'a Path,
    pub command_line: Vec<String>,
    pub interrupted: &'a AtomicBool,
}

/// What the threads of a run saw.
#[derive(Debug, Default)]
struct Run {
    seen: Vec<Seen>,
    heard: Vec<Heard>,
    changes: Changed,
    phases: Phases,
    commits: Option<Commits>,
}

/// The changes with their phases, and the phases in which there was a reorganisation.
#[derive(Debug, Default)]
struct Changed {
    changes: Vec<(usize, Change)>,
    reorganised: Vec<usize>,
}

/// What was used at the beginning of each phase and at the end; of each phase, the processes that were struck and the
/// seconds of the recovery.
#[derive(Debug, Default)]
struct Phases {
    marks: Vec<Mark>,
    strikes: Vec<u32>,
    recovered: Vec<Option<f64>>,
}

/// What the threads of the load tell each other.
#[derive(Debug, Default)]
struct Signals {
    /// No further changes.
    is_quiet: AtomicBool,
    /// A reorganisation is due.
    reorganise: AtomicBool,
    failure: Mutex<Option<LabError>>,
}

/// The scripts of the chain with the most transactions. That of coinbases is left out, since every block touches it.
pub fn scripts(folder: &Path, count: u32) -> Result<Vec<Target>, LabError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut targets = Targets::sample(folder, count.saturating_add(1))?.scripts;
    targets.retain(|target| target.script != TRUE_SCRIPT);
    targets.truncate(count);
    Ok(targets)
}

impl Measurement<'_> {
    fn check(&self) -> Result<(), LabError> {
        let settings = &self.settings;
        let refuse = |text: &str| Err(LabError::Usage(text.to_owned()));
        let most = u32::try_from(BALANCED_CONNECTIONS_MAX).unwrap_or(u32::MAX).min(CLIENTS_MAX);
        if !(1..=most).contains(&settings.clients) {
            return Err(LabError::Usage(format!("--clients must lie between 1 and {most}")));
        }
        if settings.servers < 2 {
            return refuse("--front-ends and --whole-copies must be at least 2: clients need another one");
        }
        if settings.rounds == 0 || settings.phase_seconds == 0 || settings.block_seconds == 0 {
            return refuse("--rounds, --phase-seconds and --block-seconds must be at least 1");
        }
        let [writer_kill, full] = [Fault::WriterKill, Fault::StoreFull].map(|fault| self.failures.contains(&fault));
        if writer_kill && settings.kills == 0 {
            return refuse("--kills must be at least 1");
        }
        if full && self.hosts.is_some() {
            return refuse("only a store that the lab starts can have a full disk");
        }
        if settings.touched == 0 || self.targets.len() < usize::try_from(settings.touched).unwrap_or(0) * 2 {
            return refuse("--touched must be at least 1, and at most half the number of scripts");
        }
        if settings.is_whole { Ok(()) } else { must_serve(self.program) }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.settings.timeout_seconds)
    }

    pub fn run(mut self, print_progress: &mut dyn FnMut(&str)) -> Result<ClusterResults, LabError> {
        self.check()?;
        let place = Folder::new(&self.work.join("scale-cluster"))?;
        let left_out = self.leave_out(&place);
        let mut results = results::begin(&self);
        left_out.iter().for_each(|reason| print_progress(&format!("left out: {reason}")));
        results.left_out = left_out;
        self.run_in(&place, &mut results, print_progress)?;
        Ok(results)
    }

    /// Failures that this machine cannot have are left out. Returns which, and why.
    fn leave_out(&mut self, place: &Folder) -> Vec<String> {
        if !self.failures.contains(&Fault::StoreFull) {
            return Vec::new();
        }
        match SmallDisk::new(&place.0.join("disk"), 1) {
            Ok(_) => Vec::new(),
            Err(error) => {
                self.failures.retain(|fault| *fault != Fault::StoreFull);
                vec![format!("{}: {error}", Fault::StoreFull.name())]
            }
        }
    }

    fn run_in(
        &self,
        place: &Folder,
        results: &mut ClusterResults,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let settings = &self.settings;
        let nodes = if settings.is_whole { usize::from(settings.servers) } else { NODES };
        let home = |number: usize| Home {
            program: self.program,
            network: self.chain.network,
            data: place.0.join(format!("node-{number}")),
            output: place.0.join(format!("node-{number}.txt")),
            timeout: self.timeout(),
            more: self.node_arguments,
            interrupted: self.interrupted,
        };
        let homes: Vec<Home<'_>> = (0..nodes).map(home).collect();
        let ports = (0..nodes).map(|_| Ports::free()).collect::<Result<Vec<Ports>, LabError>>()?;
        let caller = |(home, ports): (&Home<'_>, &Ports)| Caller {
            cookie: home.cookie(),
            rpc_port: ports.rpc,
            timeout: self.timeout(),
            is_up: AtomicBool::new(false),
        };
        let callers: Vec<Caller> = homes.iter().zip(&ports).map(caller).collect();
        for (number, home) in homes.iter().enumerate() {
            print_progress(&format!("node {number} validates the chain and builds its index"));
            home.import(self.folder)?;
        }
        let mut arguments: Vec<Vec<String>> = ports
            .iter()
            .map(|ports| match settings.is_whole {
                true => behind_balancer().to_vec(),
                false => vec![format!("-feedbind=127.0.0.1:{}", ports.feed)],
            })
            .collect();
        let store = if settings.is_whole { None } else { Some(self.start_store(place, print_progress)?) };
        if let (Some(store), Some(home), Some(writer)) = (&store, homes.get(WRITER), arguments.get_mut(WRITER)) {
            print_progress("the index is written into the store");
            results.load_seconds = Some(load_index(home, &store.url)?);
            writer.push(format!("-index={}", store.url));
        }
        let mut world = World::new(&homes, &ports, &callers, arguments, self.timeout(), self.interrupted);
        world.store = store;
        self.measure(&mut world, place, results, print_progress)
    }

    fn start_store(&self, place: &Folder, print_progress: &mut dyn FnMut(&str)) -> Result<Store, LabError> {
        print_progress("starting the store");
        let recipe = Recipe {
            folder: &place.0.join("store"),
            nodes: self.settings.store_nodes,
            heap_mib: self.settings.heap_mib,
            timeout: self.timeout(),
            interrupted: self.interrupted,
        };
        // Another run may have left a keyspace in a store that runs already.
        let small_disk = self.failures.contains(&Fault::StoreFull).then_some(SMALL_DISK_MIB);
        Store::start(self.hosts, &recipe, small_disk, &format!("lydian_lab_{:.0}", system::unix_seconds()))
    }

    /// Everything runs for the first time: the right answers, the front ends, the load.
    fn measure(
        &self,
        world: &mut World<'_>,
        place: &Folder,
        results: &mut ClusterResults,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let height = self.chain.facts.height;
        for number in 0..world.homes.len() {
            world.start_node(number)?;
            let node = world.node(number)?;
            node.wait_for_port(height)?;
            node.wait_for_index(height)?;
            if let Some(caller) = world.callers.get(number) {
                caller.is_up.store(true, Ordering::Relaxed);
            }
        }
        print_progress("the first node answers every question once");
        let mut client = world.node(0)?.connect()?;
        let oracle = Oracle::new(&mut client, self.targets, height)?;
        let changes = Changes::new(world.callers, &oracle);
        let mut payer = Payer::new(Maker::on(facts::tip(self.chain)?, height));
        changes.prepare(&mut payer, usize::try_from(self.settings.touched).unwrap_or(0) * 16)?;
        let backends = if self.settings.is_whole {
            let backend = |ports: &Ports| Backend { port: ports.electrum, check: Check::Electrum };
            world.ports.iter().map(backend).collect()
        } else {
            print_progress("starting the front ends");
            self.start_fronts(world, place, &oracle, results)?
        };
        let balancer = Balancer::start(&backends, balancer::Settings::default())?;
        let run = self.load(world, &balancer, &changes, payer, client, print_progress)?;
        results.backends = balancer.figures();
        self.evaluate(run, world, &oracle, results);
        Ok(())
    }

    fn start_fronts(
        &self,
        world: &mut World<'_>,
        place: &Folder,
        oracle: &Oracle,
        results: &mut ClusterResults,
    ) -> Result<Vec<Backend>, LabError> {
        world.front_recipe = Some(FrontRecipe {
            program: self.program.to_owned(),
            chain: self.chain.network.name,
            folder: place.0.clone(),
            url: world.store.as_ref().map(|store| store.url.clone()).unwrap_or_default(),
            // The one that fails is followed first; it is not the one that writes the index.
            feeds: [FOLLOWED, WRITER]
                .iter()
                .filter_map(|node| world.ports.get(*node))
                .map(|ports| ports.feed)
                .collect(),
            more: self.front_arguments.to_vec(),
            timeout: self.timeout(),
        });
        for _ in 0..self.settings.servers {
            let number = world.add_front()?;
            results.first_answer_seconds.push(world.start_front(number, oracle)?);
        }
        results.costs.front_bytes = Estimate::of(&world.rss_bytes(world::Role::Front));
        let bytes = world.connection_bytes(0, oracle, MEASURED_CONNECTIONS)?;
        results.costs.connection_bytes = Some(Estimate::exactly(bytes.max(1.0)));
        Ok(world.fronts.iter().map(|front| Backend { port: front.port, check: Check::Http(front.health) }).collect())
    }

    /// Wallets, changes and failures at the same time.
    fn load(
        &self,
        world: &mut World<'_>,
        balancer: &Balancer,
        changes: &Changes<'_>,
        payer: Payer,
        client: Client,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<Run, LabError> {
        let place = Place {
            name: "balancer".to_owned(),
            port: balancer.address().port(),
            timeout: TRY,
            protocol_max: PROTOCOL_MAX.to_owned(),
        };
        let market = Market {
            oracle: changes.oracle,
            place,
            pause: Duration::from_millis(self.settings.pause_ms),
            phase: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        let signals = Signals::default();
        let hashes: Vec<&str> = changes.oracle.targets.iter().map(|target| target.scripthash.as_str()).collect();
        let watched = self.server_ports(world);
        let store = world.store.as_ref().map(|store| commits::parts_of(&store.url)).transpose()?;
        thread::scope(|scope| {
            let stack = || thread::Builder::new().stack_size(STACK_BYTES);
            let failed = |error: std::io::Error| LabError::program("thread", error);
            let (market, signals, hashes) = (&market, &signals, &hashes);
            let work = || {
                let mut wallets = Vec::new();
                for number in 0..self.settings.clients {
                    wallets.push(stack().spawn_scoped(scope, move || wallet::run(market, number)).map_err(failed)?);
                }
                let mut watches = Vec::new();
                for port in watched {
                    let listen = move || watch::listen(port, hashes, &market.is_over);
                    watches.push(stack().spawn_scoped(scope, listen).map_err(failed)?);
                }
                let commits = store
                    .map(|(hosts, keyspace)| scope.spawn(move || commits::watch(&hosts, &keyspace, &market.is_over)));
                let driver = scope.spawn(move || self.change(changes, payer, client, &market.phase, signals));
                let phases = self.phases(world, changes, market, signals, print_progress);
                signals.is_quiet.store(true, Ordering::Relaxed);
                let changed = driver.join().map_err(|_| LabError::program("changes", "their thread ended"))?;
                let phases = phases.and_then(|phases| world.wait_for_tip().map(|()| phases));
                if phases.is_ok() {
                    thread::sleep(SETTLES);
                }
                market.is_over.store(true, Ordering::Relaxed);
                let phases = phases?;
                if let Some(error) = lock(&signals.failure).take() {
                    return Err(error);
                }
                let lost = || LabError::program("client", "its thread ended");
                let seen = wallets.into_iter().map(|one| one.join().map_err(|_| lost())).collect::<Result<_, _>>()?;
                let heard = watches.into_iter().map(|one| one.join().map_err(|_| lost())).collect::<Result<_, _>>()?;
                let commits = commits.map(|one| one.join().map_err(|_| lost())).transpose()?;
                Ok(Run { seen, heard, changes: changed, phases, commits })
            };
            let run = work();
            // Whatever failed: no thread goes on.
            signals.is_quiet.store(true, Ordering::Relaxed);
            market.is_over.store(true, Ordering::Relaxed);
            run
        })
    }

    fn server_ports(&self, world: &World<'_>) -> Vec<u16> {
        match self.settings.is_whole {
            true => world.ports.iter().map(|ports| ports.electrum).collect(),
            false => world.fronts.iter().map(|front| front.port).collect(),
        }
    }

    /// Changes until it is quiet. An error is left in `signals`.
    fn change(
        &self,
        changes: &Changes<'_>,
        mut payer: Payer,
        mut client: Client,
        phase: &AtomicUsize,
        signals: &Signals,
    ) -> Changed {
        let period = Duration::from_secs(self.settings.block_seconds);
        let touched = usize::try_from(self.settings.touched).unwrap_or(1);
        let mut all = Changed::default();
        let sleep_until = |start: Instant, length: Duration| {
            while !signals.is_quiet.load(Ordering::Relaxed) && start.elapsed() < length {
                thread::sleep(STEP);
            }
        };
        while !signals.is_quiet.load(Ordering::Relaxed) {
            let (start, number) = (system::now(), phase.load(Ordering::Relaxed));
            let is_due = signals.reorganise.load(Ordering::Relaxed);
            let round = match is_due {
                true => changes.reorganise(&mut payer, &mut client, touched, &|| {
                    sleep_until(system::now(), period / PAUSES);
                }),
                false => changes.round(&mut payer, &mut client, touched, &|| sleep_until(start, period / 2)),
            };
            match round {
                Ok(round) => all.changes.extend(round.into_iter().map(|change| (number, change))),
                Err(error) => {
                    *lock(&signals.failure) = Some(error);
                    break;
                }
            }
            if is_due {
                all.reorganised.push(number);
                signals.reorganise.store(false, Ordering::Relaxed);
            }
            sleep_until(start, period);
        }
        all
    }

    /// One phase after another.
    fn phases(
        &self,
        world: &mut World<'_>,
        changes: &Changes<'_>,
        market: &Market<'_>,
        signals: &Signals,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<Phases, LabError> {
        let length = Duration::from_secs(self.settings.phase_seconds);
        // At least so long, and until a reorganisation that was due is over.
        let wait = |length: Duration| {
            let start = system::now();
            while start.elapsed() < length || signals.reorganise.load(Ordering::Relaxed) {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Err(LabError::Usage("interrupted".to_owned()));
                }
                if let Some(error) = lock(&signals.failure).take() {
                    return Err(error);
                }
                if start.elapsed() > length + self.timeout() {
                    return Err(LabError::program("changes", "the chain was not reorganised in time"));
                }
                thread::sleep(STEP);
            }
            Ok(())
        };
        let mut means = Means {
            changes,
            oracle: changes.oracle,
            random: Random::new(1, "scale cluster kills"),
            kills: self.settings.kills,
            kill_within: Duration::from_secs(self.settings.block_seconds),
        };
        let mut phases = Phases { marks: vec![Mark::now(world)], ..Phases::default() };
        for (number, (name, fault)) in self.plan().into_iter().enumerate() {
            print_progress(&name);
            market.phase.store(number, Ordering::Relaxed);
            let (mut strikes, mut recovered) = (0, None);
            if let Some(fault) = fault {
                signals.reorganise.store(fault.is_whole(), Ordering::Relaxed);
                strikes = fault.inject(world, &mut means)?;
                if !fault.is_whole() {
                    signals.reorganise.store(true, Ordering::Relaxed);
                }
                wait(fault.lasts(Duration::from_secs(self.settings.stopped_seconds)).unwrap_or(length))?;
                recovered = Some(fault.undo(world, &means)?);
            } else {
                wait(length)?;
            }
            phases.strikes.push(strikes);
            phases.recovered.push(recovered);
            phases.marks.push(Mark::now(world));
        }
        Ok(phases)
    }

    /// Names and failures of the phases.
    fn plan(&self) -> Vec<(String, Option<Fault>)> {
        let quiet = (1..=self.settings.rounds).map(|round| (format!("no failure, round {round}"), None));
        quiet.chain(self.failures.iter().map(|fault| (fault.name().to_owned(), Some(*fault)))).collect()
    }

    fn evaluate(&self, mut run: Run, world: &World<'_>, oracle: &Oracle, results: &mut ClusterResults) {
        run.seen.iter_mut().for_each(|seen| seen.finish(oracle));
        let plan = self.plan();
        let is_quiet: Vec<bool> = plan.iter().map(|(_, fault)| fault.is_none()).collect();
        results.kinds = results::by_kind(&run.seen, &is_quiet);
        let announced = |(number, heard): (usize, Heard)| match self.settings.is_whole {
            true => Announced { heard, block_node: number, pool_node: number },
            false => Announced { heard, block_node: WRITER, pool_node: FOLLOWED },
        };
        let announced: Vec<Announced> = run.heard.into_iter().enumerate().map(announced).collect();
        results.notified = results::notified(&run.changes.changes, &announced, &is_quiet, SETTLES);
        results.commits = run.commits;
        for (number, (name, fault)) in plan.into_iter().enumerate() {
            let marks = &run.phases.marks;
            let (Some(before), Some(after)) = (marks.get(number), marks.get(number + 1)) else { continue };
            let mut phase = PhaseResults::new(name, number, &run.seen, before, after);
            phase.may_fail = fault.is_some_and(Fault::may_fail);
            phase.strikes = run.phases.strikes.get(number).copied().unwrap_or(0);
            phase.recovered_seconds = run.phases.recovered.get(number).copied().flatten();
            let reorganised = run.changes.reorganised.iter().filter(|phase| **phase == number).count();
            phase.reorganisations = u32::try_from(reorganised).unwrap_or(u32::MAX);
            results.phases.push(phase);
        }
        results.costs = self.costs(results, &is_quiet);
        results.costs.store_bytes = Estimate::of(&world.rss_bytes(world::Role::Store));
        results.is_right = results.phases.iter().all(PhaseResults::is_right)
            && results.commits.as_ref().is_none_or(|commits| commits.lost == 0 && commits.seen > 0)
            && results.notified.missed == 0;
    }

    /// The costs of a request in the phases without a failure.
    fn costs(&self, results: &ClusterResults, is_quiet: &[bool]) -> Costs {
        let quiet = || results.phases.iter().zip(is_quiet).filter(|(_, quiet)| **quiet).map(|(phase, _)| phase);
        let of = |cost: &dyn Fn(&PhaseResults) -> Option<f64>| {
            let values: Vec<f64> = quiet().filter_map(cost).filter(|value| *value > 0.0).collect();
            Estimate::of(&values)
        };
        let request = |role| of(&|phase: &PhaseResults| phase.cpu_us_per_request(role));
        match self.settings.is_whole {
            true => Costs { whole_us: request(world::Role::Node), ..results.costs },
            false => Costs {
                request_us: request(world::Role::Front),
                reads: of(&PhaseResults::reads_per_request),
                read_us: of(&PhaseResults::store_us_per_read),
                ..results.costs
            },
        }
    }
}
