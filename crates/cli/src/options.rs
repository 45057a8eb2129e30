//! The table of options, used by the parser and by `-help`. Data only. Names and meanings are those of Bitcoin Core's
//! client.

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    /// The value after `=`, as shown in the help; empty for a switch.
    pub(crate) argument: &'static str,
    pub(crate) group: Group,
    /// Whether `-noNAME` is accepted.
    pub(crate) may_negate: bool,
    /// Whether `-NAME` without a value is refused.
    pub(crate) needs_value: bool,
    /// Whether it applies only to main if it is outside of a section of the file.
    pub(crate) is_per_chain: bool,
    pub(crate) help: &'static str,
}

/// The section of the help that lists an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Command,
    Server,
    Call,
    Chain,
    Files,
    /// Accepted but not shown.
    Hidden,
}

impl Group {
    pub(crate) const SHOWN: [Group; 5] = [Group::Command, Group::Server, Group::Call, Group::Chain, Group::Files];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Command => "Commands, instead of a method",
            Group::Server => "Server and credentials",
            Group::Call => "Calls",
            Group::Chain => "Chain (determines the port and the location of the cookie file)",
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
        help: "Show the number of known peer addresses by network",
        ..SWITCH
    },
    Opt {
        name: "generate",
        group: Group::Command,
        help: "Generate blocks: calls getnewaddress, then generatetoaddress. Two numbers may follow: the number of blocks (default: 1), and the \
               maximum number of tries (default: 1000000). Needs a node with a wallet",
        ..SWITCH
    },
    Opt {
        name: "getinfo",
        group: Group::Command,
        help: "Show a summary of the node's state. It comes from several calls, so its parts may be from different times",
        ..SWITCH
    },
    Opt {
        name: "netinfo",
        group: Group::Command,
        help: "Show a summary of the peers. A level from 0 to 4 may follow (default: 0), and \"outonly\"; or \"help\", which describes the output",
        ..SWITCH
    },
    Opt {
        name: "rpcconnect",
        argument: "<host[:port]>",
        group: Group::Server,
        help: "The host on which the node runs (default: 127.0.0.1)",
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
        help: "The cookie file with the credentials that the node generated. A relative path is relative to the chain's directory in the data directory (default: .cookie)",
        ..SWITCH
    },
    Opt { name: "rpcuser", argument: "<name>", group: Group::Server, help: "The user name, for use with -rpcpassword", ..SWITCH },
    Opt {
        name: "rpcpassword",
        argument: "<password>",
        group: Group::Server,
        help: "The password, instead of the cookie file. Prefer lydian.conf or -stdinrpcpass: every user of this machine can see command \
               lines",
        ..SWITCH
    },
    Opt { name: "stdinrpcpass", group: Group::Server, help: "Read the password from the first line of standard input", ..SWITCH },
    Opt { name: "rpcwait", group: Group::Server, help: "Wait until the node is ready", ..SWITCH },
    Opt {
        name: "rpcwaittimeout",
        argument: "<seconds>",
        group: Group::Server,
        may_negate: false,
        help: "The maximum time to wait with -rpcwait; 0: no limit (default: 0)",
        ..SWITCH
    },
    Opt {
        name: "rpcclienttimeout",
        argument: "<seconds>",
        group: Group::Server,
        help: "Time out a call after this time; 0: never (default: 900)",
        ..SWITCH
    },
    Opt {
        name: "named",
        group: Group::Call,
        help: "Pass arguments as name=value; those without a name are positional",
        ..SWITCH
    },
    Opt {
        name: "stdin",
        group: Group::Call,
        help: "Read more arguments from standard input, one per line. With -stdinrpcpass, the first line is the password",
        ..SWITCH
    },
    Opt {
        name: "rpcwallet",
        argument: "<name>",
        group: Group::Call,
        help: "Send the call to /wallet/<name>, for a node that has wallets; Lydian has none",
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
        help: "Colour the output of -getinfo: always, never, or auto, which means on a terminal only (default: auto)",
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
        help: "The configuration file. A relative path is relative to the data directory (default: lydian.conf, or \
               bitcoin.conf if only that exists)",
        ..SWITCH
    },
    Opt { name: "help", group: Group::Files, help: "Print this help and exit (also -h or -?)", ..SWITCH },
    Opt { name: "version", group: Group::Files, help: "Print the version and exit", ..SWITCH },
    // Accepted as by Core's client, so that its command lines and files keep working.
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
    fn each_option_is_there_once_and_shown_ones_have_help() {
        for (index, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[index + 1..].iter().all(|other| other.name != option.name), "{}", option.name);
            assert_eq!(option.help.is_empty(), option.group == Group::Hidden, "{}", option.name);
        }
        assert!(find("rpcport").is_some_and(|option| option.is_per_chain));
        assert!(find("datadir").is_some_and(|option| !option.may_negate));
        assert!(find("nooption").is_none());
    }
}
