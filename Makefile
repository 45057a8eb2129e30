# The entry point for developers; `make help` lists the targets.
#
# Every target works from a clean clone on Debian or Ubuntu with cargo. Missing system packages are installed with apt
# if run as root; otherwise the command to install them is printed. Files that outlive a checkout (the judge, btcd's
# tests) are in $XDG_CACHE_HOME/lydian or ~/.cache/lydian.
#
# Settings: LYDIAN_SHARED   folder of the large test data (default ../shared); tests whose data is missing are skipped
#           JUDGE_SECONDS   time for each random comparison with Bitcoin Core (default 20 in `make test`, 600 in
#                           `make fuzz`, where it also applies to typed RPC calls)
#           TEST_THREADS    tests that `make test` runs at once (default: two for each core)
#           MEMPOOL_STEPS   steps that `make fuzz` compares with Bitcoin Core's mempool (default 500000)
#           FUZZ_SECONDS    time for each fuzz target in `make fuzz` (default 60)
#           RUN_SECONDS     time after the sync at which `make run` ends (default 0 without a terminal)
#           CRASH_KILLS     number of times `make crash` kills the node, and a save of the mempool (default 1000); a
#                           tenth as often while it saves fee estimates
#           CRASH_STOPS     number of times `make crash` stops the node by SIGTERM (default 200)
#           DAMAGE_OFFSETS  number of bytes that `make crash` damages in each file of a data directory (default 40)
#           CRASH_RUNS      number of engine crashes on the simulated disk in each test of `make crash` (default 5000)
#           SOAK_SECONDS    duration of `make soak` (default 3600)
#           ARM64_CRATES    crates that `make test-arm64` tests, or all (default: the layers up to the coin store)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lydian
FULLBLOCKTESTS := $(CACHE)/fullblocktests-0.25.0.jsonl
# Tools are built in the test profile and with the features that `cargo test --workspace` gives to shared crates, so
# that nothing is compiled twice. Naming a test is what makes cargo count the features of tests; any small one does.
TOOL := cargo build --quiet --locked --profile test --workspace --test kernels --bin
BUILT := $(or $(CARGO_TARGET_DIR),target)/debug
SECOND_OPINION := lydian-node/second-opinion
JUDGE_SECONDS ?= 20
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
FUZZ_SECONDS ?= 60
MEMPOOL_STEPS ?= 500000
CRASH_KILLS ?= 1000
CRASH_RUNS ?= 5000
CRASH_STOPS ?= 200
DAMAGE_OFFSETS ?= 40
SOAK_SECONDS ?= 3600
ARM64_CRATES ?= stdx hash curve primitives script consensus coins

.PHONY: help setup setup-test build man dist dist-check run test format clippy tidy fuzz-lock judge fullblocktests btcd clients browser wallet prometheus shells tests generated generate second-opinion test-store test-peers test-arm64 bench-arm64 bench bench-large table fuzz crash soak audit clean-cache

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: ## install the system packages that a build needs (as root), or print the command: a C compiler
	@tools/setup.sh build

setup-test: ## the same for what the tests need: what Bitcoin Core and btcd are built with
	@tools/setup.sh test

build: setup ## build target/release/lydian, lydian-cli and lydian-lab
	LYDIAN_COMMIT="$${LYDIAN_COMMIT-$$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)}" cargo build --locked --release -p lydian-node -p lydian-cli -p lydian-lab --bins

man: build ## write the manual pages to target/man
	@mkdir -p target/man
	@date=$$(git log -1 --format=%cs) && target/release/lydian "-help-manual=$$date" >target/man/lydian.1 && target/release/lydian-cli "-help-manual=$$date" >target/man/lydian-cli.1 && target/release/lydian-lab manual --out target/man --date "$$date"

dist: setup ## make a release in target/dist, for x86-64 and ARM: archives, Debian packages, image, lists of components, SHA256SUMS
	@tools/setup.sh dist
	@tools/dist.sh

dist-check: setup ## build a release twice, in different folders, time zones, with other settings and numbers of jobs; hashes must be equal
	@tools/setup.sh dist
	@tools/dist-check.sh

run: build ## sync a mainnet-like chain from a second node over loopback, verify all scripts, and keep running; Ctrl-C stops both nodes
	@tools/run.sh

test: setup-test format clippy tidy fuzz-lock judge fullblocktests btcd clients browser wallet prometheus shells tests generated ## run everything that CI checks, except test-peers

format:
	cargo fmt --all -- --check

clippy:
	cargo clippy --locked --profile test --workspace --all-targets -- -D warnings

tidy: ## check the house rules
	$(TOOL) xtask
	$(BUILT)/xtask tidy

