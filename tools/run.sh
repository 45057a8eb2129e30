#!/bin/bash
# What `make run` shows: a chain like mainnet's of 550 blocks is made once, then validated from nothing, every script of every block, with the display;
# at the end stand the time of each stage and the distance to the floor of this machine.
set -eu
cd "$(dirname "$0")/.."
chain=target/run/chain
node=target/run/node
if [ ! -f "$chain/stats.json" ]; then
  rm -rf -- "$chain"
  echo "Making a chain of 550 blocks with mainnet's mix of inputs (once; about a minute on 2 cores) ..."
  target/release/lydian-lab chain --preset mainnet-mix --blocks 550 --full 100 --seed 1 --out "$chain" >/dev/null
fi
rm -rf -- "$node"
mkdir -p "$node"
target/release/lydian import "$chain" -regtest "-datadir=$node"
cat <<TEXT

Its data directory is $node. Try:
  target/release/lydian info -regtest -datadir=$node
  target/release/lydian utxohash -regtest -datadir=$node
  target/release/lydian-lab reindex --chain $chain --nodes lydian,bitcoind --runs 3   # beside Bitcoin Core, once \`make judge\` has built it
TEXT
