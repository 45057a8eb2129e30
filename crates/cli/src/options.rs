//! The table of options, used by the parser and by `-help`. Data only. Names and meanings are those of Bitcoin Core's
//! client. As Core's client, it has no `-includeconf`, so that it includes no files.

use lydian_options::{Kind, Rules};
use std::convert::Infallible;

/// An entry; call sites read the value by name, since most options decide the one call of the client together.
pub(crate) type Opt = lydian_options::Opt<(), Infallible>;

/// Headings in help.
pub(crate) mod group {
    use lydian_options::Group;

    pub(super) const COMMAND: Group = Group("Commands, instead of a method");
    pub(super) const SERVER: Group = Group("Server and credentials");
    pub(super) const CALL: Group = Group("Calls");
    pub(super) const CHAIN: Group = Group("Chain (determines the port and the location of the cookie file)");
    pub(super) const FILES: Group = Group("Files and help");

    /// In the order of help.
    pub(crate) const SHOWN: [Group; 5] = [COMMAND, SERVER, CALL, CHAIN, FILES];
}

const SWITCH: Opt = Opt::SWITCH;
const TEXT: Opt = Opt { default: "", ..Opt::TEXT };

/// The rules of an option; `None` if there is no such option.
pub(crate) fn rules(name: &str) -> Option<Rules> {
    OPTIONS.iter().find(|option| option.name == name).map(Opt::rules)
}

