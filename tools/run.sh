#!/bin/bash
# Runs the demo of `make run`. A mainnet-like chain of 550 blocks is made once and imported into one lydian, the server.
# A second lydian with an empty data directory downloads it over loopback and verifies every script, with the display.
# Then it keeps running on regtest, and commands to try are printed. Ctrl-C stops both nodes. Without a terminal, the
# script ends RUN_SECONDS (default 0) after the sync; with one, it does so only if RUN_SECONDS is set. The exit code is
# 1 if the tips differ, or if a node does not shut down cleanly.
set -eu
cd "$(dirname "$0")/.."
# `make test-peers` sets these: another build, a smaller chain, a separate folder.
bin=${RUN_BIN:-$PWD/target/release}
run=${RUN_FOLDER:-$PWD/target/run}
blocks=${RUN_BLOCKS:-550}
full=${RUN_FULL:-100}
chain=$run/chain
server=$run/server
node=$run/node
port=${RUN_PORT:-28444}
rpcport=${RUN_RPC_PORT:-28443}
electrumport=${RUN_ELECTRUM_PORT:-28401}
esploraport=${RUN_ESPLORA_PORT:-28402}
pageport=${RUN_PAGE_PORT:-28480}
if [ -n "${RUN_SECONDS:-}" ]; then seconds=$RUN_SECONDS; elif [ -t 0 ]; then seconds=; else seconds=0; fi

height() { "$bin/lydian" info --json -regtest "-datadir=$1" 2>/dev/null | sed -n 's/.*"height": *\([0-9]*\).*/\1/p' | head -1; }
tip() { "$bin/lydian" info --json -regtest "-datadir=$1" | sed -n 's/.*"tip": *"\([0-9a-f]*\)".*/\1/p' | head -1; }

if [ ! -f "$chain/stats.json" ]; then
  rm -rf -- "$chain"
  echo "Making a chain of $blocks blocks with mainnet's mix of inputs (once) ..."
  "$bin/lydian-lab" chain --preset mainnet-mix --blocks "$blocks" --full "$full" --seed 1 --out "$chain" >/dev/null
fi
if [ "$(height "$server")" != "$blocks" ]; then
  rm -rf -- "$server"
  mkdir -p "$server"
  echo "Importing it into the server (once) ..."
  "$bin/lydian" import "$chain" -regtest "-datadir=$server" 2>/dev/null >/dev/null
fi
rm -rf -- "$node"
mkdir -p "$node"

server_pid=
node_pid=
is_stopped=
# Both nodes may have received the Ctrl-C too; it is not an error if one has already exited.
stop() {
  is_stopped=1
  [ -z "$node_pid" ] || kill -TERM "$node_pid" 2>/dev/null || true
  [ -z "$server_pid" ] || kill -TERM "$server_pid" 2>/dev/null || true
}
trap stop INT TERM

rm -f -- "$server/regtest/debug.log"
"$bin/lydian" -regtest "-datadir=$server" -listen=1 "-bind=127.0.0.1:$port" -connect=0 -server=0 -printtoconsole=0 </dev/null >"$run/server.txt" 2>&1 &
server_pid=$!
# Wait until its log reports that it listens.
for _ in $(seq 300); do
  grep -q "^[^ ]* Bound to 127.0.0.1:$port" "$server/regtest/debug.log" 2>/dev/null && break
  kill -0 "$server_pid" 2>/dev/null || break
  sleep 0.1
done
if ! kill -0 "$server_pid" 2>/dev/null; then
  echo "run: the server has exited; the end of its log:" >&2
  cat "$run/server.txt" >&2
  tail -5 "$server/regtest/debug.log" >&2 || true
  exit 1
fi

echo "A second node syncs $blocks blocks from the server at 127.0.0.1:$port and verifies every script ..."
ended=
started=$(date +%s.%N)
"$bin/lydian" -regtest "-datadir=$node" "-connect=127.0.0.1:$port" -listen=0 "-rpcport=$rpcport" -assumevalid=0 -printtoconsole=0 \
  -electrum "-electrumbind=127.0.0.1:$electrumport" -electrumtlsbind=0 -electrumwsbind=0 \
  -esplora "-esplorabind=127.0.0.1:$esploraport" "-pageport=$pageport" </dev/null &
node_pid=$!
synced=
while kill -0 "$node_pid" 2>/dev/null && [ -z "$is_stopped" ]; do
  if grep -q "UpdateTip: new best=.* height=$blocks " "$node/regtest/debug.log" 2>/dev/null; then
    synced=1
    ended=$(date +%s.%N)
    break
  fi
  sleep 0.1
done

if [ -n "$synced" ]; then
  # The display of a sync has several lines and draws over existing output; that of a synced node has one line.
  [ ! -t 2 ] || sleep 2
  cat <<TEXT

Synced in $(awk -v a="$started" -v b="$ended" 'BEGIN { printf "%.1f", b - a }') s. The node keeps running${seconds:+ for $seconds s}; Ctrl-C stops it and its server. Its data directory is
$node. In another terminal:
  cli="$bin/lydian-cli -regtest -datadir=$node -rpcport=$rpcport"
  $bin/lydian page -regtest -datadir=$node -rpcport=$rpcport -pageport=$pageport   # a link to its page
  \$cli -getinfo
  \$cli getblockchaininfo
  \$cli getpeerinfo
  \$cli gettxoutsetinfo
  \$cli generatetoaddress 10 bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202
  echo '{"id":0,"method":"blockchain.headers.subscribe"}' | nc -q 1 127.0.0.1 $electrumport   # as an Electrum wallet
  curl http://127.0.0.1:$esploraport/blocks/tip/height   # Esplora's REST API
  $bin/lydian info -regtest -datadir=$node
  $bin/lydian-lab sync --chain $chain --nodes lydian,bitcoind --runs 3   # compared with Bitcoin Core, once \`make judge\` has built it
TEXT
  if [ -n "$seconds" ]; then
    # In the background, so that a signal is handled immediately.
    sleep "$seconds" &
    wait $! || true
    stop
  fi
fi

# `wait` also returns on a signal.
end() {
  local code
  while :; do
    code=0
    wait "$1" || code=$?
    kill -0 "$1" 2>/dev/null || break
  done
  return "$code"
}
code=0
end "$node_pid" || code=$?
kill -TERM "$server_pid" 2>/dev/null || true
end "$server_pid" || code=$?
if [ "$code" -ne 0 ]; then
  echo "run: a node exited with code $code" >&2
  exit 1
fi
if [ -n "$synced" ] && [ -z "$seconds" ]; then exit 0; fi
if [ -z "$synced" ]; then
  [ -n "$is_stopped" ] && exit 0
  echo "run: the node exited before it reached the tip" >&2
  exit 1
fi
if [ "$(tip "$node")" != "$(tip "$server")" ]; then
  echo "run: the tips differ" >&2
  exit 1
fi
