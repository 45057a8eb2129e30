#!/bin/bash
# Builds the released programs so that they depend on the commit, the pinned compiler and the C compiler only: not on
# the path of the checkout, the user, the time, or the number of cores. `make dist-check` proves it.
# Arguments: the folder for the build, and the target (x86_64-unknown-linux-gnu, or aarch64-unknown-linux-gnu, which
# tools/arm64.sh builds in a Debian of its own).
# Environment: JOBS, the number of jobs (default: the cores); DIST_PACKAGES, the packages to build (default: those of all
# programs); DIST_CONFIG, settings of cargo, such as profile.release.lto="off" (for tests of the build itself).
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
mkdir -p "$1"
build=$(cd "$1" && pwd -P)
target=$2
case $target in aarch64-*) arch=arm64 ;; *) arch=amd64 ;; esac
read -ra packages <<<"${DIST_PACKAGES:-lydian-node lydian-cli lydian-lab}"
read -ra settings <<<"${DIST_CONFIG:-}"

# Flags and settings of the caller would change the programs.
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_TARGET_DIR CARGO_INCREMENTAL RUSTC_WRAPPER CFLAGS CXXFLAGS LDFLAGS CPPFLAGS
unset CARGO_UNSTABLE_FEATURE_UNIFICATION CARGO_RESOLVER_FEATURE_UNIFICATION __CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS
while read -r name; do unset "$name"; done < <(compgen -e CARGO_PROFILE_; compgen -e CFLAGS_; compgen -e CC_)
export CARGO_BUILD_JOBS=${JOBS:-$(nproc)}

# rustc and the C compiler record a file by the path that they are given, and their directory by its resolved path:
# with a link in the folder of cargo, packages would be recorded in two ways, and one of them would not be mapped.
mkdir -p "${CARGO_HOME:-$HOME/.cargo}"
CARGO_HOME=$(cd "${CARGO_HOME:-$HOME/.cargo}" && pwd -P)
export CARGO_HOME
cargo fetch --quiet --locked
for registry in "$CARGO_HOME"/registry/src/*; do
  [ -d "$registry" ] || continue
  [ "$(cd "$registry" && pwd -P)" = "$registry" ] ||
    fail "$registry is $(cd "$registry" && pwd -P) through a symbolic link: set CARGO_HOME to a folder that has its packages itself"
done
LYDIAN_COMMIT=$(git rev-parse --short=12 HEAD)$([ -z "$(git status --porcelain)" ] || echo -dirty)
export LYDIAN_COMMIT
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
for registry in "$CARGO_HOME"/registry/src/*; do map "$registry" /crates; done
# Against an old glibc, so that the programs run with it and every newer one.
if sysroot=$(tools/dist/glibc.sh "$arch"); then
  rust+=("-Clink-arg=--sysroot=$sysroot")
  c+=("--sysroot=$sysroot")
  map "$sysroot" /glibc
  # GCC looks in folders of its own before these, where libgcc, or all of glibc for another architecture, is newer.
  for folder in "$sysroot"/{usr/lib,lib}/"${target/-unknown-/-}"; do
    rust+=("-Clink-arg=-B$folder" "-Clink-arg=-L$folder")
  done
  export DIST_SYSROOT=$sysroot
else
  say "WARNING: linked against the glibc of this machine, so that the programs may need a newer one than those of a release"
fi
# Paths may contain spaces: rustc's arguments are separated by a byte, those of C are escaped for a shell.
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${rust[*]}")
CFLAGS=$(printf '%q ' "${c[@]}")
export CARGO_ENCODED_RUSTFLAGS CFLAGS CC_SHELL_ESCAPED_FLAGS=1

arguments=(build --locked --release --target "$target" --bins)
for package in "${packages[@]}"; do arguments+=(-p "$package"); done
for setting in ${settings[@]+"${settings[@]}"}; do arguments+=(--config "$setting"); done
if [ "$target" = "$(rustc -vV | sed -n 's/^host: //p')" ]; then
  cargo "${arguments[@]}" --target-dir "$build"
else
  CARGO_TARGET_DIR=$build tools/arm64.sh cargo "${arguments[@]}"
fi

# A path of this machine in a program differs elsewhere. This finds those in debug information and most others.
for program in "${programs[@]}"; do
  file=$build/$target/release/$program
  [ -f "$file" ] || continue
  for path in "$root" "$build" "$CARGO_HOME"; do
    case $path in /lydian | /lydian/* | /crates) continue ;; esac
    found=$(grep -zam1 -- "^$(printf %s "$path" | sed 's/[][\.*^$]/\\&/g')/" "$file" | tr -d '\0' | head -c 200) || true
    [ -z "$found" ] || fail "$file contains a path of this machine, which is not mapped: $found"
  done
done
