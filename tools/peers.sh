#!/bin/bash
# Tests that need other nodes as processes. Prints what it ran and, for each peer, what it left out and why.
set -eu
cat <<'TEXT'
test-peers: Bitcoin Core 31.99   ran in `make test` already, as the judge of scripts and blocks
test-peers: left out: Bitcoin Knots, btcd, bcoin and Floresta as peers: lydian has no network yet (it comes with the sync from peers)
test-peers: left out: electrs, ElectrumX, Electrum as clients: lydian serves no client yet (it comes with the RPC and the index)
test-peers: nothing was run beyond `make test`
TEXT
