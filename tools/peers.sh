#!/bin/bash
# Tests that need other nodes as processes. Prints what it ran and, for each peer, what it left out and why. Knots and btcd are installed into the cache
# folder if they are not there yet; nothing of the system's packages changes.
set -eu
cd "$(dirname "$0")/.."
lab() { cargo run --quiet --locked --profile test -p lydian-lab --bin lydian-lab -- "$@"; }

echo "test-peers: Bitcoin Core: the judge of scripts and blocks, and a peer, in \`make test\`"
echo "test-peers: Bitcoin Knots: $(lab peers install knots)"
nodes=lydian,bitcoind,knots
if btcd=$(lab peers install btcd); then
  echo "test-peers: btcd: $btcd; a peer in \`make test\`"
  nodes=$nodes,btcd
else
  echo "test-peers: LEFT OUT: btcd, which could not be installed (see above)"
fi
# Beside lydian-lab, where the lab looks for it.
cargo build --quiet --locked --profile test -p lydian-node --bin lydian

echo "test-peers: Knots syncs from Lydian and Lydian from Knots, by v1 and v2, through reorganisations of 10 and 150 blocks; UTXO hashes must be equal"
cargo test --locked -p lydian-node --test peers -- --ignored

echo "test-peers: Lydian, Core and Knots rebuild the same chains; tip and UTXO hash must be those that follow from the blocks"
lab reindex --preset mainnet-mix --blocks 440 --full 4 --seed 2 --nodes lydian,bitcoind,knots --runs 1
lab reindex --preset worst --nodes lydian,bitcoind,knots --runs 1
for server in bitcoind knots lydian; do
  echo "test-peers: all of them sync the first chain from $server"
  lab sync --preset mainnet-mix --blocks 440 --full 4 --seed 2 --nodes "$nodes" --server "$server" --runs 1
done
echo "test-peers: \`make run\` with a smaller chain, ended after a second"
RUN_BIN=$PWD/target/debug RUN_FOLDER=$PWD/target/run-test RUN_BLOCKS=440 RUN_FULL=4 RUN_SECONDS=1 tools/run.sh </dev/null
rm -rf -- target/run-test
cat <<'TEXT'
test-peers: LEFT OUT: btcd by v2: its v2 transport is off by default and experimental
test-peers: LEFT OUT: bcoin and Mako: they know no taproot; Gocoin: it has no regtest; Floresta: it syncs from utreexo peers alone; libbitcoin: in no registry
test-peers: LEFT OUT: electrs, ElectrumX, Electrum as clients: lydian has no index yet
TEXT
