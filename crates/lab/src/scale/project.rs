//! `lydian-lab scale project`: what a number of wallets needs, from measured costs.
//!
//! Input: the wallets and their habits, costs of a request with bounds, the machines to use. Output: [`Projection`]:
//! requests and connections at the peak, cores, machines and memory, each with its formula and its bounds. Invariants:
//! pure; every bound of a figure is the figure at the bounds of what it follows from; a figure without its costs is
//! left out and named. It is a projection and never a measurement.

use crate::error::LabError;
use lydian_report::results::rounded;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

const DAY_SECONDS: f64 = 86_400.0;
const MICROSECONDS: f64 = 1e6;
const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;
/// Compaction of a node of the store needs as much space again as its data.
const DISK_PER_DATA: f64 = 2.0;

/// The wallets and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wallets {
    pub wallets: f64,
    pub sessions_per_day: f64,
    /// Requests of a session.
    pub requests: f64,
    /// How long a session is connected.
    pub session_seconds: f64,
    /// Load at the busiest time, as a multiple of the mean.
    pub peak: f64,
}

/// A figure with bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub low: f64,
    pub value: f64,
    pub high: f64,
}

/// What was measured. `None` leaves out what follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// CPU time of a front end for a request, in microseconds.
    pub request_us: Option<Estimate>,
    /// Reads of the store for a request.
    pub reads: Option<Estimate>,
    /// CPU time of all nodes of the store for a read, in microseconds.
    pub read_us: Option<Estimate>,
    /// CPU time of a node with its own index for a request, in microseconds.
    pub whole_us: Option<Estimate>,
    /// Memory of a front end without connections.
    pub front_bytes: Option<Estimate>,
    /// Memory of a connection.
    pub connection_bytes: Option<Estimate>,
    /// Memory of a node of the store.
    pub store_bytes: Option<Estimate>,
}

/// What is assumed of the machines, and how full they may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machines {
    /// Cores of each.
    pub cores: f64,
    /// The share of a core that may be busy at the peak.
    pub busy: f64,
    /// Bytes of one copy of the index.
    pub copy_bytes: Estimate,
    /// Copies in the store.
    pub replication: f64,
    /// Disk of each machine of the store.
    pub disk_bytes: f64,
}

/// A figure of the projection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in the JSON.
    pub name: &'static str,
    /// Its name in the table.
    pub title: &'static str,
    pub unit: Unit,
    pub estimate: Estimate,
    pub formula: &'static str,
}

/// How a figure is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    PerSecond,
    Count,
    Cores,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Projection {
    pub wallets: Wallets,
    pub costs: Costs,
    pub machines: Machines,
    pub figures: Vec<Figure>,
    /// Figures that lack a cost, and which one.
    pub left_out: Vec<(&'static str, &'static str)>,
    pub not_included: &'static [&'static str],
}

/// What no figure contains.
pub const NOT_INCLUDED: &[&str] = &[
    "The node that writes the index, its feed, the balancer and the network between the machines.",
    "TLS, which costs CPU time for each connection, if front ends and not a balancer end it.",
    "Writes of the store: about 4 MB for each block, with the compaction of that.",
    "A mix of requests other than the measured one, and caches that hold less of a larger chain.",
    "Other processors: the costs are those of the machine that was measured.",
];

impl Estimate {
    /// Without bounds.
    pub fn exactly(value: f64) -> Estimate {
        Estimate { low: value, value, high: value }
    }

    /// Median, minimum and maximum of measured values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Estimate { low: *sorted.first()?, value: *sorted.get(sorted.len() / 2)?, high: *sorted.last()? })
    }

    /// `X` or `LOW..HIGH`, whose value is the middle.
    pub fn parse(text: &str) -> Result<Estimate, LabError> {
        let wrong = || LabError::Usage(format!("`{text}` is neither a number above 0 nor LOW..HIGH"));
        let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let (low, high) = (number(low).ok_or_else(wrong)?, number(high).ok_or_else(wrong)?);
        if low > high {
            return Err(wrong());
        }
        Ok(Estimate { low, value: f64::midpoint(low, high), high })
    }

    /// In another unit.
    pub fn times(self, factor: f64) -> Estimate {
        self.map(|value| value * factor)
    }

    /// For a function that rises with its value.
    fn map(self, rises: impl Fn(f64) -> f64) -> Estimate {
        Estimate { low: rises(self.low), value: rises(self.value), high: rises(self.high) }
    }

    /// For a function that rises with both values.
    fn with(self, other: Estimate, rises: impl Fn(f64, f64) -> f64) -> Estimate {
        Estimate {
            low: rises(self.low, other.low),
            value: rises(self.value, other.value),
            high: rises(self.high, other.high),
        }
    }

    fn rounded(self) -> Estimate {
        self.map(rounded)
    }
}