fuzz-lock:
	@cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null || { echo "fuzz/Cargo.lock is stale: run 'cargo metadata --manifest-path fuzz/Cargo.toml' and commit it"; exit 1; }
	@cargo metadata --locked --format-version 1 --manifest-path rivals/Cargo.toml >/dev/null || { echo "rivals/Cargo.lock is stale: run 'cargo metadata --manifest-path rivals/Cargo.toml' and commit it"; exit 1; }

judge: setup-test ## build Bitcoin Core, the judge of the tests, once (about 10 minutes on 2 cores)
	$(TOOL) lydian-oracle-build
	$(BUILT)/lydian-oracle-build

fullblocktests: ## dump btcd's full-block tests, which one of our tests replays
	@tools/fullblocktests/dump.sh $(FULLBLOCKTESTS)

btcd: ## build btcd from its Go module, for use as a peer in tests
	$(TOOL) lydian-lab
	@$(BUILT)/lydian-lab peers install btcd || echo "btcd: its tests are skipped"

clients: ## install the clients in Python and Go that tests run on the node: python-bitcoinlib, pyzmq, btcd's rpcclient
	@tools/setup.sh clients || echo "clients: the tests with what is missing are skipped"
	@tools/clients.sh

browser: ## install Chromium, in which tests open the node's page and the lab's report
	@tools/setup.sh browser || echo "browser: the tests in a browser are skipped"

wallet: ## install Electrum, the wallet that a test connects to the node
	@tools/setup.sh wallet || echo "wallet: the test with the Electrum wallet is skipped"

prometheus: ## install Prometheus, which scrapes a node in a test
	@tools/setup.sh prometheus || echo "prometheus: the test with Prometheus is skipped"

shells: ## install shells, mandoc and systemd-analyze, with which tests check completions, manual pages and the unit
	@tools/setup.sh shells || echo "shells: the tests with what is missing are skipped"

# Many tests wait for processes and timers, so that more of them than cores run at once. Without doc-tests, of which
# there are none (the house rule "doc examples").
tests:
	RUST_TEST_THREADS=$(TEST_THREADS) LYDIAN_REQUIRE_SHELLS=$(if $(and $(shell command -v fish),$(shell command -v zsh),$(shell command -v mandoc),$(shell command -v systemd-analyze)),1) LYDIAN_REQUIRE_ELECTRUM=$(if $(shell command -v electrum),1) LYDIAN_REQUIRE_PROMETHEUS=$(if $(shell command -v promtool),1) LYDIAN_REQUIRE_BROWSER=$(if $(shell command -v chromium chromium-browser google-chrome google-chrome-stable | head -1),1) LYDIAN_REQUIRE_JUDGE=1 LYDIAN_JUDGE_SECONDS=$(JUDGE_SECONDS) cargo test --locked --workspace --tests --no-fail-fast

generate: ## write the documents that are generated from tables
	$(TOOL) xtask --bin lydian
	$(BUILT)/xtask generate

generated: generate
	@git diff --exit-code -- docs contrib README.md || { echo "docs: generated files differ from their tables: run 'make generate' and commit"; exit 1; }

second-opinion: judge ## build with Bitcoin Core's code for -secondopinion, and test that both agree; building that code once takes 3 minutes on two cores
	cargo clippy --locked --profile test --workspace --all-targets --features $(SECOND_OPINION) -- -D warnings
	LYDIAN_REQUIRE_JUDGE=1 cargo test --locked --workspace --features $(SECOND_OPINION) --test opinion
	LYDIAN_REQUIRE_JUDGE=1 cargo test --locked --workspace --features $(SECOND_OPINION) --test rpc second_opinion

test-store: ## test the store of the shared index on three nodes of Cassandra, which are killed, paused and wiped (needs Java 17 and Maven)
	@tools/setup.sh store || echo "test-store: without these packages the tests are left out"
	@tools/store.sh

test-peers: judge second-opinion ## test against other nodes and Electrum servers; building electrs once takes 20 minutes on one core
	@tools/setup.sh peers || echo "test-peers: tests that need these packages are left out"
	@tools/peers.sh

test-arm64: ## build the whole workspace for 64-bit ARM, and test ARM64_CRATES under qemu, with fewer random checks and seeds
	@tools/arm64.sh cargo build --locked --profile test --workspace
	@LYDIAN_LANE_CHECKS=20000 LYDIAN_SIM_SEEDS=20 LYDIAN_ENGINE_HANG_SECONDS=1200 tools/arm64.sh cargo test --locked $(if $(filter all,$(ARM64_CRATES)),--workspace --tests --no-fail-fast,$(addprefix -p lydian-,$(ARM64_CRATES)))

bench-arm64: ## count the instructions that a signature takes on 64-bit ARM, under qemu
	@tools/arm64.sh instructions

