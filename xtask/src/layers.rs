//! The table of crates: which crate may use which.
//!
//! Data only: the check `tidy::layers` compares it with the checkout and with `cargo metadata`, and `generate` prints
//! it as `docs/crates.md`. Invariants: every crate of the table exists; every `uses` names crates of lower layers that
//! the crate does use. A new crate must be added here. Levels only order the crates: a number may be free.

/// A crate of the workspace (names without the prefix `lydian-`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    pub(crate) purpose: &'static str,
    /// The workspace crates it uses, and the only ones it may use, besides those of `OPEN` on lower layers.
    pub(crate) uses: &'static [&'static str],
}

/// Crates that every layer above them may use.
pub(crate) const OPEN: &[&str] = &["stdx", "hash", "primitives"];

/// Crates beside the stack. They may use any crate; other crates may use them in tests only.
pub(crate) const BESIDE: &[(&str, &str)] = &[
    ("oracle", "Bitcoin Core as the judge of tests"),
    ("browser", "Chromium in tests"),
    ("sim", "a simulated world: disk, network, clock"),
    ("fuzz", "fuzz targets"),
    ("xtask", "house rules and generated documents"),
];

/// Crates that make chains, and run other systems as processes. The tests and benchmarks of every crate may use them,
/// whatever its layer.
pub(crate) const OPEN_TO_TESTS: &[&str] = &["chains", "lab"];

