//! The command line of `lydian-lab sync`: servers and connections, besides the part shared with `reindex` (`runs.rs`).
//!
//! Input: arguments. Output: the table. The servers are started before the first run, one of each kind in use, and all
//! contenders download the chain from the same one unless specified otherwise. With `--peer` nothing is started: the
//! chain comes from a peer that runs already, and its bytes pass through the lab, which counts them.

use crate::cli::runs::{Bench, Plan, RunArgs, contenders, pairs, report};
use crate::cli::{Report, print_progress};
use lydian_chains::chain_files::{Network, network, network_names};
use lydian_lab::LabError;
use lydian_lab::lab_toml::{base_kind, own_blocks};
use lydian_lab::runs::adapters::{Absent, adapter, kinds};
use lydian_lab::runs::{Contender, Counter, Servers, Source};
use lydian_lab::sync::external::External;
use lydian_lab::sync::server::Recipe;
use lydian_lab::sync::{Proxy, Server, Shape};
use lydian_report::articles;
use lydian_report::results::{Cache, Experiment, Results};
use std::path::PathBuf;

/// The most peers of one contender.
const PEERS_MAX: usize = 64;
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    pub(crate) runs: RunArgs,
    /// Node that serves the chain to all others: bitcoind, lydian or knots.
    #[arg(long, default_value = "bitcoind")]
    server: String,
    /// Path of a server's program: KIND=PATH.
    #[arg(long)]
    server_path: Vec<String>,
    /// Server of a single node, instead of --server: NAME=KIND.
    #[arg(long)]
    node_server: Vec<String>,
    /// Quality of the connections to the server, one peer for each: good, stall (after 256 KiB; stall@BYTES), 1MBps,
    /// 500kBps, 200ms (round trip) [default: one direct connection].
    #[arg(long, value_delimiter = ',')]
    shape: Vec<Shape>,
    /// The same for one node: NAME=SHAPE,SHAPE,..., as in lydian:four=stall,1MBps,200ms,good.
    #[arg(long)]
    node_shape: Vec<String>,
    /// Number of peers; without --shape all are good.
    #[arg(long)]
    peers: Option<usize>,
    /// External peer from which the nodes download the chain: HOST:PORT. With --network and --stop-height instead of
    /// --chain or --preset.
    #[arg(long, value_name = "HOST:PORT", requires_all = ["network", "stop_height"])]
    #[arg(conflicts_with_all = ["chain", "preset", "server_path", "node_server"])]
    peer: Option<String>,
    /// Network of --peer: main, test, testnet4, signet or regtest.
    #[arg(long, requires = "peer")]
    network: Option<String>,
    /// Last height of --peer's chain that is downloaded.
    #[arg(long, value_name = "N", requires = "peer")]
    stop_height: Option<u32>,
    /// Older results file: the table of --peer has the change since then.
    #[arg(long, value_name = "FILE", requires = "peer")]
    since: Option<PathBuf>,
}

pub(crate) fn sync(args: &SyncArgs) -> Result<Report, LabError> {
    let mut contenders = contenders(&args.runs)?;
    for contender in contenders.iter_mut().filter(|contender| own_blocks(&contender.name).is_some()) {
        contender.adapter = Box::new(Absent::new("it accepts no chain but its own; `reindex` measures it".to_owned()));
    }
    let shapes = shapes(args, &contenders)?;
    if let (Some(peer), Some(name), Some(height)) = (&args.peer, &args.network, args.stop_height) {
        return sync_external(args, contenders, &shapes, (peer, name, height));
    }
    let bench = Bench::new(&args.runs)?;
    let kinds = server_kinds(args, &contenders, bench.chain.network)?;
    let mut servers: Vec<Server> = Vec::new();
    let mut proxies = Vec::new();
    for ((contender, shapes), kind) in contenders.iter_mut().zip(&shapes).zip(&kinds) {
        if !servers.iter().any(|server| server.facts().name == *kind) {
            let Some(server) = start(args, &bench, kind, servers.len())? else {
                return Ok(Report { text: String::new(), exit_code: EXIT_INTERRUPTED });
            };
            servers.push(server);
        }
        let server = servers.iter().find(|server| server.facts().name == *kind);
        if let Some(server) = server {
            contender.source = Some(source(kind, server, shapes, &mut proxies)?);
        }
    }
    let beside = Servers {
        facts: servers.iter().map(|server| server.facts().clone()).collect(),
        pids: servers.iter().map(Server::pid).collect(),
    };
    let plan = Plan {
        experiment: Experiment::Sync,
        contenders: &contenders,
        servers: beside,
        caches: &[Cache::Warm],
        may_drop_caches: false,
        beyond: &[],
        own: &[],
    };
    bench.compare(&args.runs, plan)
}

