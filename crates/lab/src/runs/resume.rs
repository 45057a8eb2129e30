//! Continues from the results of an earlier run of the same comparison.
//!
//! Input: the earlier results, and those of the comparison about to begin. Output: the runs to keep, or what differs.
//! Only runs that count are kept. Must never: combine figures that were not measured under the same conditions.

use crate::difference::{Difference, What};
use lydian_report::results::{Cache, NodeFacts, Outcome, Results, Run};
use std::fmt;

/// Returns the earlier runs that count, if everything else is the same.
pub fn kept(earlier: &Results, fresh: &Results, caches: &[Cache]) -> Result<Vec<Run>, Difference> {
    check(earlier, fresh, caches)?;
    let mut kept: Vec<Run> = Vec::new();
    for run in &earlier.runs {
        let is_planned = counts(run) && run.number <= fresh.settings.runs;
        if is_planned && find(&kept, &run.node, run.number, run.cache).is_none() {
            kept.push(run.clone());
        }
    }
    Ok(kept)
}

fn counts(run: &Run) -> bool {
    run.outcome == Outcome::Counted
}

pub(super) fn find<'a>(runs: &'a [Run], node: &str, number: u32, cache: Cache) -> Option<&'a Run> {
    runs.iter().find(|run| (run.node.as_str(), run.number, run.cache) == (node, number, cache))
}

fn check(earlier: &Results, fresh: &Results, caches: &[Cache]) -> Result<(), Difference> {
    let same = |what, was: String, is: String| if was == is { Ok(()) } else { Err(Difference { what, was, is }) };
    let debug = |value: &dyn fmt::Debug| format!("{value:?}").to_lowercase();
    same(What::Experiment, debug(&earlier.experiment), debug(&fresh.experiment))?;
    same(What::Chain, chain_of(earlier), chain_of(fresh))?;
    same(What::Settings, settings_of(earlier), settings_of(fresh))?;
    same(What::Machine, machine_of(earlier), machine_of(fresh))?;
    same(What::Nodes, names(&earlier.nodes), names(&fresh.nodes))?;
    let has_runs = |node: &&NodeFacts| earlier.runs.iter().any(|run| run.node == node.name && counts(run));
    // A node without kept runs may have been installed in the meantime.
    for (was, is) in earlier.nodes.iter().zip(&fresh.nodes).filter(|(was, _)| has_runs(was)) {
        same_node(was, is)?;
    }
    same(What::Server, servers_of(earlier), servers_of(fresh))?;
    match earlier.runs.iter().find(|run| !caches.contains(&run.cache)) {
        Some(run) => {
            Err(Difference { what: What::Caches, was: format!("{} runs, too", debug(&run.cache)), is: debug(&caches) })
        }
        None => Ok(()),
    }
}

fn same_node(was: &NodeFacts, is: &NodeFacts) -> Result<(), Difference> {
    let same = |what, was_it: String, is_it: String| {
        if was_it == is_it {
            return Ok(());
        }
        Err(Difference { what, was: format!("{} {was_it}", was.name), is: format!("{} {is_it}", is.name) })
    };
    same(What::Version, was.version.clone(), is.version.clone())?;
    same(What::Build, build_of(was), build_of(is))?;
    same(What::Server, source_of(was), source_of(is))?;
    let program = |node: &NodeFacts| format!("{} {}", node.program, without_ports(&node.arguments.join(" ")));
    same(What::Arguments, program(was), program(is))
}

fn chain_of(results: &Results) -> String {
    let chain = &results.chain;
    let preset = chain.preset.as_deref().unwrap_or("files");
    format!("{preset} to height {} with SHA-256 {}", chain.height, chain.sha256)
}

fn settings_of(results: &Results) -> String {
    let settings = &results.settings;
    let validation = format!("{:?}", settings.validation).to_lowercase();
    let group = settings.cgroup_memory_bytes.map_or_else(String::new, |bytes| format!(", {bytes} in a control group"));
    format!(
        "{} runs, {} threads, {} MiB of cache, {} s at most, {} bytes of memory at most{group}, {} bytes of the disk left free, {validation} validation, measured from height {}",
        settings.runs,
        settings.threads,
        settings.cache_mib,
        settings.timeout_seconds,
        settings.memory_max_bytes,
        settings.disk_free_min_bytes,
        settings.from_height.unwrap_or(0)
    )
}

fn machine_of(results: &Results) -> String {
    let machine = &results.machine;
    let filesystem = machine.filesystem.as_deref().unwrap_or("an unknown file system");
    format!("{} with {} cores, kernel {}, {filesystem}", machine.cpu, machine.cores, machine.kernel)
}

