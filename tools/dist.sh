#!/bin/bash
# Makes a release in target/dist: programs in an archive, their debug information, a Debian package, an image for
# containers, the list of components (SBOM), and SHA256SUMS. Everything depends on the commit, the compilers and, for
# the image, on Debian's packages; docs/packaging.md has the details.
# Environment: JOBS, the number of jobs of the build (default: the cores); DIST_PROGRAMS, a folder of programs to pack
# instead of building them (for tests of the packaging itself: such a release is not reproducible); DIST_FOLDER, the
# folder to write (default: target/dist); DIST_PARTS, the parts to make (default: "archive deb image").
set -eu
cd "$(dirname "$0")/.."
. tools/dist/common.sh
out=${DIST_FOLDER:-target/dist}
mkdir -p "$out"
# Resolved, as this path is mapped in the programs.
out=$(cd "$out" && pwd -P)
parts=${DIST_PARTS:-archive deb image}
command -v objdump >/dev/null || fail "objdump is missing: run 'apt-get install binutils'"
if [ -n "$(git status --porcelain)" ]; then
  say "WARNING: the checkout has changes that are not committed, so this is no release of $(git log -1 --format=%h)"
fi
find "$out" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +

release() { # ARCHITECTURE (Debian's name), TARGET (Rust's name)
  local arch=$1 target=$2 stage=$out/stage-$1 bin
  if [ -n "${DIST_PROGRAMS:-}" ]; then
    bin=$DIST_PROGRAMS
  else
    say "building the programs for $target"
    tools/dist/build.sh "$out/build" "$target"
    bin=$out/build/$target/release
  fi
  tools/dist/stage.sh "$bin" "$stage" "$out/build"
  local part
  for part in $parts; do
    say "$part for $arch"
    "tools/dist/$part.sh" "$stage" "$arch" "$out"
  done
  cp -- "$stage/sbom.cdx.json" "$out/lydian-$version.cdx.json"
  rm -rf -- "$stage"
}

release amd64 x86_64-unknown-linux-gnu
(cd "$out" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
say "made in $out:"
(cd "$out" && ls -l --time-style=long-iso | awk 'NR > 1 && $1 ~ /^-/ {printf "  %10d bytes  %s\n", $5, $8}')