/// From a peer that runs already.
fn sync_external(
    args: &SyncArgs,
    mut contenders: Vec<Contender>,
    shapes: &[Vec<Shape>],
    (peer, name, height): (&str, &str, u32),
) -> Result<Report, LabError> {
    let network = network(name)
        .ok_or_else(|| LabError::Usage(format!("--network {name} is none of {}", network_names().join(", "))))?;
    let since = args.since.as_deref().map(Results::read).transpose()?;
    print_progress(&format!("reading the headers of {peer}"));
    let external = External::meet(network, peer, height)?;
    let mut proxies = Vec::new();
    for (contender, shapes) in contenders.iter_mut().zip(shapes) {
        let wanted = contender.adapter.wants_service(network);
        if let Some((_, reason)) = wanted.filter(|(service, _)| !external.services.contains(*service)) {
            contender.adapter = Box::new(Absent::new(reason.to_owned()));
        }
        contender.source = Some(external_source(peer, &external, shapes, &mut proxies)?);
    }
    let bench = Bench::of_peer(&args.runs, external.chain(network, height))?;
    let plan = Plan {
        experiment: Experiment::Sync,
        contenders: &contenders,
        servers: Servers::default(),
        caches: &[Cache::Warm],
        may_drop_caches: false,
        beyond: &external.hashes,
        own: &[],
    };
    let (results, interrupted) = bench.results(&args.runs, plan)?;
    let mut report = report(&results, interrupted);
    report.text = articles::to_markdown(&results, since.as_ref()) + "\n" + &report.text;
    Ok(report)
}

/// Through the lab, whatever the shapes, so that the bytes are counted.
fn external_source(
    peer: &str,
    external: &External,
    shapes: &[Shape],
    proxies: &mut Vec<Proxy>,
) -> Result<Source, LabError> {
    let shapes = if shapes.is_empty() { &[Shape::Good] } else { shapes };
    let mut peers = Vec::new();
    let mut traffic = Vec::new();
    for &shape in shapes {
        let proxy = Proxy::start(external.address, shape)?;
        peers.push(proxy.address());
        traffic.push(proxy.traffic());
        proxies.push(proxy);
    }
    let names: Vec<String> = shapes.iter().map(Shape::to_string).collect();
    let name = if shapes == [Shape::Good] {
        peer.to_owned()
    } else {
        format!("{peer} by {} ({})", peers.len(), names.join(", "))
    };
    Ok(Source { name, peers, counter: Some(Counter::Proxies(traffic)) })
}

/// The shapes of each contender's connections.
fn shapes(args: &SyncArgs, contenders: &[Contender]) -> Result<Vec<Vec<Shape>>, LabError> {
    let own = pairs("--node-shape", &args.node_shape, &args.runs.nodes)?;
    let count = args.peers.unwrap_or(args.shape.len());
    if count > PEERS_MAX || args.peers == Some(0) || (!args.shape.is_empty() && count != args.shape.len()) {
        let text = format!("--peers is between 1 and {PEERS_MAX}, and as many as --shape names");
        return Err(LabError::Usage(text));
    }
    let all = if args.shape.is_empty() { vec![Shape::Good; count] } else { args.shape.clone() };
    let of = |contender: &Contender| match own.iter().rfind(|(name, _)| *name == contender.name) {
        None => Ok(all.clone()),
        Some((name, list)) => {
            let parsed = list.split(',').map(str::parse).collect::<Result<Vec<Shape>, String>>();
            parsed.map_err(|error| LabError::Usage(format!("--node-shape {name}: {error}")))
        }
    };
    contenders.iter().map(of).collect()
}

/// The name of each contender's server. A node that wants a service which only its own kind offers gets such a server,
/// unless it was given one.
fn server_kinds(args: &SyncArgs, contenders: &[Contender], network: &Network) -> Result<Vec<String>, LabError> {
    let own = pairs("--node-server", &args.node_server, &args.runs.nodes)?;
    let of = |contender: &Contender| {
        let found = own.iter().rfind(|(name, _)| *name == contender.name);
        let own_kind = contender.adapter.wants_service(network).map(|_| base_kind(&contender.name));
        found.map_or_else(|| own_kind.unwrap_or(&args.server).to_owned(), |(_, kind)| kind.clone())
    };
    Ok(contenders.iter().map(of).collect())
}

fn start(args: &SyncArgs, bench: &Bench, kind: &str, number: usize) -> Result<Option<Server>, LabError> {
    let kinds: Vec<String> = kinds().into_iter().map(str::to_owned).collect();
    let paths = pairs("--server-path", &args.server_path, &kinds)?;
    let path = paths.iter().rfind(|(name, _)| name == kind).map(|(_, path)| PathBuf::from(path));
    let adapter = adapter(kind, path.as_deref())?;
    print_progress(&format!("the server {kind} validates the chain"));
    let folder = bench.work.join(format!("server-{number}"));
    let recipe = Recipe {
        name: kind,
        adapter: adapter.as_ref(),
        chain: &bench.chain,
        settings: &bench.settings,
        folder: &folder,
        interrupted: &bench.interrupted,
    };
    Server::start(&recipe)
}

/// A direct connection to the server if there are no shapes.
fn source(kind: &str, server: &Server, shapes: &[Shape], proxies: &mut Vec<Proxy>) -> Result<Source, LabError> {
    let (address, counter) = (server.address(), server.counter().map(Counter::Rpc));
    if shapes.is_empty() {
        return Ok(Source { name: kind.to_owned(), peers: vec![address], counter });
    }
    let mut peers = Vec::new();
    for &shape in shapes {
        let proxy = Proxy::start(address.into(), shape)?;
        peers.push(proxy.address());
        proxies.push(proxy);
    }
    let names: Vec<String> = shapes.iter().map(Shape::to_string).collect();
    Ok(Source { name: format!("{kind} by {} ({})", peers.len(), names.join(", ")), peers, counter })
}