fn names(nodes: &[NodeFacts]) -> String {
    nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",")
}

fn servers_of(results: &Results) -> String {
    let text = |server: &NodeFacts| format!("{} {}, {}", server.name, server.version, build_of(server));
    let servers: Vec<String> = results.servers.iter().map(text).collect();
    if servers.is_empty() { "none".into() } else { servers.join(", ") }
}

/// An earlier file without these fields is not treated as the same build.
fn build_of(node: &NodeFacts) -> String {
    match (&node.program_sha256, node.program_bytes) {
        (Some(sha256), Some(bytes)) => format!("{bytes} bytes with SHA-256 {sha256}"),
        _ => "an unknown file".into(),
    }
}

fn source_of(node: &NodeFacts) -> String {
    node.source.clone().unwrap_or_else(|| "no server".into())
}

/// Replaces loopback ports, which differ in each run.
fn without_ports(arguments: &str) -> String {
    let mut pieces = arguments.split("127.0.0.1:");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("127.0.0.1:0");
        text.push_str(piece.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_report::results::Validation;

    const DOCUMENT: &str = include_str!("../../../../docs/formats/lab-results.md");

    fn example() -> Results {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        Results::parse(rest.split_once("```").unwrap().0.as_bytes()).unwrap()
    }

    #[test]
    fn runs_that_count_stay_once() {
        let mut earlier = example();
        assert_eq!(earlier.runs.len(), 4, "the example has one run that failed");
        earlier.runs.push(earlier.runs[0].clone());
        let found = kept(&earlier, &example(), &[Cache::Warm]).unwrap();
        let names: Vec<(&str, u32)> = found.iter().map(|run| (run.node.as_str(), run.number)).collect();
        assert_eq!(names, [("bitcoind", 1), ("knots", 1), ("bitcoind", 2)]);
    }

    #[test]
    fn whatever_differs_is_named() {
        let what = |change: fn(&mut Results)| {
            let mut fresh = example();
            change(&mut fresh);
            let difference = kept(&example(), &fresh, &[Cache::Warm]).unwrap_err();
            assert!(difference.to_string().contains("not the same") && difference.was != difference.is, "{difference}");
            difference.what
        };
        assert_eq!(what(|fresh| fresh.experiment = lydian_report::results::Experiment::Sync), What::Experiment);
        assert_eq!(what(|fresh| fresh.chain.sha256 = "00".into()), What::Chain);
        assert_eq!(what(|fresh| fresh.settings.runs = 3), What::Settings);
        assert_eq!(what(|fresh| fresh.settings.cache_mib = 1), What::Settings);
        assert_eq!(what(|fresh| fresh.settings.disk_free_min_bytes = 1), What::Settings);
        assert_eq!(what(|fresh| fresh.settings.from_height = Some(5)), What::Settings);
        assert_eq!(what(|fresh| fresh.settings.cgroup_memory_bytes = Some(1)), What::Settings);
        assert_eq!(what(|fresh| fresh.settings.validation = Validation::Default), What::Settings);
        assert_eq!(what(|fresh| fresh.machine.cores = 99), What::Machine);
        assert_eq!(what(|fresh| fresh.nodes.reverse()), What::Nodes);
        assert_eq!(what(|fresh| fresh.nodes[1].version = "other".into()), What::Version);
        assert_eq!(what(|fresh| fresh.nodes[1].program_sha256 = Some("00".into())), What::Build);
        assert_eq!(what(|fresh| fresh.nodes[1].program_sha256 = None), What::Build);
        assert_eq!(what(|fresh| fresh.servers.push(fresh.nodes[0].clone())), What::Server);
        assert_eq!(what(|fresh| fresh.nodes[1].arguments.push("-par=9".into())), What::Arguments);
        assert_eq!(what(|fresh| fresh.nodes[1].source = Some("knots".into())), What::Server);
        let mut earlier = example();
        earlier.runs[0].cache = Cache::Cold;
        assert_eq!(kept(&earlier, &example(), &[Cache::Warm]).unwrap_err().what, What::Caches);
    }

    #[test]
    fn ports_of_loopback_are_no_difference() {
        let text = "-connect=127.0.0.1:4711 -bind=127.0.0.1:9 -par=2";
        assert_eq!(without_ports(text), "-connect=127.0.0.1:0 -bind=127.0.0.1:0 -par=2");
        assert_eq!(without_ports("-connect=0"), "-connect=0");
    }
}
