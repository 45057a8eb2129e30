//! `lydian-lab scale cluster --whole-copies`: several whole nodes behind the lab's balancer serve wallets, one is
//! killed, one is paused, each is restarted, and clients go on at the others. Every answer is the first node's.

use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::deep::{Base, DeepSettings};
use lydian_chains::presets::reuse::ReuseSettings;
use lydian_chains::targets::Target;
use lydian_lab::runs::chain_cache::{Preset, ensure};
use lydian_lab::scale::ScaleReport;
use lydian_lab::scale::cluster::{Fault, Measurement, PhaseResults, Settings, scripts};
use lydian_oracle::Scratch;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A chain with the files of its blocks, and its scripts.
pub(super) fn small_chain(scratch: &Scratch) -> (PathBuf, ChainFiles, Vec<Target>) {
    let reuse = ReuseSettings { seed: 1, scripts: 12, fat_spent: 0, fat_kept: 0 };
    let preset = Preset::Deep(DeepSettings { base: Base::Reuse(reuse), height: 480 });
    let (folder, chain) = ensure(preset, &scratch.path().join("cache"), 2, &mut |_| ()).unwrap();
    let targets = scripts(&folder, 12).unwrap();
    assert_eq!(targets.len(), 12);
    (folder, chain, targets)
}

#[test]
fn wallets_at_several_nodes_behind_a_balancer_survive_the_end_of_one() {
    let scratch = Scratch::new("lab-copies");
    let (folder, chain, targets) = small_chain(&scratch);
    let settings = Settings {
        servers: 3,
        is_whole: true,
        store_nodes: 0,
        heap_mib: 0,
        clients: 8,
        pause_ms: 5,
        rounds: 1,
        phase_seconds: 4,
        kills: 0,
        stopped_seconds: 6,
        block_seconds: 2,
        touched: 3,
        timeout_seconds: 120,
    };
    let (work, program) = (scratch.path().join("work"), super::lydian());
    let measurement = |settings: &Settings, failures: &[Fault]| Measurement {
        chain: &chain,
        folder: &folder,
        targets: &targets,
        program: &program,
        settings: settings.clone(),
        failures: failures.to_vec(),
        hosts: None,
        node_arguments: &[],
        front_arguments: &[],
        work: &work,
        command_line: Vec::new(),
        interrupted: &NEVER,
    };
    let results =
        measurement(&settings, &[Fault::CopyKill, Fault::CopyPause, Fault::CopyRestart]).run(&mut |_| ()).unwrap();
    let text = results.to_markdown();
    assert!(results.is_right, "{text}");
    assert!(!work.join("scale-cluster").exists(), "its folder is gone");
    let [quiet, kill, pause, restart] = &results.phases[..] else { panic!("{text}") };
    for phase in [quiet, kill, pause, restart] {
        assert!(phase.requests > 0 && phase.failed + phase.wrong == 0, "{text}");
        assert!(phase.cpu_us_per_request(lydian_lab::scale::cluster::world::Role::Node).is_some(), "{text}");
    }
    assert_eq!((quiet.repeated, quiet.reorganisations), (0, 0), "{text}");
    let of = |phase: &PhaseResults| (phase.strikes, phase.reorganisations);
    assert_eq!([kill, pause, restart].map(of), [(1, 1), (1, 1), (2, 1)], "{text}");
    assert!(kill.repeated > 0 && kill.recovered_seconds.is_some(), "its clients went to another node: {text}");
    assert!(results.backends.iter().all(|backend| backend.passed > 0), "{:?}", results.backends);
    assert!(results.backends[2].falls >= 1, "{:?}", results.backends);
    assert!(results.notified.block_with_failures.is_some() && results.notified.missed == 0, "{text}");
    assert!(results.costs.whole_us.is_some() && results.costs.request_us.is_none());
    assert!(text.contains("| copy-kill | ") && text.contains("| block connected to header announced | "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!((&json["settings"]["servers"], &json["is_right"]), (&3.into(), &true.into()));
    // What cannot be measured is refused before anything starts.
    let error = |settings: Settings| measurement(&settings, &[]).run(&mut |_| ()).unwrap_err().to_string();
    assert!(error(Settings { servers: 1, ..settings.clone() }).contains("at least 2"));
    assert!(error(Settings { clients: 501, ..settings.clone() }).contains("--clients must lie between 1 and 500"));
    assert!(error(Settings { touched: 7, ..settings.clone() }).contains("half the number of scripts"));
}

static NEVER: AtomicBool = AtomicBool::new(false);
