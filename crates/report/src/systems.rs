//! Every system of the published benchmarks, one entry each.
//!
//! An entry has the system's name, how to get it, which settings make it validate everything, and what it cannot take
//! part in, with the source of that statement. Input: nothing. Output: the table behind the names of `--nodes`, `peers
//! list`, the reasons in results and the table of `docs/lab.md`. Must never: lack a system that an article measured.

use crate::results::{Experiment, LeftOut};

/// Whether a system is measured as a node or as an Electrum server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Validates the chain: `reindex`, `sync`.
    Node,
    /// Serves wallets beside a node: `electrum`.
    Electrum,
}

/// How to get a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `lydian-lab peers install KIND` installs it from this package source.
    Install(&'static str),
    /// The build that the tests use as the judge.
    Judge,
    /// Built together with the lab and expected beside it.
    Beside,
    /// In no package registry: the user builds it from this address and gives the path.
    Path(&'static str),
}

/// What an entry of [`System::cannot`] excludes a system from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    Reindex,
    Sync,
    Electrum,
    /// Nothing: the system runs, but a reader of its figures must know this.
    Note,
}

/// Something that a system cannot do.
#[derive(Clone, Copy, Debug)]
pub struct Cannot {
    pub bar: Bar,
    /// One sentence without the full stop.
    pub reason: &'static str,
    /// A repository and file, or an article.
    pub source: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The name in `--nodes` or `--servers`.
    pub kind: &'static str,
    /// The usual name.
    pub title: &'static str,
    pub role: Role,
    pub how: How,
    /// The settings with which the lab makes the system validate everything.
    pub validation: &'static str,
    pub cannot: &'static [Cannot],
}

const fn cannot(bar: Bar, reason: &'static str, source: &'static str) -> Cannot {
    Cannot { bar, reason, source }
}

/// The note on a system that the lab was never run with.
const EXPERIMENTAL: &str = "experimental: never run; the lab's settings for it come from its sources";

const ZEBRA: &str = "it was left before it checked scripts or kept coins, and it has no regtest";

