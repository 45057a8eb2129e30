#!/bin/bash
# Tests that need other nodes as processes. Prints what it ran and, for each peer, what it left out and why. Knots is installed into the cache folder
# if it is not there yet; nothing of the system's packages changes.
set -eu
cd "$(dirname "$0")/.."
lab() { cargo run --quiet --locked --profile test -p lydian-lab --bin lydian-lab -- "$@"; }

echo "test-peers: Bitcoin Core: the judge of scripts and blocks in \`make test\`"
echo "test-peers: Bitcoin Knots: $(lab peers install knots)"
echo "test-peers: Lydian, Core and Knots rebuild the same chains; tip and UTXO hash must be those that follow from the blocks"
# Beside lydian-lab, where the lab looks for it.
cargo build --quiet --locked --profile test -p lydian-node --bin lydian
lab reindex --preset mainnet-mix --blocks 440 --full 4 --seed 2 --nodes lydian,bitcoind,knots --runs 1
lab reindex --preset worst --nodes lydian,bitcoind,knots --runs 1
cat <<'TEXT'
test-peers: left out: btcd, bcoin and Floresta as peers: lydian has no network yet (it comes with the sync from peers)
test-peers: left out: electrs, ElectrumX, Electrum as clients: lydian serves no client yet (it comes with the RPC and the index)
TEXT