bench: build judge browser ## measure this machine's limits, run every benchmark, and compare with Bitcoin Core
	target/release/lydian-lab limits
	cargo bench --locked --workspace
	LYDIAN_REQUIRE_BROWSER=1 cargo test --locked --release -p lydian-node --test page weight -- --ignored --nocapture --test-threads=1
	@tools/rivals.sh
	target/release/lydian-lab reindex --preset empty --blocks 2016 --nodes lydian,bitcoind --runs 3
	target/release/lydian-lab reindex --preset mainnet-mix --blocks 550 --full 100 --nodes lydian,bitcoind --runs 3
	target/release/lydian-lab sync --preset mainnet-mix --blocks 550 --full 100 --nodes lydian,bitcoind --runs 3

bench-large: build judge ## compare 8,800 blocks with Bitcoin Core, measure an index of 4.7 GB, then the coin store with RocksDB at 180 M coins (slow; 20 GB of memory, 50 GB of disk)
	target/release/lydian-lab reindex --preset mainnet-mix --blocks 8800 --full 1600 --nodes lydian,bitcoind --runs 1
	cargo bench --locked -p lydian-index --bench large -- --blocks 50241 --transactions 1150 --large-blocks 1500 --memory-mb 1200
	cargo bench --locked -p lydian-coins --bench mix -- --coins 180000000 --operations 50000000 --cache-mb 4000
	@tools/rivals.sh --coins 180000000 --operations 50000000 --cache-mb 6000

table: build judge ## compare all installable nodes and Electrum servers and chart the results in target/table/report (half an hour on an idle machine)
	@tools/table.sh

fuzz: judge ## run each fuzz target for FUZZ_SECONDS, check ten million signatures in lanes, then compare with the judge for longer
	@tools/fuzz.sh $(FUZZ_SECONDS)
	@tools/miri.sh
	LYDIAN_LANE_CHECKS=10000000 cargo test --locked --release -p lydian-curve --test lanes
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_JUDGE_SECONDS=$(if $(filter file,$(origin JUDGE_SECONDS)),600,$(JUDGE_SECONDS)) cargo test --locked --release -p lydian-oracle -- --nocapture
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_RPC_SECONDS=$(if $(filter file,$(origin JUDGE_SECONDS)),600,$(JUDGE_SECONDS)) cargo test --locked --release -p lydian-node --test rpc arguments_of_every_type -- --nocapture
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_MEMPOOL_STEPS=$(MEMPOOL_STEPS) cargo test --locked --release -p lydian-mempool --test all pool::story -- --nocapture

crash: judge ## attack the node with hostile peers, stop it CRASH_STOPS times, kill it CRASH_KILLS times, damage every file of a data directory, crash the engine CRASH_RUNS times in each way, and compare the resulting states
	LYDIAN_HOSTILE=1 cargo test --locked --release -p lydian-node --test crash hostile -- --nocapture --test-threads=1
	LYDIAN_STOPS=$(CRASH_STOPS) cargo test --locked --release -p lydian-node --test crash stopped -- --nocapture
	LYDIAN_CRASH_RUNS=$(CRASH_KILLS) LYDIAN_DAMAGE_OFFSETS=$(DAMAGE_OFFSETS) cargo test --locked --release -p lydian-node --test crash -- --nocapture
	LYDIAN_DAMAGE_OFFSETS=$(DAMAGE_OFFSETS) cargo test --locked --release -p lydian-node --test rpc indexes -- --nocapture
	LYDIAN_CRASH_RUNS=$(CRASH_RUNS) LYDIAN_ENGINE_SECONDS=60 cargo test --locked --release -p lydian-engine --test chains -- --nocapture
	LYDIAN_CRASH_RUNS=$(CRASH_KILLS) cargo test --locked --release -p lydian-mempool --test all interrupted -- --nocapture
	LYDIAN_REQUIRE_JUDGE=1 LYDIAN_CRASH_RUNS=$$(($(CRASH_KILLS) / 10 + 1)) cargo test --locked --release -p lydian-node --test rpc fees::killed -- --nocapture

soak: ## run hostile peers and RPC clients against one node for SOAK_SECONDS; memory and open files must not grow after the first ten minutes of an hour
	LYDIAN_SOAK_SECONDS=$(SOAK_SECONDS) cargo test --locked --release -p lydian-node --test crash soak -- --nocapture

audit: ## look up the dependencies in RustSec's database of holes, which needs the internet and `cargo install cargo-audit`
	@command -v cargo-audit >/dev/null || { echo "audit: cargo-audit is missing: run 'cargo install --locked cargo-audit'"; exit 1; }
	for lock in Cargo.lock fuzz/Cargo.lock rivals/Cargo.lock; do cargo audit --file $$lock; done

clean-cache: ## remove the judge and everything else that is kept outside the checkout
	rm -rf -- "$(CACHE)"