impl Costs {
    /// These costs, and of those that are missing the other ones.
    pub fn or(&self, other: &Costs) -> Costs {
        Costs {
            request_us: self.request_us.or(other.request_us),
            reads: self.reads.or(other.reads),
            read_us: self.read_us.or(other.read_us),
            whole_us: self.whole_us.or(other.whole_us),
            front_bytes: self.front_bytes.or(other.front_bytes),
            connection_bytes: self.connection_bytes.or(other.connection_bytes),
            store_bytes: self.store_bytes.or(other.store_bytes),
        }
    }
}

impl Wallets {
    /// Requests at the peak, in a second.
    pub fn requests_per_second(&self) -> f64 {
        self.sessions_at_peak() * self.requests / DAY_SECONDS
    }

    /// Connections that are open at the peak.
    pub fn connections(&self) -> f64 {
        self.sessions_at_peak() * self.session_seconds / DAY_SECONDS
    }

    /// Sessions that a day at the peak would have.
    fn sessions_at_peak(&self) -> f64 {
        self.wallets * self.sessions_per_day * self.peak
    }

    fn check(&self) -> Result<(), LabError> {
        let all = [self.wallets, self.sessions_per_day, self.requests, self.session_seconds, self.peak];
        match all.iter().all(|value| value.is_finite() && *value > 0.0) {
            true => Ok(()),
            false => Err(LabError::Usage(
                "--wallets, --sessions-per-day, --requests, --session-seconds and --peak must be above 0".to_owned(),
            )),
        }
    }
}

impl Machines {
    fn check(&self) -> Result<(), LabError> {
        let is_good = self.cores >= 1.0
            && self.busy > 0.0
            && self.busy <= 1.0
            && self.replication >= 1.0
            && self.disk_bytes.is_finite()
            && self.disk_bytes > 0.0;
        let text = "--cores and --replication must be at least 1, --busy above 0 and at most 1, --disk-gb above 0";
        if is_good { Ok(()) } else { Err(LabError::Usage(text.to_owned())) }
    }

    /// Machines with enough cores, and one more that may fail.
    fn with_spare(&self, cores: Estimate) -> Estimate {
        cores.map(|cores| (cores / self.cores).ceil() + 1.0)
    }
}

/// Projects.
pub fn project(wallets: Wallets, costs: Costs, machines: Machines) -> Result<Projection, LabError> {
    wallets.check()?;
    machines.check()?;
    let mut projection =
        Projection { wallets, costs, machines, figures: Vec::new(), left_out: Vec::new(), not_included: NOT_INCLUDED };
    let (requests, connections) = (wallets.requests_per_second(), wallets.connections());
    projection.add("requests_per_second", Unit::PerSecond, Estimate::exactly(requests));
    projection.add("connections", Unit::Count, Estimate::exactly(connections));
    let cores = |per_second: f64, us: f64| per_second * us / MICROSECONDS / machines.busy;
    let front = costs.request_us.map(|cost| cost.map(|us| cores(requests, us)));
    projection.maybe("front_cores", Unit::Cores, front, "--cpu-request-us");
    let fronts = front.map(|cores| machines.with_spare(cores));
    projection.maybe("front_ends", Unit::Count, fronts, "--cpu-request-us");
    let memory = fronts.zip(costs.front_bytes).zip(costs.connection_bytes).map(|((fronts, front), connection)| {
        let idle = fronts.with(front, |fronts, bytes| fronts * bytes);
        idle.with(connection, |idle, bytes| idle + connections * bytes)
    });
    projection.maybe("front_bytes", Unit::Bytes, memory, "--front-mib and --connection-kib");
    let reads = costs.reads.map(|reads| reads.map(|reads| requests * reads));
    projection.maybe("reads_per_second", Unit::PerSecond, reads, "--reads-per-request");
    let store = reads.zip(costs.read_us).map(|(reads, cost)| reads.with(cost, cores));
    projection.maybe("store_cores", Unit::Cores, store, "--reads-per-request and --cpu-read-us");
    let data = machines.copy_bytes.map(|bytes| bytes * machines.replication);
    projection.add("store_data_bytes", Unit::Bytes, data);
    let for_data = data.map(|bytes| (bytes * DISK_PER_DATA / machines.disk_bytes).ceil().max(machines.replication));
    let nodes = store.map(|cores| machines.with_spare(cores).with(for_data, f64::max));
    projection.maybe("store_machines", Unit::Count, nodes, "--reads-per-request and --cpu-read-us");
    let memory = nodes.zip(costs.store_bytes).map(|(nodes, bytes)| nodes.with(bytes, |nodes, bytes| nodes * bytes));
    projection.maybe("store_bytes", Unit::Bytes, memory, "--store-mib");
    let whole = costs.whole_us.map(|cost| cost.map(|us| cores(requests, us)));
    projection.maybe("whole_cores", Unit::Cores, whole, "--cpu-whole-us");
    let copies = whole.map(|cores| machines.with_spare(cores));
    projection.maybe("whole_copies", Unit::Count, copies, "--cpu-whole-us");
    Ok(projection)
}

