#!/bin/bash
# Tests that need other systems as processes. It installs into the cache folder what package registries provide and is
# not installed yet, runs each system on a small chain, and prints what it ran and what it left out and why. It changes
# no system packages. A system that cannot be installed is left out, which is printed.
# Bitcoin Core and Knots are required in any case.
set -eu
cd "$(dirname "$0")/.."
say() { echo "test-peers: $*"; }
# Built with the features that the tests use, so that nothing is compiled twice (see the Makefile). The lab looks for
# `lydian` in its own folder.
cargo build --quiet --locked --profile test --workspace --test kernels --bin lydian-lab --bin lydian
lab() { "${CARGO_TARGET_DIR:-target}/debug/lydian-lab" "$@"; }
say "the files of others in the page are those of their packages"
tools/vendor.sh
nodes=lydian,bitcoind,knots
servers=lydian
say "Bitcoin Knots: $(lab peers install knots)"
for name in btcd bcoin electrs electrumx; do
  if version=$(lab peers install "$name"); then
    say "$name: $version"
    case $name in
      electrs | electrumx) servers=$servers,$name ;;
      *) nodes=$nodes,$name ;;
    esac
  else
    say "LEFT OUT: $name, which could not be installed (see above)"
  fi
done
lab peers list

say "Knots syncs from Lydian and Lydian from Knots, by v1 and v2, through reorganisations of 10 and 150 blocks; UTXO hashes must be equal"
cargo test --locked --workspace --test peers -- --ignored

say "Core and Lydian estimate fees after the same thousand blocks; all estimates and the files must be equal"
cargo test --locked -p lydian-node --test rpc fees::estimates_after_a_thousand_blocks -- --ignored

chain="--preset mainnet-mix --blocks 440 --full 4 --seed 2"
say "Lydian, Core and Knots reindex the same chains; tip and UTXO hash must be those that follow from the blocks"
# shellcheck disable=SC2086 # the chain is several words
lab reindex $chain --nodes lydian,bitcoind,knots --runs 1
lab reindex --preset worst --nodes lydian,bitcoind,knots --runs 1
for server in bitcoind knots lydian; do
  say "all nodes sync the first chain from $server"
  # shellcheck disable=SC2086
  lab sync $chain --nodes "$nodes" --server "$server" --runs 1
done
say "Electrum servers serve the first chain; balance, history and coins must be those that follow from the blocks, over Esplora's API too"
# shellcheck disable=SC2086
lab electrum $chain --servers "$servers" --esplora --ask 10 --passes 1 --connections 1,8 --load-seconds 1

say "the same above a Lydian node"
# shellcheck disable=SC2086
lab electrum $chain --node lydian --servers "$servers" --ask 10 --passes 1 --connections 1,8 --load-seconds 1

case $nodes in *bcoin*)
  say "bcoin's worker processes are measured together with it"
  cargo test --locked --workspace --test rivals -- --ignored
  ;;
esac
case $servers in *electrs*)
  say "electrs above Lydian, whose REST interface it reads, serves a chain with reused scripts"
  cargo test --locked --workspace --test electrum -- --ignored above_lydian_electrs
  ;;
esac
case $servers in *electrumx*)
  say "ElectrumX above Lydian serves the same chain"
  cargo test --locked --workspace --test electrum -- --ignored above_lydian_electrumx
  ;;
esac
if [ "$servers" = lydian,electrs,electrumx ]; then
  say "Lydian, electrs and ElectrumX above Bitcoin Core serve the same chain"
  cargo test --locked --workspace --test electrum -- --ignored the_servers
fi

if lnd=$(tools/lnd.sh); then
  say "two $(basename "$lnd") on Lydian, and two on Core, open channels, pay, and close them, also by force"
  cargo test --locked -p lydian-node --test rpc two_lnds_on -- --ignored
else
  say "LEFT OUT: lnd, which could not be built (see above)"
fi

say "Core accepts the blocks of our templates of 1,000 random mempools, and long polls end when Core's do"
cargo test --locked -p lydian-node --test rpc templates:: -- --ignored

libraries=${XDG_CACHE_HOME:-$HOME/.cache}/lydian/electrum-libraries-1
install_libraries() {
  rm -rf -- "$libraries.new" && mkdir -p "$libraries.new" &&
    npm install --prefix "$libraries.new" --ignore-scripts --no-audit --no-fund --no-update-notifier --silent \
      @electrum-cash/network@4.2.2 @electrum-cash/web-socket@1.2.3 @mempool/electrum-client@1.1.9 &&
    mv "$libraries.new" "$libraries"
}
if command -v node >/dev/null && { [ -d "$libraries" ] || install_libraries; }; then
  say "libraries of wallets in JavaScript ask Lydian over websocket, TCP and TLS, and are notified"
  LYDIAN_ELECTRUM_LIBRARIES=$libraries cargo test --locked --workspace --test rpc electrum_libraries -- --ignored
else
  say "LEFT OUT: libraries of wallets in JavaScript, which npm could not install (see above)"
fi

axe=${XDG_CACHE_HOME:-$HOME/.cache}/lydian/axe-core-1
install_axe() {
  rm -rf -- "$axe.new" && mkdir -p "$axe.new" &&
    npm install --prefix "$axe.new" --ignore-scripts --no-audit --no-fund --no-update-notifier --silent axe-core@4.14.1 &&
    mv "$axe.new" "$axe"
}
if command -v npm >/dev/null && { [ -d "$axe" ] || install_axe; }; then
  say "axe-core finds nothing serious in the panels of the page"
  LYDIAN_AXE=$axe/node_modules/axe-core/axe.min.js cargo test --locked --workspace --test page axe -- --ignored
else
  say "LEFT OUT: the accessibility of the page, as npm could not install axe-core (see above)"
fi

say "100,000 random PSBTs are decided as Core decides them"
cargo test --locked -p lydian-node --test rpc many_psbts -- --ignored

say "\`make run\` with a smaller chain, stopped after one second"
RUN_BIN=$PWD/target/debug RUN_FOLDER=$PWD/target/run-test RUN_BLOCKS=440 RUN_FULL=4 RUN_SECONDS=1 tools/run.sh </dev/null
rm -rf -- target/run-test

tools/setup.sh store || say "LEFT OUT: packages for the store of the shared index, see above"
tools/store.sh

if tools/setup.sh dist && tools/setup.sh package; then
  say "the Debian package of these programs is installed, synced, upgraded, removed and purged in a fresh system; the image runs"
  cargo build --quiet --locked --profile test --workspace --test kernels --bin xtask --bin lydian-cli
  DIST_FOLDER=target/package-test DIST_PROGRAMS=${CARGO_TARGET_DIR:-target}/debug tools/dist.sh
  DIST_FOLDER=target/package-test tools/package-test.sh
  rm -rf -- target/package-test
else
  say "LEFT OUT: the Debian package and the image, whose tools could not be installed (see above)"
fi
lab peers list --left-out | sed 's/^/test-peers: LEFT OUT: /'
say "LEFT OUT: btcd over v2: its v2 transport is off by default and experimental"
