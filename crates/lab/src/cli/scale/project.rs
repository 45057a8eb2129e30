//! The command line of `lydian-lab scale project`.
//!
//! Input: the wallets, costs from results files or options. Output: the projection as Markdown or JSON, to stdout. An
//! option wins over a results file. Must never: start a process.

use crate::cli::Report;
use lydian_disk::{RealDisk, read_whole};
use lydian_lab::LabError;
use lydian_lab::scale::project::{Costs, Estimate, Machines, Wallets, project as project_costs};
use lydian_report::limits::RESULTS_BYTES_MAX;
use serde::Deserialize;
use std::path::{Path, PathBuf};

const MIB: f64 = 1_048_576.0;
const KIB: f64 = 1_024.0;
const GB: f64 = 1e9;

#[derive(Debug, clap::Args)]
pub(super) struct ProjectArgs {
    /// Number of wallets.
    #[arg(long)]
    wallets: f64,
    /// Sessions of a wallet in a day.
    #[arg(long, default_value_t = 2.0)]
    sessions_per_day: f64,
    /// Requests of a session.
    #[arg(long, default_value_t = 70.0)]
    requests: f64,
    /// Seconds for which a session is connected.
    #[arg(long, default_value_t = 576.0)]
    session_seconds: f64,
    /// Load at the busiest time, as a multiple of the mean.
    #[arg(long, default_value_t = 3.0)]
    peak: f64,
    /// Results of `lydian-lab scale cluster --json`; may be given twice, for front ends and for whole copies.
    #[arg(long, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// CPU time of a front end for a request, in microseconds.
    #[arg(long, value_name = "X|LOW..HIGH")]
    cpu_request_us: Option<String>,
    /// Reads of the store for a request.
    #[arg(long, value_name = "X|LOW..HIGH")]
    reads_per_request: Option<String>,
    /// CPU time of all nodes of the store for a read, in microseconds.
    #[arg(long, value_name = "X|LOW..HIGH")]
    cpu_read_us: Option<String>,
    /// CPU time of a node with its own index for a request, in microseconds.
    #[arg(long, value_name = "X|LOW..HIGH")]
    cpu_whole_us: Option<String>,
    /// Memory of a front end without connections, in MiB.
    #[arg(long, value_name = "X|LOW..HIGH")]
    front_mib: Option<String>,
    /// Memory of a connection, in KiB.
    #[arg(long, value_name = "X|LOW..HIGH")]
    connection_kib: Option<String>,
    /// Memory of a node of the store, in MiB.
    #[arg(long, value_name = "X|LOW..HIGH")]
    store_mib: Option<String>,
    /// Cores of each machine.
    #[arg(long, default_value_t = 8.0)]
    cores: f64,
    /// Share of a core that may be busy at the peak.
    #[arg(long, default_value_t = 0.5)]
    busy: f64,
    /// Size of one copy of the index in GB.
    #[arg(long, default_value = "43..51", value_name = "X|LOW..HIGH")]
    copy_gb: String,
    /// Copies of each value in the store.
    #[arg(long, default_value_t = 3.0)]
    replication: f64,
    /// Disk of each machine of the store in GB.
    #[arg(long, default_value_t = 1_000.0)]
    disk_gb: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is used of a results file.
#[derive(Debug, Deserialize)]
struct Measured {
    costs: Costs,
}

pub(super) fn project(args: &ProjectArgs) -> Result<Report, LabError> {
    let mut costs = Costs::default();
    for path in &args.results {
        costs = costs.or(&read(path)?);
    }
    let given = |text: &Option<String>, unit: f64| -> Result<Option<Estimate>, LabError> {
        text.as_deref().map(|text| Estimate::parse(text).map(|estimate| estimate.times(unit))).transpose()
    };
    let options = Costs {
        request_us: given(&args.cpu_request_us, 1.0)?,
        reads: given(&args.reads_per_request, 1.0)?,
        read_us: given(&args.cpu_read_us, 1.0)?,
        whole_us: given(&args.cpu_whole_us, 1.0)?,
        front_bytes: given(&args.front_mib, MIB)?,
        connection_bytes: given(&args.connection_kib, KIB)?,
        store_bytes: given(&args.store_mib, MIB)?,
    };
    let wallets = Wallets {
        wallets: args.wallets,
        sessions_per_day: args.sessions_per_day,
        requests: args.requests,
        session_seconds: args.session_seconds,
        peak: args.peak,
    };
    let machines = Machines {
        cores: args.cores,
        busy: args.busy,
        copy_bytes: Estimate::parse(&args.copy_gb)?.times(GB),
        replication: args.replication,
        disk_bytes: args.disk_gb * GB,
    };
    let projection = project_costs(wallets, options.or(&costs), machines)?;
    Ok(Report::from(if args.json { projection.to_json() } else { projection.to_text() }))
}

fn read(path: &Path) -> Result<Costs, LabError> {
    let bytes = read_whole(&RealDisk, path, RESULTS_BYTES_MAX)?;
    let parsed = serde_json::from_slice::<Measured>(&bytes);
    let wrong = |error| LabError::Usage(format!("{}: no results of `scale cluster`: {error}", path.display()));
    parsed.map(|measured| measured.costs).map_err(wrong)
}