/// Names, titles and formulas of the figures, in their order.
const FIGURES: &[(&str, &str, &str)] = &[
    ("requests_per_second", "requests at the peak", "wallets x sessions a day x requests / 86,400 s x peak"),
    ("connections", "connections at the peak", "wallets x sessions a day x seconds of a session / 86,400 s x peak"),
    ("front_cores", "cores of front ends", "requests/s x CPU time of a request / busy share"),
    ("front_ends", "front ends", "cores / cores of a machine, rounded up, and one that may fail"),
    ("front_bytes", "memory of front ends", "front ends x memory of one + connections x memory of one"),
    ("reads_per_second", "reads of the store", "requests/s x reads of a request"),
    ("store_cores", "cores of the store", "reads/s x CPU time of a read / busy share"),
    ("store_data_bytes", "data in the store", "one copy of the index x copies"),
    (
        "store_machines",
        "machines of the store",
        "the most of: cores / cores of a machine, rounded up, and one that may fail; 2 x data / disk; copies",
    ),
    ("store_bytes", "memory of the store", "machines x memory of a node of the store"),
    ("whole_cores", "cores of whole copies instead", "requests/s x CPU time of a request of a whole node / busy share"),
    ("whole_copies", "whole copies instead", "cores / cores of a machine, rounded up, and one that may fail"),
];

impl Projection {
    fn add(&mut self, name: &'static str, unit: Unit, estimate: Estimate) {
        let found = FIGURES.iter().find(|(known, ..)| *known == name);
        let (title, formula) = found.map_or((name, ""), |(_, title, formula)| (*title, *formula));
        self.figures.push(Figure { name, title, unit, estimate: estimate.rounded(), formula });
    }

    fn maybe(&mut self, name: &'static str, unit: Unit, estimate: Option<Estimate>, needs: &'static str) {
        match estimate {
            Some(estimate) => self.add(name, unit, estimate),
            None => self.left_out.push((name, needs)),
        }
    }

    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As Markdown.
    pub fn to_text(&self) -> String {
        let wallets = &self.wallets;
        let mut text = format!(
            "# A projection for {} wallets, never a measurement\n\n\
             {} sessions a day, {} requests and {} s each; at the peak {} times the mean.\n\n\
             | what | value | bounds | formula |\n|---|---|---|---|\n",
            grouped(wallets.wallets),
            wallets.sessions_per_day,
            wallets.requests,
            wallets.session_seconds,
            wallets.peak
        );
        // Writing to a text does not fail.
        for Figure { title, unit, estimate, formula, .. } in &self.figures {
            let (value, bounds) = (unit.show(estimate.value), unit.bounds(*estimate));
            let _ = writeln!(text, "| {title} | {value} | {bounds} | {formula} |");
        }
        self.inputs(&mut text);
        if !self.left_out.is_empty() {
            text.push_str("\nLeft out, since a cost is missing:\n\n");
        }
        for (name, needs) in &self.left_out {
            let title = FIGURES.iter().find(|(known, ..)| known == name).map_or(*name, |(_, title, _)| *title);
            let _ = writeln!(text, "* {title}: needs {needs}, or --results");
        }
        text.push_str("\nThe bounds are those of the costs: the least and the most that was measured or given. ");
        text.push_str("Not included:\n\n");
        for line in self.not_included {
            let _ = writeln!(text, "* {line}");
        }
        text
    }

