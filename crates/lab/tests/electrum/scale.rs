//! `lydian-lab scale` on a small chain: every row gives its figures, and everything that the node answers and announces
//! follows from the blocks.

use lydian_chains::presets::scale::ScaleSettings;
use lydian_lab::runs::chain_cache::{Preset, ensure};
use lydian_lab::scale::{Measurement, Row, ScaleReport, ScaleResults, Settings};
use lydian_oracle::Scratch;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The history is long enough to be sent in parts, and its beginning deep enough to be sealed.
const CHAIN: ScaleSettings = ScaleSettings { transactions: 9_000, per_block: 3_000, scripts: 300, height: 1_800 };

fn run(test: &str, rows: &[Row], more: &[&str]) -> Result<ScaleResults, lydian_lab::LabError> {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("lydian");
    assert!(program.exists(), "cargo build --profile test -p lydian-node --bin lydian");
    let scratch = Scratch::new(test);
    let (folder, chain) = ensure(Preset::Scale(CHAIN), &scratch.path().join("cache"), 1, &mut |_| ()).unwrap();
    let work = scratch.path().join("work");
    let more: Vec<String> = more.iter().map(|argument| (*argument).to_owned()).collect();
    let settings = Settings {
        rounds: 1,
        connections: 60,
        at_once: 25,
        scripts: CHAIN.scripts,
        touched: vec![10, 120],
        blocks: 2,
        load: 5,
        timeout_seconds: 120,
    };
    let measurement = Measurement {
        chain: &chain,
        folder: &folder,
        program: &program,
        rows,
        settings,
        more: &more,
        work: &work,
        command_line: Vec::new(),
        interrupted: &AtomicBool::new(false),
    };
    let results = measurement.run(&mut |_| ());
    assert!(!work.join("scale").exists(), "its folder is gone");
    results
}

#[test]
fn the_node_is_right_in_every_row() {
    let results = run("lab-scale", &Row::ALL, &[]).unwrap();
    let text = results.to_markdown();
    assert!(results.is_right, "{text}");
    let entries: Vec<(&str, usize, bool)> =
        results.history.iter().map(|query| (query.name, query.entries, query.is_right)).collect();
    assert_eq!(entries, [("history", 9_000, true), ("coins", 6_000, true), ("status", 1, true)]);
    let restarts = results.restarts.as_ref().unwrap();
    assert_eq!((restarts.stop_seconds.len(), restarts.killed_index_seconds.len(), restarts.wrong), (1, 1, 0));
    let connections = results.connections.as_ref().unwrap();
    assert_eq!((connections.failed, connections.left, connections.wallet_wrong), (0, 0, 0));
    assert!(!connections.wallet_ms.is_empty());
    assert_eq!(results.subscribed.as_ref().map(|all| (all.subscriptions, all.wrong)), Some((300, 0)));
    for (notified, [least, most]) in results.notified.iter().zip([[10, 18], [110, 126]]) {
        assert!(notified.changed.iter().all(|changed| (least..=most).contains(changed)), "{notified:?}");
        assert_eq!((notified.last_ms.len(), notified.connected_ms.len(), notified.wrong), (2, 2, 0), "{notified:?}");
        let header_is_first = notified.header_ms.iter().zip(&notified.first_ms).all(|(header, first)| header <= first);
        assert!(header_is_first && notified.header_ms.len() == 2, "{notified:?}");
    }
    assert_eq!(results.notified.len(), 2);
    let under_load = results.under_load.as_ref().unwrap();
    assert_eq!((under_load.idle.submit_ms.len(), under_load.loaded.submit_ms.len()), (2, 2));
    assert!(under_load.per_second > 0.0 && under_load.failed == 0, "{under_load:?}");
    let json: serde_json::Value = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!(json["history"][0]["entries"], 9_000);
    assert!(text.contains("| block that changes "), "{text}");
}

/// A node that does not start is an error with the end of its log.
#[test]
fn a_node_that_fails_is_named() {
    let error = run("lab-scale-fails", &[Row::History], &["-nosuchoption"]).unwrap_err().to_string();
    assert!(error.contains("lydian"), "{error}");
}
