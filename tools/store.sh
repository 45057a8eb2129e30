#!/bin/bash
# Tests of the store of the shared index on three nodes of Apache Cassandra on loopback. It installs Cassandra into the
# cache folder if it is not installed yet; without Java or Maven the tests are left out, which is printed.
set -eu
cd "$(dirname "$0")/.."
say() { echo "test-store: $*"; }

node=lydian-node/cassandra
# Built like the other tools of the tests (see the Makefile).
cargo build --quiet --locked --profile test --workspace --test kernels --bin lydian-lab
if ! version=$("${CARGO_TARGET_DIR:-target}/debug/lydian-lab" store install); then
  say "LEFT OUT: the cluster of Cassandra, which could not be installed (see above)"
  exit 0
fi
say "the driver of Cassandra is built, and clippy finds nothing in it"
cargo clippy --quiet --locked --profile test -p lydian-index-cassandra -p lydian-node --features $node --all-targets -- -D warnings
say "three nodes of Cassandra $version start, are killed and stopped, and know each other again"
cargo test --locked --workspace --lib -- --ignored store::tests::three_nodes
say "the driver keeps what the index relies on while nodes are killed, paused for 30 s, wiped, and while two are gone"
cargo test --locked --workspace --features $node --lib -- --nocapture --include-ignored driver::
say "a node writes its index while it is killed at random moments, reorganises, and loses two of three nodes of the store"
cargo test --locked --workspace --features $node --test rpc -- --nocapture --include-ignored shared_index::cluster::a_node
say "front ends answer as their nodes do while nodes and front ends end and return"
cargo test --locked --workspace --features $node --test rpc -- --nocapture --include-ignored front::cluster::front_ends
say "wallets at front ends get right answers while nodes of the store, the writing node and a front end are killed"
# The program with the feature is built by the tests above.
cargo test --locked --workspace --features $node --test electrum -- --nocapture --include-ignored fronts::
# Last, because it sometimes fails: a replaced node that hears no gossip within 30 s ends, three times in a row at most.
say "a node that lost its data is replaced, and gets them from the others"
cargo test --locked --workspace --lib -- --ignored store::tests::a_node_without_its_data
