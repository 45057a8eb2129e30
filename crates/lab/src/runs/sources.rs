//! The reason why a system takes no part, with the source of the reason.
//!
//! Input: the name of a contender, the reason of its adapter. Output: the text of the results. Must never: drop a
//! reason that is not in the table of systems.

use crate::lab_toml::base_kind;
use lydian_report::systems::SYSTEMS;

/// The reason with its source, for the results; a reason that is not in the table is returned unchanged.
pub fn with_source(name: &str, reason: &str) -> String {
    let kind = base_kind(name);
    let mut own = SYSTEMS.iter().filter(|system| system.kind == kind).flat_map(|system| system.cannot);
    own.find(|cannot| cannot.reason == reason)
        .map_or_else(|| reason.to_owned(), |cannot| format!("{reason} ({})", cannot.source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_report::results::Experiment;
    use lydian_report::systems::{Role, bar_of, kinds, of};

    /// Every reason for not taking part is a sentence of the table, so that its source is shown with it.
    #[test]
    fn what_an_adapter_cannot_has_its_source() {
        for experiment in [Experiment::Reindex, Experiment::Sync] {
            for kind in kinds(Role::Node) {
                let adapter = crate::runs::adapters::adapter(kind, Some(&std::env::current_exe().unwrap())).unwrap();
                let Some(reason) = adapter.cannot(experiment) else { continue };
                let bar = of(kind).unwrap().bar(bar_of(experiment)).unwrap();
                assert_eq!(
                    with_source(&format!("{kind}:label"), reason),
                    format!("{reason} ({})", bar.source),
                    "{kind}"
                );
            }
        }
        assert_eq!(with_source("btcd", "nobody knows"), "nobody knows");
    }
}