    fn inputs(&self, text: &mut String) {
        let (costs, machines) = (&self.costs, &self.machines);
        let microseconds = |value: f64| format!("{value:.1} us");
        let number = |value: f64| format!("{value:.2}");
        let bytes = |value: f64| Unit::Bytes.show(value);
        type Show<'a> = &'a dyn Fn(f64) -> String;
        let rows: [(&str, Option<Estimate>, Show<'_>); 7] = [
            ("CPU time of a request, front end", costs.request_us, &microseconds),
            ("reads of the store for a request", costs.reads, &number),
            ("CPU time of a read, all nodes of the store", costs.read_us, &microseconds),
            ("CPU time of a request, whole node", costs.whole_us, &microseconds),
            ("memory of a front end without connections", costs.front_bytes, &bytes),
            ("memory of a connection", costs.connection_bytes, &bytes),
            ("memory of a node of the store", costs.store_bytes, &bytes),
        ];
        text.push_str("\n| cost | value | bounds |\n|---|---|---|\n");
        for (what, estimate, show) in rows {
            let Some(Estimate { low, value, high }) = estimate else { continue };
            let bounds = if low < high { format!("{} to {}", show(low), show(high)) } else { "none given".to_owned() };
            let _ = writeln!(text, "| {what} | {} | {bounds} |", show(value));
        }
        let _ = writeln!(
            text,
            "\nAssumed: machines with {} cores, of which {:.0} % are busy at the peak; one copy of the index of {}; \
             {} copies in the store; {} of disk on each of its machines.",
            machines.cores,
            machines.busy * 100.0,
            Unit::Bytes.range(machines.copy_bytes),
            machines.replication,
            Unit::Bytes.show(machines.disk_bytes),
        );
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{}/s", grouped(significant(value))),
            Unit::Count => grouped(significant(value.ceil())),
            Unit::Cores => format!("{:.1}", value),
            Unit::Bytes if value < MIB => format!("{:.1} KiB", value / 1_024.0),
            Unit::Bytes if value < GIB => format!("{:.1} MiB", value / MIB),
            Unit::Bytes => format!("{:.1} GiB", value / GIB),
        }
    }

    fn range(self, estimate: Estimate) -> String {
        let (low, high) = (self.show(estimate.low), self.show(estimate.high));
        if low == high { low } else { format!("{low} to {high}") }
    }

    fn bounds(self, estimate: Estimate) -> String {
        if estimate.low < estimate.high { self.range(estimate) } else { String::new() }
    }
}

/// Three significant digits; whole numbers below 1,000 keep theirs.
fn significant(value: f64) -> f64 {
    if value < 1_000.0 {
        return value.round();
    }
    let step = 10_f64.powf(value.log10().floor() - 2.0);
    (value / step).round() * step
}