/// In the order of the tables; Lydian is last.
pub const SYSTEMS: &[System] = &[
    System {
        kind: "bitcoind",
        title: "Bitcoin Core",
        role: Role::Node,
        how: How::Judge,
        validation: "-assumevalid=0",
        cannot: &[],
    },
    System {
        kind: "knots",
        title: "Bitcoin Knots",
        role: Role::Node,
        how: How::Install("Debian's unstable release"),
        validation: "-assumevalid=0",
        cannot: &[],
    },
    System {
        kind: "btcd",
        title: "btcd",
        role: Role::Node,
        how: How::Install("its Go module"),
        validation: "--nocheckpoints; it has no assumevalid",
        cannot: &[
            cannot(
                Bar::Reindex,
                "btcd rebuilds nothing from block files, and deletes its regtest database at each start",
                "btcsuite/btcd: blockdb.go",
            ),
            cannot(
                Bar::Note,
                "has no -par: its threads are set by GOMAXPROCS, for all its work",
                "btcsuite/btcd: config.go",
            ),
            cannot(Bar::Note, "tells no hash of its UTXO set", "btcsuite/btcd: rpcserver.go"),
        ],
    },
    System {
        kind: "bcoin",
        title: "bcoin",
        role: Role::Node,
        how: How::Install("its npm package"),
        validation: "--checkpoints=false",
        cannot: &[
            cannot(Bar::Reindex, "bcoin rebuilds nothing from Core's block files", "bcoin-org/bcoin: bin/node"),
            cannot(
                Bar::Note,
                "does not validate taproot: its spends cost it nothing",
                "bcoin-org/bcoin: pull request 1063",
            ),
            cannot(
                Bar::Note,
                "strict DER signatures from height 1,251 and CHECKLOCKTIMEVERIFY from 1,351 on its regtest, the height in the coinbase never",
                "bcoin-org/bcoin: lib/protocol/networks.js",
            ),
            cannot(Bar::Note, "tells no hash of its UTXO set", "bcoin-org/bcoin: lib/node/rpc.js"),
        ],
    },
    System {
        kind: "mako",
        title: "Mako",
        role: Role::Node,
        how: How::Path("github.com/chjj/mako"),
        validation: "-checkpoints=0",
        cannot: &[
            cannot(Bar::Reindex, "Mako rebuilds nothing from Core's block files", "chjj/mako: README.md"),
            cannot(Bar::Note, "does not validate taproot: its spends cost it nothing", "chjj/mako: README.md"),
            cannot(Bar::Note, "its cache ends at 2,048 MiB", "chjj/mako: src/base/config.c"),
        ],
    },
    System {
        kind: "gocoin",
        title: "Gocoin",
        role: Role::Node,
        how: How::Path("github.com/piotrnar/gocoin"),
        validation: "LastTrustedBlock at the genesis block",
        cannot: &[
            cannot(Bar::Reindex, "Gocoin's client reads no block files of Core's", "piotrnar/gocoin: client/main.go"),
            cannot(
                Bar::Note,
                "has no regtest: it takes part in a `sync` of main or test alone",
                "piotrnar/gocoin: client/common/config.go",
            ),
            cannot(
                Bar::Note,
                "has neither -par nor -dbcache: its threads are set by GOMAXPROCS, and all coins are in memory",
                "piotrnar/gocoin: client/common/config.go",
            ),
            cannot(Bar::Note, "tells no hash of its UTXO set", "piotrnar/gocoin: client/usif/webui"),
            cannot(Bar::Note, EXPERIMENTAL, "piotrnar/gocoin: client/common/config.go"),
        ],
    },
    System {
        kind: "libbitcoin",
        title: "libbitcoin",
        role: Role::Node,
        how: How::Path("github.com/libbitcoin/libbitcoin-server"),
        validation: "milestone at the genesis block",
        cannot: &[
            cannot(
                Bar::Reindex,
                "libbitcoin rebuilds nothing from Core's block files",
                "libbitcoin/libbitcoin-node: src/settings.cpp",
            ),
            cannot(Bar::Note, EXPERIMENTAL, "libbitcoin/libbitcoin-server: src/parser.cpp"),
        ],
    },
    System {
        kind: "floresta",
        title: "Floresta",
        role: Role::Node,
        how: How::Path("github.com/getfloresta/Floresta (the crate florestad 0.8.0 only prints `Hello, world!`)"),
        validation: "--no-assume-utreexo and no assumevalid",
        cannot: &[
            cannot(
                Bar::Reindex,
                "Floresta keeps no blocks and reads no block files",
                "getfloresta/Floresta: README.md",
            ),
            cannot(
                Bar::Sync,
                "Floresta needs a peer that sends utreexo proofs with each block, and no server of the lab does",
                "getfloresta/Floresta: README.md",
            ),
        ],
    },
    System {
        kind: "parity",
        title: "Parity Bitcoin",
        role: Role::Node,
        how: How::Path("github.com/paritytech/parity-bitcoin"),
        validation: "--verification-level=full",
        cannot: &[
            cannot(
                Bar::Sync,
                "on regtest it takes segwit for impossible and asks its peers for blocks without witnesses",
                "paritytech/parity-bitcoin: network/src/consensus.rs, is_segwit_possible",
            ),
            cannot(
                Bar::Note,
                "its makers have left it, and it does not validate taproot: such spends cost it nothing",
                "paritytech/parity-bitcoin: script/src/flags.rs",
            ),
            cannot(Bar::Note, EXPERIMENTAL, "paritytech/parity-bitcoin: pbtc/cli.yml"),
        ],
    },
    System {
        kind: "stratis",
        title: "Stratis",
        role: Role::Node,
        how: How::Path("github.com/stratisproject/StratisBitcoinFullNode"),
        validation: "-checkpoints=0; on regtest it assumes nothing valid",
        cannot: &[
            cannot(
                Bar::Reindex,
                "it keeps blocks in a database of its own and reads no block files of Core's",
                "stratisproject/StratisBitcoinFullNode: src/Stratis.Bitcoin.Features.BlockStore",
            ),
            cannot(
                Bar::Note,
                "archived by its makers, and it does not validate taproot: such spends cost it nothing",
                "stratisproject/StratisBitcoinFullNode: src/Stratis.Bitcoin.Networks/Deployments/BitcoinBIP9Deployments.cs",
            ),
            cannot(
                Bar::Note,
                "its regtest lets the deployment of CSV time out, so that relative locks go unchecked",
                "stratisproject/StratisBitcoinFullNode: src/Stratis.Bitcoin.Networks/BitcoinRegTest.cs",
            ),
            cannot(Bar::Note, EXPERIMENTAL, "stratisproject/StratisBitcoinFullNode: src/Stratis.Bitcoin/Configuration"),
        ],
    },
    System {
        kind: "blockcore",
        title: "Blockcore",
        role: Role::Node,
        how: How::Path("github.com/block-core/blockcore"),
        validation: "-checkpoints=0; on regtest it assumes nothing valid",
        cannot: &[
            cannot(
                Bar::Reindex,
                "it keeps blocks in a database of its own and reads no block files of Core's",
                "block-core/blockcore: src/Features/Blockcore.Features.BlockStore/Repository",
            ),
            cannot(
                Bar::Note,
                "does not validate taproot: such spends cost it nothing",
                "block-core/blockcore: src/Networks/Blockcore.Networks.Bitcoin/Deployments/BitcoinBIP9Deployments.cs",
            ),
            cannot(
                Bar::Note,
                "its regtest lets the deployment of CSV time out, so that relative locks go unchecked",
                "block-core/blockcore: src/Networks/Blockcore.Networks.Bitcoin/BitcoinRegTest.cs",
            ),
            cannot(Bar::Note, EXPERIMENTAL, "block-core/blockcore: src/Blockcore/Configuration"),
        ],
    },
    System {
        kind: "zebra",
        title: "Zebra BTC",
        role: Role::Node,
        how: How::Path("github.com/preston-evans98/zebra-btc"),
        validation: "none: it checks no scripts",
        cannot: &[
            cannot(Bar::Reindex, ZEBRA, "preston-evans98/zebra-btc: README.md, zebra-chain/src/parameters/network.rs"),
            cannot(Bar::Sync, ZEBRA, "preston-evans98/zebra-btc: README.md, zebra-chain/src/parameters/network.rs"),
        ],
    },
    System {
        kind: "lydian",
        title: "Lydian",
        role: Role::Node,
        how: How::Beside,
        validation: "-assumevalid=0",
        cannot: &[],
    },
    System {
        kind: "electrs",
        title: "electrs",
        role: Role::Electrum,
        how: How::Install("its crate"),
        validation: "",
        cannot: &[],
    },
    System {
        kind: "electrumx",
        title: "ElectrumX",
        role: Role::Electrum,
        how: How::Install("its PyPI package"),
        validation: "",
        cannot: &[],
    },
    System {
        kind: "esplora",
        title: "Esplora's electrs",
        role: Role::Electrum,
        how: How::Path("github.com/Blockstream/electrs"),
        validation: "",
        cannot: &[],
    },
    System {
        kind: "fulcrum",
        title: "Fulcrum",
        role: Role::Electrum,
        how: How::Path("github.com/cculianu/Fulcrum"),
        validation: "",
        cannot: &[],
    },
    System { kind: "lydian", title: "Lydian", role: Role::Electrum, how: How::Beside, validation: "", cannot: &[] },
];

