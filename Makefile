# The one entry point; `make help` lists what there is.
#
# Every target works from a clean clone on Debian or Ubuntu with cargo. System packages that are missing are installed with apt when root, and
# named in one command otherwise. What outlives a checkout (the judge, btcd's tests) lies in $XDG_CACHE_HOME/lydian or ~/.cache/lydian.
#
# Settings: LYDIAN_SHARED   folder of the large test data, default ../shared; what is not there is reported and not run
#           JUDGE_SECONDS   time for each random comparison with Bitcoin Core: default 20 in `make test`, 600 in `make fuzz` (typed RPC calls too)
#           FUZZ_SECONDS    time for each fuzz target in `make fuzz`, default 60
#           RUN_SECONDS     `make run` ends so long after the sync; without a terminal at once
#           CRASH_KILLS     SIGKILLs of the node in `make crash`, default 1000
#           DAMAGE_OFFSETS  bytes of each file of a data directory that are damaged in `make crash`, default 40
#           CRASH_RUNS      crashes of the engine on the simulated disk in each test of `make crash`, default 5000
#           SOAK_SECONDS    how long `make soak` takes, default 3600

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lydian
FULLBLOCKTESTS := $(CACHE)/fullblocktests-0.25.0.jsonl
# Tools run in the profile of the tests, so that nothing is compiled twice.
TOOL := cargo run --quiet --locked --profile test
JUDGE_SECONDS ?= 20
FUZZ_SECONDS ?= 60
CRASH_KILLS ?= 1000
CRASH_RUNS ?= 5000
DAMAGE_OFFSETS ?= 40
SOAK_SECONDS ?= 3600

.PHONY: help setup build run test format clippy tidy fuzz-lock judge fullblocktests btcd browser tests generated generate test-peers bench bench-large table fuzz crash soak clean-cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: ## install the system packages that are missing (root), or name the command
	@tools/setup.sh

build: setup ## target/release/lydian, target/release/lydian-cli and target/release/lydian-lab
	cargo build --locked --release --bins

run: build ## sync a chain like mainnet's from a second node over loopback, every script checked, and stay up; Ctrl-C stops both
	@tools/run.sh

test: setup format clippy tidy fuzz-lock judge fullblocktests btcd browser tests generated ## everything CI checks

format:
	cargo fmt --all -- --check

clippy:
	cargo clippy --locked --profile test --workspace --all-targets -- -D warnings

tidy: ## the house rules
	$(TOOL) -p xtask -- tidy

fuzz-lock:
	@cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null || { echo "fuzz/Cargo.lock is stale: run 'cargo metadata --manifest-path fuzz/Cargo.toml' and commit it"; exit 1; }
	@cargo metadata --locked --format-version 1 --manifest-path rivals/Cargo.toml >/dev/null || { echo "rivals/Cargo.lock is stale: run 'cargo metadata --manifest-path rivals/Cargo.toml' and commit it"; exit 1; }

judge: setup ## build Bitcoin Core, the judge of the tests, once (about 10 minutes on 2 cores)
	$(TOOL) -p lydian-oracle --bin lydian-oracle-build

fullblocktests: ## dump btcd's full-block tests for our test that replays them
	@tools/fullblocktests/dump.sh $(FULLBLOCKTESTS)

btcd: ## build btcd from its Go module, a peer of the tests
	@$(TOOL) -p lydian-lab --bin lydian-lab -- peers install btcd || echo "btcd: its tests do not run"

browser: ## Chromium, in which a test looks at the lab's report
	@tools/setup.sh browser || echo "browser: the report's page is not looked at"

tests:
	LYDIAN_REQUIRE_BROWSER=$(if $(shell command -v chromium chromium-browser google-chrome google-chrome-stable | head -1),1) LYDIAN_REQUIRE_JUDGE=1 LYDIAN_JUDGE_SECONDS=$(JUDGE_SECONDS) cargo test --locked --workspace --no-fail-fast

generate: ## write the documents that are generated from tables
	$(TOOL) -p xtask -- generate

generated: generate
	@git diff --exit-code -- docs README.md || { echo "docs: generated files differ from their tables: run 'make generate' and commit"; exit 1; }

test-peers: judge ## tests against other nodes and Electrum servers as processes; electrs alone takes 20 minutes of one core, once
	@tools/setup.sh peers || echo "test-peers: what needs these packages is left out"
	@tools/peers.sh

bench: build judge ## this machine's limits, every benchmark, and the comparison with Bitcoin Core
	target/release/lydian-lab limits
	cargo bench --locked --workspace
	@tools/rivals.sh
	target/release/lydian-lab reindex --preset empty --blocks 2016 --nodes lydian,bitcoind --runs 3
	target/release/lydian-lab reindex --preset mainnet-mix --blocks 550 --full 100 --nodes lydian,bitcoind --runs 3
	target/release/lydian-lab sync --preset mainnet-mix --blocks 550 --full 100 --nodes lydian,bitcoind --runs 3

bench-large: build judge ## long: 8,800 blocks beside Bitcoin Core, then the coin store with 180 M coins beside RocksDB (20 GB of memory, 50 GB of disk)
	target/release/lydian-lab reindex --preset mainnet-mix --blocks 8800 --full 1600 --nodes lydian,bitcoind --runs 1
	cargo bench --locked -p lydian-coins --bench mix -- --coins 180000000 --operations 50000000 --cache-mb 4000
	@tools/rivals.sh --coins 180000000 --operations 50000000 --cache-mb 6000

table: build judge ## half an hour on a quiet machine: every node and Electrum server that can be had here, side by side, with a page of charts (target/table/report)
	@tools/table.sh

fuzz: judge ## each fuzz target for FUZZ_SECONDS, ten million signatures in lanes, then the comparisons with the judge for longer
	@tools/fuzz.sh $(FUZZ_SECONDS)
	@tools/miri.sh
	LYDIAN_LANE_CHECKS=10000000 cargo test --locked --release -p lydian-curve --test lanes
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_JUDGE_SECONDS=$(if $(filter file,$(origin JUDGE_SECONDS)),600,$(JUDGE_SECONDS)) cargo test --locked --release -p lydian-oracle -- --nocapture
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_RPC_SECONDS=$(if $(filter file,$(origin JUDGE_SECONDS)),600,$(JUDGE_SECONDS)) cargo test --locked --release -p lydian-node --test rpc arguments_of_every_type -- --nocapture

crash: judge ## attack the node by peers, kill the node CRASH_KILLS times, damage every file of a data directory, crash the engine CRASH_RUNS times in each way, and compare the states after
	LYDIAN_HOSTILE=1 cargo test --locked --release -p lydian-node --test crash hostile -- --nocapture --test-threads=1
	LYDIAN_CRASH_RUNS=$(CRASH_KILLS) LYDIAN_DAMAGE_OFFSETS=$(DAMAGE_OFFSETS) cargo test --locked --release -p lydian-node --test crash -- --nocapture
	LYDIAN_CRASH_RUNS=$(CRASH_RUNS) LYDIAN_ENGINE_SECONDS=60 cargo test --locked --release -p lydian-engine --test chains -- --nocapture

soak: ## peers that attack and RPC clients against one node for SOAK_SECONDS: memory and open files stay as they are after ten minutes of the hour
	LYDIAN_SOAK_SECONDS=$(SOAK_SECONDS) cargo test --locked --release -p lydian-node --test crash soak -- --nocapture

clean-cache: ## remove the judge and everything else kept outside the checkout
	rm -rf -- "$(CACHE)"
