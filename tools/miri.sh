#!/bin/bash
# Runs the tests of the plain lanes' layers under Miri, if the nightly toolchain has it ('rustup component add miri
# --toolchain nightly'). Otherwise it prints a message, skips them and exits with 0. Only tests are run that do not use
# libsecp256k1, which is C, and do not build the generator's table, which would take hours under Miri. The plain lanes
# have no unsafe code; in addition to overflow checks and AddressSanitizer, Miri checks the machine's rules for shifts
# and casts.
set -eu
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "miri: LEFT OUT: the nightly toolchain has no Miri; 'rustup component add miri --toolchain nightly' installs it"
  exit 0
fi
cargo +nightly miri test --locked -p lydian-curve --lib -- canonical_values::plain dirty_factors_at_their_bound::plain halves_of_scalars::plain
echo "miri: nothing found"
