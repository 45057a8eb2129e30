#!/bin/bash
# Runs the engine's tests under ThreadSanitizer, which watches every memory access for races. It needs a compiler that
# accepts -Z flags (a nightly, or the stable one with RUSTC_BOOTSTRAP=1) and the source of the standard library
# (rustup's component rust-src): the library's locks must be compiled with the sanitizer too, or it reports races where
# a lock was held. If these are missing, it prints a message, skips the tests and exits with 0. The exit code is 1 if a
# race is found or a test fails. The tests over shuttle's locks are left out: they run on one thread.
set -eu
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
has_source() { [ -f "$(rustc "$@" --print sysroot)/lib/rustlib/src/rust/library/std/src/lib.rs" ]; }

cargo=()
if rustc +nightly --version >/dev/null 2>&1 && has_source +nightly; then
  cargo=(cargo +nightly)
elif has_source; then
  cargo=(env RUSTC_BOOTSTRAP=1 cargo)
else
  echo "tsan: LEFT OUT: no installed compiler has the source of its standard library; 'rustup component add rust-src --toolchain nightly' installs it"
  exit 0
fi
echo "tsan: ${cargo[*]}"
# libsecp256k1 is C and is not instrumented; it has no threads.
RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" CARGO_INCREMENTAL=0 \
  "${cargo[@]}" test --locked -Zbuild-std --target "$host" --target-dir target/tsan -p lydian-engine --lib --tests -- --skip shuttled
echo "tsan: nothing found"
