//! The table of options: one entry yields the parser and `-help`. Data only. Names and meanings are those of Bitcoin Core's client.

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    /// What follows `=`, as help shows it; empty for a switch.
    pub(crate) argument: &'static str,
    pub(crate) group: Group,
    /// `-noNAME` is understood.
    pub(crate) may_negate: bool,
    /// `-NAME` alone is none.
    pub(crate) needs_value: bool,
    /// At the top of the file it counts for main alone.
    pub(crate) is_per_chain: bool,
    pub(crate) help: &'static str,
}

/// Where help shows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Command,
    Server,
    Call,
    Chain,
    Files,
    /// Understood, not shown.
    Hidden,
}

impl Group {
    pub(crate) const SHOWN: [Group; 5] = [Group::Command, Group::Server, Group::Call, Group::Chain, Group::Files];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Command => "In place of a method, one of",
            Group::Server => "Where the node is and who calls",
            Group::Call => "How it is called",
            Group::Chain => "Which chain (this gives the port and the place of the cookie)",
            Group::Files => "Files and help",
            Group::Hidden => "",
        }
    }
}

const SWITCH: Opt = Opt {
    name: "",
    argument: "",
    group: Group::Hidden,
    may_negate: true,
    needs_value: false,
    is_per_chain: false,
    help: "",
};

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// Sorted within each group as help shows them.
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Opt] = &[
    Opt {
        name: "addrinfo",
        group: Group::Command,
        help: "How many addresses of peers the node knows, by network",
        ..SWITCH
    },
    Opt {
        name: "generate",
        group: Group::Command,
        help: "Make blocks: calls getnewaddress, then generatetoaddress. Two numbers may follow: how many blocks (default: 1), and how often a \
               nonce is tried (default: 1000000). Needs a node with a wallet",
        ..SWITCH
    },
    Opt {
        name: "getinfo",
        group: Group::Command,
        help: "The state of the node at a glance, from several calls, so not all of one moment",
        ..SWITCH
    },
    Opt {
        name: "netinfo",
        group: Group::Command,
        help: "The peers at a glance. A level from 0 to 4 may follow (default: 0), and \"outonly\"; or \"help\", which tells what is shown",
        ..SWITCH
    },
    Opt {
        name: "rpcconnect",
        argument: "<host[:port]>",
        group: Group::Server,
        help: "The machine on which the node runs (default: 127.0.0.1)",
        ..SWITCH
    },
    Opt {
        name: "rpcport",
        argument: "<port>",
        group: Group::Server,
        is_per_chain: true,
        help: "The port of its RPC server (default: 8332, testnet3: 18332, testnet4: 48332, signet: 38332, regtest: 18443)",
        ..SWITCH
    },
    Opt {
        name: "rpccookiefile",
        argument: "<file>",
        group: Group::Server,
        help: "The password that the node made for its owner; relative to the directory of the chain in the data directory (default: .cookie)",
        ..SWITCH
    },
    Opt { name: "rpcuser", argument: "<name>", group: Group::Server, help: "The name to call by, with -rpcpassword", ..SWITCH },
    Opt {
        name: "rpcpassword",
        argument: "<password>",
        group: Group::Server,
        help: "The password to call by, in place of the cookie. Better in lydian.conf or by -stdinrpcpass: everybody on this machine can see \
               command lines",
        ..SWITCH
    },
    Opt { name: "stdinrpcpass", group: Group::Server, help: "Read that password from the first line of standard input", ..SWITCH },
    Opt { name: "rpcwait", group: Group::Server, help: "Wait until the node answers", ..SWITCH },
    Opt {
        name: "rpcwaittimeout",
        argument: "<seconds>",
        group: Group::Server,
        may_negate: false,
        help: "Wait no longer than that; 0: for ever (default: 0)",
        ..SWITCH
    },
    Opt {
        name: "rpcclienttimeout",
        argument: "<seconds>",
        group: Group::Server,
        help: "Give up a call after that time; 0: never (default: 900)",
        ..SWITCH
    },
    Opt {
        name: "named",
        group: Group::Call,
        help: "Arguments are written name=value; those without a name come first, in their order",
        ..SWITCH
    },
    Opt {
        name: "stdin",
        group: Group::Call,
        help: "Read more arguments from standard input, one a line. With -stdinrpcpass the first line is the password",
        ..SWITCH
    },
    Opt {
        name: "rpcwallet",
        argument: "<name>",
        group: Group::Call,
        help: "Call /wallet/<name>, for a node that has wallets; Lydian has none",
        ..SWITCH
    },
    Opt {
        name: "rpcid",
        argument: "<id>",
        group: Group::Call,
        may_negate: false,
        needs_value: true,
        help: "The id of the request (default: 1)",
        ..SWITCH
    },
    Opt {
        name: "color",
        argument: "<when>",
        group: Group::Call,
        may_negate: false,
        help: "Colours of -getinfo: always, never, or auto, which is on a terminal (default: auto)",
        ..SWITCH
    },
    Opt {
        name: "chain",
        argument: "<chain>",
        group: Group::Chain,
        help: "main, test, testnet4, signet or regtest (default: main)",
        ..SWITCH
    },
    Opt { name: "regtest", group: Group::Chain, help: "Equivalent to -chain=regtest", ..SWITCH },
    Opt { name: "signet", group: Group::Chain, help: "Equivalent to -chain=signet", ..SWITCH },
    Opt { name: "testnet", group: Group::Chain, help: "Equivalent to -chain=test, which is testnet3", ..SWITCH },
    Opt { name: "testnet4", group: Group::Chain, help: "Equivalent to -chain=testnet4", ..SWITCH },
    Opt {
        name: "datadir",
        argument: "<dir>",
        group: Group::Files,
        may_negate: false,
        help: "The data directory of the node (default: ~/.lydian)",
        ..SWITCH
    },
    Opt {
        name: "conf",
        argument: "<file>",
        group: Group::Files,
        help: "The configuration file; relative to the data directory (default: lydian.conf)",
        ..SWITCH
    },
    Opt { name: "help", group: Group::Files, help: "Print this and end (also -h or -?)", ..SWITCH },
    Opt { name: "version", group: Group::Files, help: "Print the version and end", ..SWITCH },
    // Understood as Core's client understands them, so that its command lines and files keep working.
    Opt { name: "h", ..SWITCH },
    Opt { name: "?", ..SWITCH },
    Opt { name: "ipcconnect", argument: "<address>", ..SWITCH },
    Opt { name: "stdinwalletpassphrase", ..SWITCH },
    Opt { name: "signetchallenge", argument: "<hex>", may_negate: false, ..SWITCH },
    Opt { name: "signetseednode", argument: "<host>", may_negate: false, ..SWITCH },
    Opt { name: "testactivationheight", argument: "<name@height>", ..SWITCH },
    Opt { name: "vbparams", argument: "<deployment:start:end>", ..SWITCH },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once_and_what_is_shown_is_told() {
        for (index, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[index + 1..].iter().all(|other| other.name != option.name), "{}", option.name);
            assert_eq!(option.help.is_empty(), option.group == Group::Hidden, "{}", option.name);
        }
        assert!(find("rpcport").is_some_and(|option| option.is_per_chain));
        assert!(find("datadir").is_some_and(|option| !option.may_negate));
        assert!(find("nooption").is_none());
    }
}
