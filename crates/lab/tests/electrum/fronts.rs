//! `lydian-lab scale cluster` with front ends on three nodes of Cassandra: a short run with small numbers. Wallets ask
//! while a node of the store is killed, loses its files, and while the node that writes the index and a front end are
//! killed; six blocks leave the chain during each. Any wrong answer, lost commit or failed request is a failure.

use super::copies::small_chain;
use lydian_lab::scale::ScaleReport;
use lydian_lab::scale::cluster::{Fault, Measurement, Settings};
use lydian_oracle::Scratch;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;

#[test]
#[ignore = "starts three nodes of Cassandra for two minutes: `lydian-lab store install`; then: cargo test --locked --workspace --features lydian-node/cassandra --test rpc --test electrum -- --ignored fronts:: (`--test rpc` builds the program with the feature), which make test-store runs"]
fn wallets_at_front_ends_get_right_answers_while_parts_of_the_installation_fail() {
    let scratch = Scratch::new("lab-fronts");
    let (folder, chain, targets) = small_chain(&scratch);
    let settings = Settings {
        servers: 2,
        is_whole: false,
        store_nodes: 3,
        heap_mib: 512,
        clients: 6,
        pause_ms: 20,
        rounds: 1,
        phase_seconds: 6,
        kills: 3,
        stopped_seconds: 6,
        block_seconds: 2,
        touched: 3,
        timeout_seconds: 180,
    };
    let failures = [Fault::StoreKill, Fault::StoreRepair, Fault::WriterKill, Fault::FrontKill];
    let (work, program) = (scratch.path().join("work"), super::lydian());
    let measurement = Measurement {
        chain: &chain,
        folder: &folder,
        targets: &targets,
        program: &program,
        settings,
        failures: failures.to_vec(),
        hosts: None,
        node_arguments: &[],
        front_arguments: &[],
        work: &work,
        command_line: Vec::new(),
        interrupted: &AtomicBool::new(false),
    };
    let mut output = std::io::stdout();
    let results = measurement.run(&mut |step| drop(writeln!(output, "{step}"))).unwrap();
    let text = results.to_markdown();
    writeln!(output, "{text}").unwrap();
    assert!(results.is_right(), "{text}");
    assert_eq!(results.phases.len(), 1 + failures.len(), "{text}");
    for phase in &results.phases {
        assert!(phase.requests > 0 && phase.failed + phase.wrong == 0, "{text}");
    }
    let struck: Vec<(u32, u32)> = results.phases.iter().map(|phase| (phase.strikes, phase.reorganisations)).collect();
    assert_eq!(struck, [(0, 0), (1, 1), (1, 1), (3, 1), (1, 1)], "{text}");
    let commits = results.commits.as_ref().unwrap();
    assert!(commits.lost == 0 && commits.seen > 10, "{commits:?}");
    assert!(results.notified.block.is_some() && results.notified.missed == 0, "{text}");
    assert!(results.backends[0].falls >= 1 && results.backends.iter().all(|backend| backend.passed > 0), "{text}");
}