/// The table of `docs/lab.md`, which `lydian-lab peers list --markdown` prints.
pub fn to_markdown() -> String {
    let head = "| name | system | how it comes here | validates everything by | what it cannot, and what its figures then mean |\n";
    let mut text = head.to_owned() + "|---|---|---|---|---|\n";
    for system in SYSTEMS {
        let role = if system.role == Role::Electrum { " (Electrum server)" } else { "" };
        let how = match system.how {
            How::Install(source) => format!("`peers install {}`, from {source}", system.kind),
            How::Judge => "`make judge`".to_owned(),
            How::Beside => "`make build`".to_owned(),
            How::Path(address) => format!("built from {address}; its path in `lab.toml`"),
        };
        let validation = if system.validation.is_empty() { "-" } else { system.validation };
        let cannot: Vec<String> = system.cannot.iter().map(Cannot::in_markdown).collect();
        let cannot = if cannot.is_empty() { "-".to_owned() } else { cannot.join("; ") };
        text.push_str(&format!("| `{}` | {}{role} | {how} | {validation} | {cannot} |\n", system.kind, system.title));
    }
    text
}

/// The first system of that name; a node before a server.
pub fn of(kind: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.kind == kind)
}

/// For a message: what is missing, and how to get it.
pub fn how(kind: &str) -> String {
    of(kind).map_or_else(String::new, |system| format!("{kind}: it is not here; {}", system.how.text(kind)))
}

