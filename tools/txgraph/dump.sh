#!/bin/sh
# Writes vectors for the tests of the cluster graph (crates/mempool/src/graph/tests): random clusters or random changes,
# with the answers of Bitcoin Core's own code. Run `make judge` first, which fetches Core's source. Needs g++ with C++20.
#
# usage: tools/txgraph/dump.sh linearizations CASES TRANSACTIONS_MAX SEED
#        tools/txgraph/dump.sh txgraph SCENARIOS CHANGES SEED
#
# The tests read another file than the one in testdata/ from LYDIAN_LINEARIZATIONS and LYDIAN_TXGRAPH.
set -eu
here=$(dirname "$0")
core=$(sed -n 3p "$HOME"/.cache/lydian/core-*/stamp)/src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=$1
shift
g++ -std=c++20 -O2 -I"$core" "$here/$name.cpp" "$here/stubs.cpp" "$core/txgraph.cpp" "$core/util/feefrac.cpp" \
  "$core/crypto/chacha20.cpp" "$core/support/cleanse.cpp" -o "$work/$name"
"$work/$name" "$@"