#[rustfmt::skip]
pub(crate) const LAYERS: &[Layer] = &[
    Layer { name: "stdx", level: 0, purpose: "what several crates need and is not Bitcoin: numbers from a seed, locks that ignore poisoning, sizes", uses: &[] },
    Layer { name: "style", level: 0, purpose: "colours and common rules of the page and the lab's report", uses: &[] },
    Layer { name: "hash", level: 1, purpose: "SHA-256d, tagged hashes, HASH160, SipHash, MuHash: plain and SIMD kernels", uses: &[] },
    Layer { name: "disk", level: 1, purpose: "opens all files", uses: &[] },
    Layer { name: "options", level: 2, purpose: "Core's option syntax: tables of options, configuration files, precedence, help", uses: &["disk"] },
    Layer { name: "curve", level: 2, purpose: "ECDSA, Schnorr and tweak checks in batches", uses: &[] },
    Layer { name: "primitives", level: 2, purpose: "header, transaction, block; parse and encode slices; no I/O, no clock", uses: &[] },
    Layer { name: "fees", level: 3, purpose: "fee estimates: Core's estimator and its file; no clock, no thread", uses: &["disk"] },
    Layer { name: "script", level: 3, purpose: "one interpreter generic over its checker, templates, signature hashes, flags", uses: &["curve"] },
    Layer { name: "wire", level: 3, purpose: "P2P messages and framing, sans-I/O", uses: &[] },
    Layer { name: "serve", level: 3, purpose: "what every server needs: listening, places, deadlines, byte budgets, HTTP, login; no Bitcoin", uses: &["disk"] },
    Layer { name: "consensus", level: 4, purpose: "rule tables as pure functions; owns HeaderView and CoinView; the plain validator", uses: &["script"] },
    Layer { name: "descriptor", level: 5, purpose: "addresses, output descriptors, kinds of output scripts, signing; no JSON, no RPC", uses: &["consensus", "script", "curve"] },
    Layer { name: "chain", level: 5, purpose: "header tree with the best header chain, block files, undo", uses: &["consensus", "disk"] },
    Layer { name: "coins", level: 5, purpose: "UTXO store: lookup, batch apply, checkpoint", uses: &["consensus", "disk"] },
    Layer { name: "chains", level: 5, purpose: "generated chains and their statistics; no command line, no charts", uses: &["consensus", "curve", "disk"] },
    Layer { name: "psbt", level: 6, purpose: "partially signed transactions: reading, writing, combining, analysing, finalizing; no JSON, no RPC", uses: &["descriptor", "consensus", "script", "curve"] },
    Layer { name: "engine", level: 6, purpose: "the pipeline and the window; sole writer of chain and coins", uses: &["chain", "coins", "consensus", "script", "curve", "disk"] },
    Layer { name: "index", level: 7, purpose: "indexes: followers of the chain that answer queries", uses: &["engine", "consensus", "script", "disk"] },
    Layer { name: "mempool", level: 7, purpose: "unconfirmed transactions: policy, clusters, pool, files; no sockets, no RPC", uses: &["engine", "fees", "descriptor", "consensus", "script", "curve", "disk"] },
    Layer { name: "second-opinion", level: 7, purpose: "Bitcoin Core's own code verifies accepted blocks again; optional, decides nothing", uses: &["engine", "consensus", "script"] },
    Layer { name: "p2p", level: 8, purpose: "peer state machines, addresses, download scheduling", uses: &["mempool", "wire", "consensus", "chain", "engine", "disk"] },
    Layer { name: "query", level: 8, purpose: "answers about scripts, transactions and headers for servers: one view of chain, index and mempool", uses: &["index", "mempool", "fees", "engine", "chain", "script"] },
    Layer { name: "shared-index", level: 9, purpose: "the index of scripts in a store that many front ends read: its pages, writer and reader; no driver", uses: &["query", "index", "engine", "disk"] },
    Layer { name: "electrum", level: 9, purpose: "the Electrum protocol", uses: &["query", "serve", "descriptor", "consensus"] },
    Layer { name: "dashboard", level: 9, purpose: "the page of the node: sessions, live data, the files of the page; no Bitcoin", uses: &["serve", "disk", "style"] },
    Layer { name: "esplora", level: 9, purpose: "Esplora's REST API", uses: &["query", "serve", "descriptor", "consensus", "script"] },
    Layer { name: "net", level: 9, purpose: "peer sockets, and the threads that drive the state machines of p2p", uses: &["p2p", "mempool", "wire", "engine", "disk"] },
    Layer { name: "rpc", level: 9, purpose: "Bitcoin Core's JSON-RPC", uses: &["engine", "fees", "index", "mempool", "p2p", "psbt", "serve", "wire", "chain", "descriptor", "consensus", "script", "curve", "disk"] },
    Layer { name: "zmq", level: 9, purpose: "notifications of blocks and transactions over ZeroMQ; ZMTP of its own", uses: &["engine", "consensus", "disk"] },
    Layer { name: "report", level: 9, purpose: "result files, charts, compare, project, history; starts nothing", uses: &["disk", "style"] },
    Layer { name: "front", level: 10, purpose: "front ends without data: the feed of a node, and what answers from it and the shared index", uses: &["shared-index", "query", "serve", "mempool", "index", "fees", "engine", "chain", "script"] },
    Layer { name: "index-cassandra", level: 10, purpose: "Apache Cassandra as the store of the shared index; its driver is optional", uses: &["shared-index"] },
    Layer { name: "node", level: 11, purpose: "the binary lydian: settings, wiring, signals; no validation logic", uses: &["net", "rpc", "zmq", "electrum", "esplora", "dashboard", "front", "query", "p2p", "index-cassandra", "shared-index", "index", "mempool", "fees", "second-opinion", "engine", "descriptor", "serve", "options", "wire", "chain", "coins", "consensus", "script", "curve", "disk"] },
    Layer { name: "cli", level: 11, purpose: "the binary lydian-cli", uses: &["rpc", "options", "disk"] },
    Layer { name: "lab", level: 11, purpose: "the binary lydian-lab: limits, runs against rivals; drives nodes as processes", uses: &["chains", "report", "wire", "curve", "disk"] },
];

pub(crate) fn layer(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

pub(crate) fn is_beside(name: &str) -> bool {
    BESIDE.iter().any(|(beside, _)| *beside == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_points_downwards() {
        for one in LAYERS {
            for used in one.uses {
                let used = layer(used).unwrap_or_else(|| panic!("{} uses {used}, which is not in the table", one.name));
                assert!(used.level < one.level, "{} uses {}", one.name, used.name);
                assert!(!OPEN.contains(&used.name), "{}: {} is open to it already", one.name, used.name);
            }
        }
    }
}
