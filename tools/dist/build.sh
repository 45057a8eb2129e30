#!/bin/bash
# Builds the released programs so that they depend on the commit, the pinned compiler and the C compiler only: not on
# the path of the checkout, the user, the time, or the number of cores. `make dist-check` proves it.
# Arguments: the folder for the build, and the target (x86_64-unknown-linux-gnu or aarch64-unknown-linux-gnu).
# Environment: JOBS, the number of jobs (default: the cores).
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
build=$1
target=$2

# Flags and settings of the caller would change the programs.
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_TARGET_DIR CARGO_INCREMENTAL RUSTC_WRAPPER CFLAGS CXXFLAGS LDFLAGS CPPFLAGS
unset CARGO_UNSTABLE_FEATURE_UNIFICATION CARGO_RESOLVER_FEATURE_UNIFICATION __CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS
while read -r name; do unset "$name"; done < <(compgen -e CARGO_PROFILE_; compgen -e CFLAGS_; compgen -e CC_)
export CARGO_BUILD_JOBS=${JOBS:-$(nproc)}

cargo fetch --quiet --locked
root=$(pwd -P)
rust=()
c=()
map() { # FROM TO: paths below FROM are recorded as below TO
  rust+=("--remap-path-prefix=$1=$2")
  c+=("-ffile-prefix-map=$1=$2")
}
# The last matching rule wins in rustc, and in GCC too.
map "$root" /lydian
map "$build" /lydian/target
map "$(rustc --print sysroot)/lib/rustlib/src/rust" "/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')"
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do map "$registry" /crates; done
# Paths may contain spaces: rustc's arguments are separated by a byte, those of C are escaped for a shell.
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${rust[*]}")
CFLAGS=$(printf '%q ' "${c[@]}")
export CARGO_ENCODED_RUSTFLAGS CFLAGS CC_SHELL_ESCAPED_FLAGS=1

cargo build --locked --release --target-dir "$build" --target "$target" -p lydian-node -p lydian-cli -p lydian-lab --bins