/// Why a node does not take part; for its adapter.
pub fn kept_from(kind: &str, experiment: Experiment) -> Option<&'static str> {
    of(kind)?.cannot(experiment)
}

/// What a reader of a node's figures must know; for its adapter.
pub fn notes(kind: &str) -> Vec<String> {
    of(kind).map_or_else(Vec::new, System::notes)
}

/// What an experiment is called in the table.
pub fn bar_of(experiment: Experiment) -> Bar {
    match experiment {
        Experiment::Reindex => Bar::Reindex,
        Experiment::Sync => Bar::Sync,
    }
}

/// The names of one role, in the order of the table.
pub fn kinds(role: Role) -> Vec<&'static str> {
    SYSTEMS.iter().filter(|system| system.role == role).map(|system| system.kind).collect()
}

impl How {
    /// For people: how to get the system.
    pub fn text(self, kind: &str) -> String {
        match self {
            How::Install(_) => format!("`lydian-lab peers install {kind}`"),
            How::Judge => "`make judge` builds it".to_owned(),
            How::Beside => "`make build` puts it beside lydian-lab".to_owned(),
            How::Path(address) => format!("build it from {address} and name its path in lab.toml"),
        }
    }
}

impl Cannot {
    fn in_markdown(&self) -> String {
        let head = match self.bar {
            Bar::Reindex => "no `reindex`: ",
            Bar::Sync => "no `sync`: ",
            Bar::Electrum => "no `electrum`: ",
            Bar::Note => "",
        };
        format!("{head}{} ({})", self.reason, self.source)
    }
}

impl System {
    /// Whether the system takes part in nothing: its row is all there is, and it needs no adapter of its own.
    pub fn never_runs(&self) -> bool {
        let bars: &[Bar] = match self.role {
            Role::Node => &[Bar::Reindex, Bar::Sync],
            Role::Electrum => &[Bar::Electrum],
        };
        bars.iter().all(|bar| self.bar(*bar).is_some())
    }

    /// How to get the system, with the mark of one that the lab was never run with.
    fn how_to_get(&self) -> String {
        let is_experimental = self.cannot.iter().any(|cannot| cannot.reason == EXPERIMENTAL);
        let mark = if is_experimental { "; experimental: never run" } else { "" };
        format!("{}{mark}", self.how.text(self.kind))
    }

    /// For the results: a system that could take part, but was not among the values of this option.
    pub fn not_among(&self, option: &str) -> LeftOut {
        let reason = format!("it was not among {option}; {}", self.how_to_get());
        LeftOut { name: self.title.to_owned(), reason, source: None }
    }

