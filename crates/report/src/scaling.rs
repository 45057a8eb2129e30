//! How a node's time follows its number of workers: the fit of `wall = serial + parallel / workers`.
//!
//! Input: results whose nodes are called `NAME:parN`, one for each number of workers. Output: per node the times, the
//! serial share, and the rate that no number of cores exceeds: `rate(n) = min(n / parallel, 1 / serial)` with both
//! times per input. Of a node that reports the times of its stages also: the time of the stage that one worker does
//! alone, and the waits of all workers for work and for the lock of the schedule. Must never: fit a line through one
//! point, or call a difference within the runs' spread serial work.

use crate::results::{Cache, Figures, NodeFacts, Outcome, Results, Run, Spread};
use std::fmt::Write;

/// The mark of a number of workers in a name.
const MARK: &str = ":par";

/// The name of a node with this number of workers.
pub fn name_with(node: &str, workers: usize) -> String {
    format!("{node}{MARK}{workers}")
}

/// One number of workers of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    workers: f64,
    wall_seconds: f64,
    cpu_seconds: f64,
    stages: Option<Stages>,
}

/// The times of a node's stages that limit how it scales, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stages {
    /// Of the stage that one worker does alone.
    alone: f64,
    /// Of all workers together.
    wait_for_work: f64,
    wait_for_lock: f64,
}

/// `wall = serial + parallel / workers`, both in seconds and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    pub serial_seconds: f64,
    pub parallel_seconds: f64,
    /// The largest difference between a measured and a fitted time, as a share of the measured one.
    pub error_share: f64,
}

impl Fit {
    /// The share of one worker's time that further workers do not shorten.
    pub fn serial_share(&self) -> f64 {
        self.serial_seconds / (self.serial_seconds + self.parallel_seconds)
    }
}

/// Least squares, with a negative part set to zero and the other fitted alone. `None` with fewer than two different
/// numbers of workers.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let (first, _) = points.first()?;
    if points.iter().all(|(workers, _)| workers.total_cmp(first).is_eq()) {
        return None;
    }
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(workers, wall)| of(1.0 / workers, wall)).sum::<f64>();
    let count = sum(&|_, _| 1.0);
    let (x, y, xx, xy) = (sum(&|x, _| x), sum(&|_, y| y), sum(&|x, _| x * x), sum(&|x, y| x * y));
    let slope = (count * xy - x * y) / (count * xx - x * x);
    let offset = (y - slope * x) / count;
    let (serial_seconds, parallel_seconds) = match (offset >= 0.0, slope >= 0.0) {
        (true, true) => (offset, slope),
        (false, _) => (0.0, xy / xx),
        (true, false) => (y / count, 0.0),
    };
    let error = |&(workers, wall): &(f64, f64)| ((serial_seconds + parallel_seconds / workers) / wall - 1.0).abs();
    let error_share = points.iter().map(error).fold(0.0, f64::max);
    Some(Fit { serial_seconds, parallel_seconds, error_share })
}

/// `None` if no node has a number of workers in its name.
pub fn to_markdown(results: &Results) -> Option<String> {
    let mut nodes: Vec<&str> = Vec::new();
    for (node, _) in results.nodes.iter().filter_map(|node| split(&node.name)) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    if nodes.is_empty() {
        return None;
    }
    let mut text = String::from(
        "| node | workers | wall s | times as fast | CPU s | more CPU | commit s | wait s | lock ms |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut lines = Vec::new();
    for node in nodes {
        let points = points(results, node);
        // The first number of workers is what the others are compared with.
        let Some(base) = points.first().copied() else { continue };
        for point in &points {
            let _ = writeln!(
                text,
                "| {node} | {} | {:.2} | {:.2} | {:.2} | {:+.1} % | {} |",
                point.workers,
                point.wall_seconds,
                base.wall_seconds / point.wall_seconds,
                point.cpu_seconds,
                (point.cpu_seconds / base.cpu_seconds - 1.0) * 100.0,
                cells(point.stages)
            );
        }
        lines.push(line(results, node, &points));
    }
    text.push('\n');
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    Some(text)
}

/// The cells of the stages; empty for a node that does not report them.
fn cells(stages: Option<Stages>) -> String {
    stages.map_or("| |".to_owned(), |stages| {
        let Stages { alone, wait_for_work, wait_for_lock } = stages;
        format!("{alone:.3} | {wait_for_work:.2} | {:.1}", wait_for_lock * 1000.0)
    })
}

fn line(results: &Results, node: &str, points: &[Point]) -> String {
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point.workers, point.wall_seconds)).collect();
    let Some(fit) = fit(&pairs) else {
        return format!("{node}: no fit, since runs of fewer than two numbers of workers count.");
    };
    let mut line = format!(
        "{node}: wall = {:.2} s + {:.2} s / workers (within {:.1} %), so {:.1} % of one worker's time is serial",
        fit.serial_seconds,
        fit.parallel_seconds,
        fit.error_share * 100.0,
        fit.serial_share() * 100.0
    );
    let is_own =
        |facts: &NodeFacts| facts.own_chain.is_some() && split(&facts.name).is_some_and(|(name, _)| name == node);
    let has_own_chain = results.nodes.iter().any(is_own);
    if let Some(inputs) = results.chain.inputs.filter(|inputs| *inputs > 0 && !has_own_chain) {
        #[allow(clippy::cast_precision_loss, reason = "inputs of a chain lie below 2^52")]
        let per_input = |seconds: f64| seconds / inputs as f64;
        let _ = write!(
            line,
            "; inputs a second with n cores: min(n / {:.2} us, 1 / {:.0} ns)",
            per_input(fit.parallel_seconds) * 1e6,
            per_input(fit.serial_seconds) * 1e9
        );
    }
    line + "."
}

