//! The RPC methods that the page may call. Data only.
//!
//! A method that is in no table cannot be called through the page.

/// Methods that change nothing. Those that begin with `lydian_` are the page's own.
pub const READING: &[&str] = &[
    "analyzepsbt",
    "decodepsbt",
    "decoderawtransaction",
    "decodescript",
    "deriveaddresses",
    "estimaterawfee",
    "estimatesmartfee",
    "getaddednodeinfo",
    "getaddrmaninfo",
    "getbestblockhash",
    "getblock",
    "getblockchaininfo",
    "getblockcount",
    "getblockfilter",
    "getblockhash",
    "getblockheader",
    "getblockstats",
    "getchainstates",
    "getchaintips",
    "getchaintxstats",
    "getconnectioncount",
    "getdeploymentinfo",
    "getdescriptorinfo",
    "getdifficulty",
    "getindexinfo",
    "getmemoryinfo",
    "getmempoolancestors",
    "getmempoolcluster",
    "getmempooldescendants",
    "getmempoolentry",
    "getmempoolfeeratediagram",
    "getmempoolinfo",
    "getmininginfo",
    "getnettotals",
    "getnetworkhashps",
    "getnetworkinfo",
    "getnodeaddresses",
    "getorphantxs",
    "getpeerinfo",
    "getprioritisedtransactions",
    "getrawmempool",
    "getrawtransaction",
    "getrpcinfo",
    "gettxout",
    "gettxoutproof",
    "gettxspendingprevout",
    "getzmqnotifications",
    "help",
    "listbanned",
    "lydian_explore",
    "lydian_minedblock",
    "lydian_rejects",
    "lydian_replacements",
    "lydian_scriptcoins",
    "lydian_search",
    "testmempoolaccept",
    "uptime",
    "validateaddress",
    "verifytxoutproof",
];

/// Methods that change nothing and need a login, even if reading is open to all: they name addresses of wallets.
pub const PRIVATE: &[&str] = &["listelectrumbans", "listelectrumsessions"];

/// Methods that change the node: they need `-pageactions` and a login.
pub const ACTIONS: &[&str] = &[
    "addnode",
    "clearbanned",
    "clearelectrumbans",
    "disconnectelectrumsession",
    "disconnectnode",
    "logging",
    "ping",
    "sendrawtransaction",
    "setban",
    "setelectrumban",
    "setnetworkactive",
];

/// What the page may do with a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reading,
    Private,
    Action,
    Refused,
}

pub(crate) fn kind(method: &str) -> Kind {
    match () {
        () if READING.contains(&method) => Kind::Reading,
        () if PRIVATE.contains(&method) => Kind::Private,
        () if ACTIONS.contains(&method) => Kind::Action,
        () => Kind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_in_one_table() {
        for table in [READING, PRIVATE, ACTIONS] {
            assert!(table.is_sorted(), "{table:?}");
            let others = [READING, PRIVATE, ACTIONS].into_iter().filter(|other| *other != table);
            assert!(others.flatten().all(|method| !table.contains(method)), "{table:?}");
        }
        let kinds = ["getblock", "listelectrumsessions", "setban", "stop"].map(kind);
        assert_eq!(kinds, [Kind::Reading, Kind::Private, Kind::Action, Kind::Refused]);
    }
}