    /// Why the system does not take part.
    pub fn bar(&self, bar: Bar) -> Option<&'static Cannot> {
        self.cannot.iter().find(|cannot| cannot.bar == bar)
    }

    /// The sentence for the lab's adapters.
    pub fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        self.bar(bar_of(experiment)).map(|cannot| cannot.reason)
    }

    /// The sentences for the lab's adapters.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.cannot.iter().filter(|cannot| cannot.bar == Bar::Note);
        notes.map(|cannot| cannot.reason.to_owned()).collect()
    }

    /// For the results: why the system is not in the table.
    pub fn left_out(&self, bar: Bar) -> LeftOut {
        match self.bar(bar) {
            Some(cannot) => LeftOut {
                name: self.title.to_owned(),
                reason: cannot.reason.to_owned(),
                source: Some(cannot.source.to_owned()),
            },
            None => LeftOut { name: self.title.to_owned(), reason: self.how_to_get(), source: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::{RealDisk, read_whole};
    use std::path::Path;

    /// Every system that appears in a published benchmark.
    const PUBLISHED: &[(&str, Role)] = &[
        ("Bitcoin Core", Role::Node),
        ("Bitcoin Knots", Role::Node),
        ("btcd", Role::Node),
        ("bcoin", Role::Node),
        ("Mako", Role::Node),
        ("Gocoin", Role::Node),
        ("libbitcoin", Role::Node),
        ("Floresta", Role::Node),
        ("Lydian", Role::Node),
        ("Parity Bitcoin", Role::Node),
        ("Stratis", Role::Node),
        ("Blockcore", Role::Node),
        ("Zebra BTC", Role::Node),
        ("electrs", Role::Electrum),
        ("ElectrumX", Role::Electrum),
        ("Esplora's electrs", Role::Electrum),
        ("Fulcrum", Role::Electrum),
        ("Lydian", Role::Electrum),
    ];

    #[test]
    fn no_system_is_silently_absent() {
        for &(title, role) in PUBLISHED {
            let found = SYSTEMS.iter().filter(|system| (system.title, system.role) == (title, role)).count();
            assert_eq!(found, 1, "{title} {role:?}");
        }
    }

    #[test]
    fn names_are_unique_in_a_role_and_sentences_whole() {
        for (index, system) in SYSTEMS.iter().enumerate() {
            let is_same = |other: &&System| (other.kind, other.role) == (system.kind, system.role);
            assert_eq!(SYSTEMS.iter().position(|other| is_same(&other)), Some(index), "{}", system.kind);
            assert!(system.role == Role::Electrum || !system.validation.is_empty(), "{}", system.kind);
            for cannot in system.cannot {
                assert!(cannot.reason.len() > 10 && !cannot.reason.ends_with('.'), "{}", cannot.reason);
                assert!(cannot.source.contains(':') || cannot.source.contains('/'), "{}", cannot.source);
            }
        }
    }

    #[test]
    fn the_document_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.md");
        let document = String::from_utf8(read_whole(&RealDisk, Path::new(path), 1 << 20).unwrap()).unwrap();
        let after = document.split_once("<!-- systems: `lydian-lab peers list --markdown` -->\n").unwrap().1;
        let table = after.split_once("<!-- end of systems -->").unwrap().0;
        assert_eq!(table.trim(), to_markdown().trim(), "put there what `lydian-lab peers list --markdown` prints");
    }

    #[test]
    fn left_out_names_the_bar_first_or_how_to_install() {
        let floresta = of("floresta").unwrap().left_out(Bar::Sync);
        assert!(floresta.reason.contains("utreexo proofs"));
        assert!(floresta.source.unwrap().starts_with("getfloresta/Floresta"));
        let mako = of("mako").unwrap().left_out(Bar::Sync);
        assert!(mako.reason.contains("github.com/chjj/mako") && mako.source.is_none(), "{}", mako.reason);
        assert_eq!(of("lydian").unwrap().role, Role::Node);
        let parity = of("parity").unwrap().not_among("--nodes").reason;
        assert!(parity.starts_with("it was not among --nodes; build it from"), "{parity}");
        assert!(parity.ends_with("; experimental: never run"), "{parity}");
        let never: Vec<&str> = SYSTEMS.iter().filter(|system| system.never_runs()).map(|system| system.title).collect();
        assert_eq!(never, ["Floresta", "Zebra BTC"]);
    }
}
