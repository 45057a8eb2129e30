//! The effects of options on each other: Core's `InitParameterInteraction`. Input: the given options. Output: the value
//! of each switch, and a line for the log if an option decided another. A given value always takes precedence.

use crate::settings::given::Given;
use lydian_wire::Network;
use std::collections::BTreeMap;

/// Switches, as given or as decided by other options.
#[derive(Debug)]
pub(super) struct Interaction {
    values: BTreeMap<&'static str, bool>,
    pub(super) notes: Vec<String>,
}

/// The switches that are read together. Those without an effect on others are stored by their entries in the table.
const SWITCHES: [&str; 10] = [
    "blocksonly",
    "discover",
    "dns",
    "dnsseed",
    "fixedseeds",
    "forcednsseed",
    "listen",
    "proxyrandomize",
    "whitelistforcerelay",
    "whitelistrelay",
];

impl Interaction {
    pub(super) fn new(given: &Given<'_>) -> Interaction {
        let mut options = Interaction { values: BTreeMap::new(), notes: Vec::new() };
        for name in SWITCHES {
            if let Some(value) = given.switch(name) {
                options.values.insert(name, value);
            }
        }
        options.decide(given);
        options
    }

    /// The value of a switch, or the default if neither the user nor another option decided it.
    pub(super) fn switch(&self, name: &str, default: bool) -> bool {
        debug_assert!(SWITCHES.contains(&name), "-{name} is not read");
        self.values.get(name).copied().unwrap_or(default)
    }

    fn decide(&mut self, given: &Given<'_>) {
        let has = |name| !given.core_all(name).is_empty();
        for (name, why) in [("bind", "-bind set"), ("whitebind", "-whitebind set")] {
            if has(name) {
                self.set("listen", true, why);
            }
        }
        let has_no_room = given.integer("maxconnections").is_some_and(|count| count <= 0);
        if has("connect") || given.is_negated("connect") || has_no_room {
            self.set("dnsseed", false, "-connect or -maxconnections=0 set");
            self.set("listen", false, "-connect or -maxconnections=0 set");
        }
        if given.text("proxy").is_some_and(|proxy| !proxy.is_empty() && proxy != "0") {
            self.set("listen", false, "-proxy set");
            self.set("discover", false, "-proxy set");
        }
        if !self.switch("listen", true) {
            self.set("discover", false, "-listen=0");
        }
        if has("externalip") {
            self.set("discover", false, "-externalip set");
        }
        if self.switch("blocksonly", false) {
            self.set("whitelistrelay", false, "-blocksonly=1");
        }
        if self.switch("whitelistforcerelay", false) {
            self.set("whitelistrelay", true, "-whitelistforcerelay=1");
        }
        let only: Vec<_> = given.core_all("onlynet").into_iter().map(Network::from_name).collect();
        let is_clearnet = |network: &Option<Network>| matches!(network, Some(Network::Ipv4 | Network::Ipv6));
        if !only.is_empty() && !only.iter().any(is_clearnet) {
            self.set("dnsseed", false, "-onlynet excludes IPv4 and IPv6");
        }
    }

    /// Core's `SoftSetBoolArg`.
    fn set(&mut self, name: &'static str, value: bool, why: &str) {
        if self.values.contains_key(name) {
            return;
        }
        self.values.insert(name, value);
        self.notes.push(format!("parameter interaction: {why} -> setting -{name}={}", u8::from(value)));
    }
}