fn split(name: &str) -> Option<(&str, u32)> {
    let (node, workers) = name.rsplit_once(MARK)?;
    Some((node, workers.parse().ok().filter(|workers| *workers > 0)?))
}

/// Warm runs that count, by their number of workers.
fn points(results: &Results, node: &str) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for summary in results.summary.iter().filter(|summary| summary.cache == Cache::Warm) {
        let figures: Option<&Figures> = summary.figures.as_ref();
        let workers = split(&summary.node).filter(|(name, _)| *name == node).map(|(_, workers)| f64::from(workers));
        if let (Some(workers), Some(figures)) = (workers, figures) {
            let (wall_seconds, cpu_seconds) = (figures.wall_seconds.median, figures.cpu_seconds.median);
            points.push(Point { workers, wall_seconds, cpu_seconds, stages: stages(results, &summary.node) });
        }
    }
    points.sort_by(|one, other| one.workers.total_cmp(&other.workers));
    points
}

/// The medians over the warm runs that count.
fn stages(results: &Results, node: &str) -> Option<Stages> {
    let counts = |run: &&Run| run.node == node && run.outcome == Outcome::Counted && run.cache == Cache::Warm;
    let median = |name: &str| {
        let wall = |run: &Run| run.stages.iter().find(|stage| stage.name == name)?.wall_seconds;
        // A stage without time is not reported.
        let of_run = |run: &Run| (!run.stages.is_empty()).then(|| wall(run).unwrap_or(0.0));
        Some(Spread::of(results.runs.iter().filter(counts).filter_map(of_run).collect())?.median)
    };
    Some(Stages { alone: median("commit")?, wait_for_work: median("wait")?, wait_for_lock: median("lock")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Took, results};
    use crate::results::Stage;

    #[test]
    fn a_fit_finds_the_two_parts() {
        let exact: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0].map(|workers| (workers, 2.0 + 16.0 / workers)).into();
        let found = fit(&exact).unwrap();
        assert!((found.serial_seconds - 2.0).abs() < 1e-9 && (found.parallel_seconds - 16.0).abs() < 1e-9, "{found:?}");
        assert!(found.error_share < 1e-9 && (found.serial_share() - 2.0 / 18.0).abs() < 1e-9);
        // Faster than in proportion, and slower with more workers: no part becomes negative.
        let found = fit(&[(1.0, 10.0), (2.0, 4.0)]).unwrap();
        assert!(found.serial_seconds == 0.0 && found.parallel_seconds > 0.0 && found.error_share > 0.05, "{found:?}");
        let found = fit(&[(1.0, 10.0), (2.0, 12.0)]).unwrap();
        assert_eq!((found.serial_seconds, found.parallel_seconds), (11.0, 0.0));
        assert_eq!((fit(&[]), fit(&[(2.0, 5.0)]), fit(&[(2.0, 5.0), (2.0, 6.0)])), (None, None, None));
    }

    #[test]
    fn nodes_are_grouped_by_their_name_without_the_workers() {
        let took = [
            Took::new("lydian:par1", 10.0, 10.0),
            Took::new("lydian:par2", 6.0, 10.5),
            Took::new("bitcoind:par1", 30.0, 30.0),
            Took::new("knots", 31.0, 31.0),
        ];
        let text = to_markdown(&results("mainnet-mix", 550, [1, 1, 1, 1_000_000, 1, 1], &took)).unwrap();
        assert!(text.contains("| lydian | 2 | 6.00 | 1.67 | 10.50 | +5.0 % | | | |"), "{text}");
        let wanted = "lydian: wall = 2.00 s + 8.00 s / workers (within 0.0 %), so 20.0 % of one worker's time is serial; \
                      inputs a second with n cores: min(n / 8.00 us, 1 / 2000 ns).";
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("bitcoind: no fit") && !text.contains("knots"), "{text}");
        assert_eq!(to_markdown(&results("mainnet-mix", 550, [1; 6], &took[3..])), None);
        assert_eq!(split(&name_with("lydian:old", 16)), Some(("lydian:old", 16)));
    }

    #[test]
    fn the_stages_that_limit_a_node_are_medians_of_its_runs() {
        let mut results =
            results("mainnet-mix", 550, [1; 6], &[1.0, 3.0, 2.0].map(|wall| Took::new("lydian:par2", wall, 4.0)));
        let stage = |name: &str, wall: f64| Stage { name: name.into(), cpu_seconds: 0.0, wall_seconds: Some(wall) };
        for (run, wall) in results.runs.iter_mut().zip([0.01, 0.03, 0.02]) {
            run.stages = vec![stage("commit", wall), stage("wait", wall * 10.0)];
        }
        results.runs[0].stages.push(stage("lock", 0.5));
        let text = to_markdown(&results).unwrap();
        assert!(text.contains("| lydian | 2 | 2.00 | 1.00 | 4.00 | +0.0 % | 0.020 | 0.20 | 0.0 |"), "{text}");
    }
}
