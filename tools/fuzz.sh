#!/bin/bash
# Builds every fuzz target of fuzz/ and runs each for SECONDS. With a nightly toolchain the targets run under
# AddressSanitizer; otherwise they have only coverage instrumentation, which the stable compiler offers too. Each target
# starts from fuzz/seeds; new inputs are kept in fuzz/corpus, findings in fuzz/artifacts. The exit code is 1 if a target
# finds something.
set -eu
seconds=$1
cd "$(dirname "$0")/.."
[ -f fuzz/Cargo.toml ] || { echo "fuzz: fuzz/Cargo.toml is missing" >&2; exit 1; }

host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions=on -Coverflow-checks=on"
cargo=(cargo)
if cargo +nightly --version >/dev/null 2>&1; then
  cargo=(cargo +nightly)
  flags="$flags -Zsanitizer=address"
  echo "fuzz: nightly compiler, with AddressSanitizer"
else
  echo "fuzz: stable compiler, without sanitizer"
fi
# --target keeps build scripts and proc macros free of the instrumentation.
RUSTFLAGS="$flags" "${cargo[@]}" build --locked --manifest-path fuzz/Cargo.toml --release --bins --target "$host"

targets=$(for file in fuzz/fuzz_targets/*.rs; do basename "$file" .rs; done)
failed=0
for target in $targets; do
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target" "fuzz/seeds/$target"
  log=$(mktemp)
  if "fuzz/target/$host/release/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -artifact_prefix="fuzz/artifacts/$target/" \
    -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 >"$log" 2>&1; then
    echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s, nothing found"
  else
    failed=$((failed + 1))
    grep -A3 panicked "$log" || true
    tail -15 "$log"
    echo "fuzz: $target: FOUND something, see fuzz/artifacts/$target"
  fi
  rm -f -- "$log"
done
echo "fuzz: $(wc -w <<<"$targets") targets, $failed with findings"
[ "$failed" -eq 0 ]
