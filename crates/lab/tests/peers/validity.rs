//! `lydian-lab validity` with the program: every broken block is rejected, and for the reason that Bitcoin Core gives.

use crate::process::{program, scratch};
use lydian_chains::presets::validity::make;
use lydian_lab::runs::Contender;
use lydian_lab::runs::adapters::Lydian;
use lydian_lab::validity::{Patience, Terms, examine};
use std::sync::atomic::AtomicBool;

#[test]
fn every_broken_block_is_refused_for_cores_reason() {
    let scratch = scratch("peers-validity");
    let suite = make(1);
    let terms = Terms {
        suite: &suite,
        folder: &scratch.path().join("node"),
        threads: 2,
        patience: Patience::default(),
        interrupted: &AtomicBool::new(false),
    };
    let adapter = Box::new(Lydian::locate(Some(&program())).unwrap());
    let lydian = Contender { name: "lydian".into(), adapter, more: Vec::new(), source: None };
    let validity = examine(&lydian, &terms);
    assert_eq!(validity.reason, None);
    assert_eq!(validity.cases.len(), suite.groups.len());
    for (case, group) in validity.cases.iter().zip(&suite.groups) {
        assert_eq!((case.said.as_str(), case.is_accepted), (group.case.reason.as_str(), false), "{}", case.name);
    }
}