/// A whole number with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIONS: Wallets =
        Wallets { wallets: 1e7, sessions_per_day: 2.0, requests: 70.0, session_seconds: 576.0, peak: 3.0 };

    fn machines() -> Machines {
        Machines {
            cores: 8.0,
            busy: 0.5,
            copy_bytes: Estimate { low: 43e9, value: 47e9, high: 51e9 },
            replication: 3.0,
            disk_bytes: 1e12,
        }
    }

    #[test]
    fn ten_million_wallets_are_48_600_requests_a_second_and_400_000_connections() {
        let projection = project(MILLIONS, Costs::default(), machines()).unwrap();
        assert_eq!(projection.figure("requests_per_second").unwrap().estimate.value, 48_611.111_111);
        assert_eq!(projection.figure("connections").unwrap().estimate.value, 400_000.0);
        let text = projection.to_text();
        assert!(text.contains("for 10,000,000 wallets"), "{text}");
        assert!(text.contains("| requests at the peak | 48,600/s |  |"), "{text}");
        assert!(text.contains("| connections at the peak | 400,000 |"), "{text}");
        assert!(text.contains("* cores of front ends: needs --cpu-request-us, or --results"), "{text}");
        assert!(projection.figure("front_cores").is_none());
    }

    #[test]
    fn figures_follow_from_costs_with_their_bounds() {
        let estimate = |low: f64, value: f64, high: f64| Some(Estimate { low, value, high });
        let costs = Costs {
            request_us: estimate(100.0, 200.0, 400.0),
            reads: estimate(1.0, 1.5, 2.0),
            read_us: estimate(200.0, 400.0, 800.0),
            whole_us: estimate(80.0, 100.0, 120.0),
            front_bytes: Some(Estimate::exactly(2e9)),
            connection_bytes: Some(Estimate::exactly(20_000.0)),
            store_bytes: Some(Estimate::exactly(8e9)),
        };
        // 86,400 requests a day of one wallet at its mean are one request a second.
        let one =
            Wallets { wallets: 1e3, sessions_per_day: 1.0, requests: 86_400.0, session_seconds: 864.0, peak: 1.0 };
        let projection = project(one, costs, machines()).unwrap();
        let of = |name: &str| {
            let Estimate { low, value, high } = projection.figure(name).unwrap().estimate;
            [low, value, high]
        };
        assert_eq!(of("requests_per_second"), [1_000.0; 3]);
        assert_eq!(of("connections"), [10.0; 3]);
        assert_eq!(of("front_cores"), [0.2, 0.4, 0.8]);
        assert_eq!(of("front_ends"), [2.0; 3]);
        assert_eq!(of("front_bytes"), [4_000_200_000.0; 3]);
        assert_eq!(of("reads_per_second"), [1_000.0, 1_500.0, 2_000.0]);
        assert_eq!(of("store_cores"), [0.4, 1.2, 3.2]);
        assert_eq!(of("store_data_bytes"), [129e9, 141e9, 153e9]);
        assert_eq!(of("store_machines"), [3.0; 3], "as many as copies");
        assert_eq!(of("store_bytes"), [24e9; 3]);
        assert_eq!(of("whole_cores"), [0.16, 0.2, 0.24]);
        assert_eq!(of("whole_copies"), [2.0; 3]);
        assert!(projection.left_out.is_empty());
        // A hundred times the wallets: what rises, rises with them.
        let many = project(Wallets { wallets: 1e5, ..one }, costs, machines()).unwrap();
        let of = |name: &str| many.figure(name).unwrap().estimate;
        assert_eq!(of("front_ends"), Estimate { low: 4.0, value: 6.0, high: 11.0 });
        assert_eq!(of("store_machines"), Estimate { low: 6.0, value: 16.0, high: 41.0 });
        assert_eq!(of("whole_copies"), Estimate { low: 3.0, value: 4.0, high: 4.0 });
        let text = many.to_text();
        assert!(text.contains("| front ends | 6 | 4 to 11 | cores / cores of a machine"), "{text}");
        assert!(text.contains("| memory of a connection | 19.5 KiB | none given |"), "{text}");
        // Small disks take more machines.
        let small = Machines { disk_bytes: 2e10, ..machines() };
        let small = project(one, costs, small).unwrap().figure("store_machines").unwrap().estimate;
        assert_eq!(small, Estimate { low: 13.0, value: 15.0, high: 16.0 });
    }

    #[test]
    fn impossible_inputs_are_refused() {
        assert_eq!(Estimate::parse("100..140").unwrap(), Estimate { low: 100.0, value: 120.0, high: 140.0 });
        assert_eq!(Estimate::parse("7.5").unwrap(), Estimate::exactly(7.5));
        for text in ["", "0", "-1", "x", "2..1", "1..", "nan", "inf", "1..2..3"] {
            let error = Estimate::parse(text).unwrap_err().to_string();
            assert!(error.contains("LOW..HIGH"), "{text}: {error}");
        }
        for wallets in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = project(Wallets { wallets, ..MILLIONS }, Costs::default(), machines()).unwrap_err();
            assert!(error.to_string().contains("--wallets"), "{error}");
        }
        for wrong in [Machines { busy: 0.0, ..machines() }, Machines { busy: 1.1, ..machines() }] {
            assert!(project(MILLIONS, Costs::default(), wrong).unwrap_err().to_string().contains("--busy"));
        }
        assert_eq!(Estimate::of(&[3.0, 1.0, 2.0]), Some(Estimate { low: 1.0, value: 2.0, high: 3.0 }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn numbers_are_rounded_to_three_digits() {
        assert_eq!((significant(48_611.1), significant(999.4), significant(400_000.0)), (48_600.0, 999.0, 400_000.0));
        assert_eq!(
            (grouped(1_234_567.0), grouped(999.0), grouped(1_000.0)),
            ("1,234,567".into(), "999".into(), "1,000".into())
        );
    }
}
