#!/bin/bash
# Runs layers of the plain lanes under Miri, where a nightly toolchain has it ('rustup component add miri --toolchain nightly'); where not, it
# says so and leaves them out: exit 0. Only tests that ask nothing of libsecp256k1, which is C, and do not build the generator's table, which
# would take hours there. The plain lanes have no unsafe code; what Miri adds to overflow checks and AddressSanitizer is the machine's rules of shifts and casts.
set -eu
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "miri: LEFT OUT: no nightly toolchain here has Miri; 'rustup component add miri --toolchain nightly' brings it"
  exit 0
fi
cargo +nightly miri test --locked -p lydian-curve --lib -- canonical_values::plain dirty_factors_at_their_bound::plain halves_of_scalars::plain
echo "miri: nothing found"
