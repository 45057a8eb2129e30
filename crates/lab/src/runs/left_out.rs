//! Lists the systems of the published benchmarks that a comparison leaves out, with the reason for each.
//!
//! This way no table silently omits a system. Input: the names of the contenders, the experiment. Output: one entry per
//! node that is not among them. Must never: omit a reason.

use lydian_report::results::{Experiment, LeftOut};
use lydian_report::systems::{Bar, Role, SYSTEMS, System};

/// `names` are the values of `--nodes`, with or without a label.
pub fn left_out(names: &[String], experiment: Experiment) -> Vec<LeftOut> {
    let bar = match experiment {
        Experiment::Reindex => Bar::Reindex,
        Experiment::Sync => Bar::Sync,
    };
    let takes_part = |system: &System| names.iter().any(|name| name.split(':').next() == Some(system.kind));
    let absent = SYSTEMS.iter().filter(|system| system.role == Role::Node && !takes_part(system));
    absent
        .map(|system| match system.bar(bar) {
            Some(_) => system.left_out(bar),
            None => system.not_among("--nodes"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_a_reason() {
        let names: Vec<String> = ["bitcoind", "lydian", "lydian:old"].map(str::to_owned).into();
        let found = left_out(&names, Experiment::Reindex);
        let nodes = SYSTEMS.iter().filter(|system| system.role == Role::Node).count();
        assert_eq!(found.len(), nodes - 2);
        let reason = |name: &str| found.iter().find(|left| left.name == name).map(|left| left.reason.as_str());
        assert_eq!(reason("Lydian"), None);
        assert!(reason("Bitcoin Knots").is_some_and(|reason| reason.starts_with("it was not among --nodes")));
        assert!(reason("btcd").is_some_and(|reason| reason.contains("block files")), "what it is comes first");
        assert!(found.iter().all(|left| !left.reason.is_empty()));
    }
}
