//! The table of methods, used for dispatch, `help` and `docs/rpc.md`. A new method is added to the list of its module.

use crate::method::{Method, Methods};
use crate::methods;

/// All methods.
pub const METHODS: Methods = Methods::new(&[
    methods::blockchain::METHODS,
    methods::block::METHODS,
    methods::waiting::METHODS,
    methods::txoutproof::METHODS,
    methods::mempool::METHODS,
    methods::mempool_submit::METHODS,
    methods::mempool_fees::METHODS,
    methods::mempool_file::METHODS,
    methods::fees::METHODS,
    methods::zmq::METHODS,
    methods::submit::METHODS,
    methods::mining::METHODS,
    methods::template::METHODS,
    methods::net::METHODS,
    methods::net_addresses::METHODS,
    methods::net_bans::METHODS,
    methods::net_peers::METHODS,
    methods::electrum::METHODS,
    methods::rawtransaction::METHODS,
    methods::psbt::METHODS,
    methods::address::METHODS,
    methods::descriptor::METHODS,
    methods::keys::METHODS,
    methods::scan::METHODS,
    methods::filters::METHODS,
    methods::control::METHODS,
    methods::testing::METHODS,
]);

/// The names of the methods that have figures of their own: all but those that only tests call.
pub(crate) fn counted() -> impl Iterator<Item = &'static str> {
    let is_of_tests = |name: &str| methods::testing::METHODS.iter().any(|method| method.name == name);
    METHODS.iter().map(|method| method.name).filter(move |name| !is_of_tests(name))
}

/// Methods that Core does not have.
pub(crate) const OWN: &[Method] = methods::electrum::METHODS;

const NO_PRIVATE: &str = "Lydian has no private broadcast (-privatebroadcast)";
pub(crate) const NO_WALLET: &str = "Lydian has no wallet; Core without a wallet refuses it too";
const NO_SIGNER: &str = "Lydian has no wallet, for which external signers (-signer) sign";

/// Methods of Core that Lydian answers with "Method not found", and why.
pub const REFUSED: &[(&str, &str)] = &[
    ("abortprivatebroadcast", NO_PRIVATE),
    ("backupwallet", NO_WALLET),
    ("bumpfee", NO_WALLET),
    ("createwallet", NO_WALLET),
    ("createwalletdescriptor", NO_WALLET),
    ("dumptxoutset", "Lydian does not write or load UTXO snapshots yet"),
    ("encryptwallet", NO_WALLET),
    ("enumeratesigners", NO_SIGNER),
    ("exportasmap", "Lydian does not support ASMap (-asmap)"),
    ("fundrawtransaction", NO_WALLET),
    ("getaddressesbylabel", NO_WALLET),
    ("getbalance", NO_WALLET),
    ("gethdkeys", NO_WALLET),
    ("getnewaddress", NO_WALLET),
    ("getprivatebroadcastinfo", NO_PRIVATE),
    ("getreceivedbyaddress", NO_WALLET),
    ("getreceivedbylabel", NO_WALLET),
    ("gettransaction", NO_WALLET),
    ("importdescriptors", NO_WALLET),
    ("keypoolrefill", NO_WALLET),
    ("listdescriptors", NO_WALLET),
    ("listreceivedbyaddress", NO_WALLET),
    ("listreceivedbylabel", NO_WALLET),
    ("listsinceblock", NO_WALLET),
    ("listtransactions", NO_WALLET),
    ("listunspent", NO_WALLET),
    ("loadtxoutset", "Lydian does not write or load UTXO snapshots yet"),
    ("loadwallet", NO_WALLET),
    ("lockunspent", NO_WALLET),
    ("migratewallet", NO_WALLET),
    ("psbtbumpfee", NO_WALLET),
    ("rescanblockchain", NO_WALLET),
    ("restorewallet", NO_WALLET),
    ("send", NO_WALLET),
    ("sendall", NO_WALLET),
    ("sendmany", NO_WALLET),
    ("sendtoaddress", NO_WALLET),
    ("setlabel", NO_WALLET),
    ("setwalletflag", NO_WALLET),
    ("signmessage", NO_WALLET),
    ("signrawtransactionwithwallet", NO_WALLET),
    ("simulaterawtransaction", NO_WALLET),
    ("unloadwallet", NO_WALLET),
    ("walletcreatefundedpsbt", NO_WALLET),
    ("walletpassphrase", NO_WALLET),
    ("walletpassphrasechange", NO_WALLET),
    ("walletprocesspsbt", NO_WALLET),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_name_is_found_and_stands_once() {
        let mut names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        assert!(names.iter().all(|name| METHODS.find(name).is_some_and(|method| method.name == *name)));
        names.extend(REFUSED.iter().map(|(name, _)| name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(REFUSED.is_sorted() && REFUSED.iter().all(|(_, reason)| !reason.is_empty()));
        assert!(METHODS.find("getinfo").is_none(), "programs call it to check that it was removed");
    }

    /// Collects the names that Core registers in the files below a folder: those of its `CRPCCommand` tables, and the
    /// wallet methods from the table of `bitcoin-cli`, since the source that the judge is built from has no wallet.
    fn collect(folder: &Path, names: &mut BTreeSet<String>) {
        #[allow(clippy::disallowed_methods, reason = "a test reads the judge's source")]
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !["test", "bench", "qt"].iter().any(|name| path.ends_with(name)) {
                    collect(&path, names);
                }
                continue;
            }
            if path.extension().is_none_or(|end| end != "cpp") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for table in text.split("CRPCCommand ").skip(1).filter(|table| table.contains("[]{")) {
                let body = table.split("\n    };").next().unwrap_or_default().split("\n};").next().unwrap_or_default();
                names.extend(body.split("\", &").skip(1).filter_map(|rest| Some(rest.split('}').next()?.to_owned())));
            }
            for table in text.split("vRPCConvertParams[] =").skip(1) {
                let body = table.split("};").next().unwrap_or_default();
                names.extend(body.split("{ \"").skip(1).filter_map(|rest| Some(rest.split('"').next()?.to_owned())));
            }
        }
    }

    /// Every method in the source that the judge was built from is implemented or refused for a reason, and every
    /// refused method exists in Core.
    #[test]
    fn every_method_of_core_is_in_a_table() {
        let name = "every_method_of_core_is_in_a_table";
        let Some(source) = lydian_oracle::or_skip(name, lydian_oracle::build::locate()).map(|built| built.source)
        else {
            return;
        };
        let mut names = BTreeSet::new();
        collect(&source.join("src"), &mut names);
        assert!(names.len() > 150 && names.contains("getblock") && names.contains("sendtoaddress"), "{names:?}");
        let is_refused = |name: &str| REFUSED.iter().any(|(refused, _)| *refused == name);
        let missing: Vec<&String> =
            names.iter().filter(|name| METHODS.find(name).is_none() && !is_refused(name)).collect();
        assert!(missing.is_empty(), "neither implemented nor refused: {missing:?}");
        let unknown: Vec<&str> = REFUSED.iter().map(|(name, _)| *name).filter(|name| !names.contains(*name)).collect();
        assert!(unknown.is_empty(), "no method of Core: {unknown:?}");
    }
}
