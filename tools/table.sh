#!/bin/bash
# Makes the full table of this machine: every node and Electrum server that registries provide, side by side, and a page
# with the results. Argument: a folder for the results, default target/table. TABLE_RUNS is the number of runs, default
# 3. The machine must be idle for about half an hour; a run that was disturbed is marked. Systems that cannot be
# installed are listed in the tables with the reason. If it was interrupted, starting it again with the same folder
# resumes it.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/table}
runs=${TABLE_RUNS:-3}
lab=${RUN_BIN:-target/release}/lydian-lab
chain="--preset mainnet-mix --blocks 550 --full 100"
mkdir -p -- "$out"

"$lab" peers install knots btcd bcoin electrs electrumx || echo "table: some systems could not be installed, see above"
# A run that does not count is in the table with its reason; the other experiments continue.
experiment() { # NAME COMMAND...
  local file=$out/$1.json
  shift
  "$lab" "$@" --out "$file" --resume || echo "table: $* ended with exit code $?"
}
# shellcheck disable=SC2086 # the chain is several words
{
  experiment reindex-550 reindex $chain --nodes lydian,bitcoind,knots --runs "$runs"
  experiment reindex-empty reindex --preset empty --blocks 2016 --nodes lydian,bitcoind,knots --runs 5
  experiment sync-rivals sync $chain --nodes lydian,bitcoind,knots,btcd,bcoin --runs "$runs"
  experiment electrum-reuse electrum --preset reuse --ask 400 --servers electrs,electrumx,lydian --query-seconds 60 --load-seconds 5
}
"$lab" report "$out"/{reindex-550,reindex-empty,sync-rivals,electrum-reuse}.json --out "$out/report"
echo "table: $out/report/index.html"