/// Sorted within each group as help shows them.
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Opt] = &[
    Opt {
        name: "addrinfo",
        group: group::COMMAND,
        help: "Show the number of known peer addresses by network",
        ..SWITCH
    },
    Opt {
        name: "generate",
        group: group::COMMAND,
        help: "Generate blocks: calls getnewaddress, then generatetoaddress. Two numbers may follow: the number of blocks (default: 1), and the \
               maximum number of tries (default: 1000000). Needs a node with a wallet",
        ..SWITCH
    },
    Opt {
        name: "getinfo",
        group: group::COMMAND,
        help: "Show a summary of the node's state. It comes from several calls, so its parts may be from different times",
        ..SWITCH
    },
    Opt {
        name: "netinfo",
        group: group::COMMAND,
        help: "Show a summary of the peers. A level from 0 to 4 may follow (default: 0), and \"outonly\"; or \"help\", which describes the output",
        ..SWITCH
    },
    Opt {
        name: "rpcconnect",
        argument: "<host[:port]>",
        group: group::SERVER,
        default: "127.0.0.1",
        help: "The host on which the node runs",
        ..TEXT
    },
    Opt {
        name: "rpcport",
        argument: "<port>",
        group: group::SERVER,
        is_of_chain: true,
        default: "8332, testnet3: 18332, testnet4: 48332, signet: 38332, regtest: 18443",
        help: "The port of its RPC server",
        ..TEXT
    },
    Opt {
        name: "rpccookiefile",
        argument: "<file>",
        kind: Kind::Path,
        group: group::SERVER,
        default: ".cookie",
        help: "The cookie file with the credentials that the node generated. A relative path is relative to the chain's directory in the data directory",
        ..TEXT
    },
    Opt { name: "rpcuser", argument: "<name>", group: group::SERVER, help: "The user name, for use with -rpcpassword", ..TEXT },
    Opt {
        name: "rpcpassword",
        argument: "<password>",
        group: group::SERVER,
        help: "The password, instead of the cookie file. Prefer lydian.conf or -stdinrpcpass: every user of this machine can see command \
               lines",
        ..TEXT
    },
    Opt { name: "stdinrpcpass", group: group::SERVER, help: "Read the password from the first line of standard input", ..SWITCH },
    Opt { name: "rpcwait", group: group::SERVER, help: "Wait until the node is ready", ..SWITCH },
    Opt {
        name: "rpcwaittimeout",
        argument: "<seconds>",
        group: group::SERVER,
        may_negate: false,
        default: "0",
        help: "The maximum time to wait with -rpcwait; 0: no limit",
        ..TEXT
    },
    Opt {
        name: "rpcclienttimeout",
        argument: "<seconds>",
        group: group::SERVER,
        default: "900",
        help: "Time out a call after this time; 0: never",
        ..TEXT
    },
    Opt {
        name: "named",
        group: group::CALL,
        help: "Pass arguments as name=value; those without a name are positional",
        ..SWITCH
    },
    Opt {
        name: "stdin",
        group: group::CALL,
        help: "Read more arguments from standard input, one per line. With -stdinrpcpass, the first line is the password",
        ..SWITCH
    },
    Opt {
        name: "rpcwallet",
        argument: "<name>",
        group: group::CALL,
        help: "Send the call to /wallet/<name>, for a node that has wallets; Lydian has none",
        ..TEXT
    },
    Opt {
        name: "rpcid",
        argument: "<id>",
        group: group::CALL,
        may_negate: false,
        needs_value: true,
        default: "1",
        help: "The id of the request",
        ..TEXT
    },
    Opt {
        name: "color",
        argument: "<when>",
        choices: &["always", "never", "auto"],
        group: group::CALL,
        may_negate: false,
        default: "auto",
        help: "Colour the output of -getinfo: always, never, or auto, which means on a terminal only",
        ..TEXT
    },
    Opt {
        name: "chain",
        argument: "<chain>",
        choices: &["main", "test", "testnet4", "signet", "regtest"],
        group: group::CHAIN,
        default: "main",
        help: "main, test, testnet4, signet or regtest",
        ..TEXT
    },
    Opt { name: "regtest", group: group::CHAIN, help: "Equivalent to -chain=regtest", ..SWITCH },
    Opt { name: "signet", group: group::CHAIN, help: "Equivalent to -chain=signet", ..SWITCH },
    Opt { name: "testnet", group: group::CHAIN, help: "Equivalent to -chain=test, which is testnet3", ..SWITCH },
    Opt { name: "testnet4", group: group::CHAIN, help: "Equivalent to -chain=testnet4", ..SWITCH },
    Opt {
        name: "datadir",
        argument: "<dir>",
        kind: Kind::Path,
        group: group::FILES,
        may_negate: false,
        default: "~/.lydian",
        help: "The data directory of the node",
        ..TEXT
    },
    Opt {
        name: "conf",
        argument: "<file>",
        kind: Kind::Path,
        group: group::FILES,
        default: "lydian.conf, or bitcoin.conf if only that exists",
        help: "The configuration file. A relative path is relative to the data directory",
        ..TEXT
    },
    Opt { name: "help", group: group::FILES, help: "Print this help and exit (also -h or -?)", ..SWITCH },
    Opt { name: "version", group: group::FILES, help: "Print the version and exit", ..SWITCH },
    // For the manual page lydian-cli(1).
    Opt { name: "help-manual", argument: "<yyyy-mm-dd>", ..TEXT },
    // Accepted as by Core's client, so that its command lines and files keep working.
    Opt { name: "h", ..SWITCH },
    Opt { name: "?", ..SWITCH },
    Opt { name: "ipcconnect", argument: "<address>", ..TEXT },
    Opt { name: "stdinwalletpassphrase", ..SWITCH },
    Opt { name: "signetchallenge", argument: "<hex>", may_negate: false, ..TEXT },
    Opt { name: "signetseednode", argument: "<host>", may_negate: false, ..TEXT },
    Opt { name: "testactivationheight", argument: "<name@height>", ..TEXT },
    Opt { name: "vbparams", argument: "<deployment:start:end>", ..TEXT },
];

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_options::Group;

    #[test]
    fn each_option_is_there_once_and_shown_ones_have_help() {
        for (index, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[index + 1..].iter().all(|other| other.name != option.name), "{}", option.name);
            assert_eq!(option.help.is_empty(), option.group == Group::HIDDEN, "{}", option.name);
        }
        assert!(rules("rpcport").is_some_and(|rules| rules.is_of_chain));
        assert!(rules("datadir").is_some_and(|rules| !rules.may_negate));
        assert!(rules("nooption").is_none());
    }
}
