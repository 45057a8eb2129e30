#!/bin/bash
# Makes a release in target/dist: programs in an archive, their debug information, a Debian package, an image for
# containers, the list of components (SBOM), and SHA256SUMS. Everything depends on the commit, the compilers and, for
# the image, on Debian's packages; docs/packaging.md has the details.
# Environment: JOBS, the number of jobs of the build (default: the cores); DIST_ARCHITECTURES, for which machines (default:
# "amd64 arm64"; arm64 needs the Debian of tools/arm64.sh, and is left out with a message otherwise); DIST_PROGRAMS and
# DIST_PROGRAMS_ARM64, folders of programs to pack instead of building them (for tests of the packaging itself: such a
# release is not reproducible); DIST_FOLDER, the folder to write (default: target/dist); DIST_PARTS, the parts to make
# (default: "archive deb image").
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

architectures=() # "amd64:FOLDER OF ITS FILES"
release() { # ARCHITECTURE (Debian's name), TARGET (Rust's name), FOLDER OF PROGRAMS (empty: they are built)
  local arch=$1 target=$2 bin=$3 stage=$out/stage-$1 build=$out/build
  # Another compiler, so another folder.
  [ "$arch" = amd64 ] || build=$out/build/$arch
  if [ -z "$bin" ]; then
    say "building the programs for $target"
    tools/dist/build.sh "$build" "$target"
    bin=$build/$target/release
  fi
  tools/dist/stage.sh "$bin" "$stage" "$out/build" "$arch"
  architectures+=("$arch:$stage")
  local part
  for part in $parts; do
    [ "$part" != image ] || continue
    say "$part for $arch"
    "tools/dist/$part.sh" "$stage" "$arch" "$out"
  done
  cp -- "$stage/sbom.cdx.json" "$out/lydian-$version-$arch.cdx.json"
}

for arch in ${DIST_ARCHITECTURES:-amd64 arm64}; do
  case $arch in
    amd64) release amd64 x86_64-unknown-linux-gnu "${DIST_PROGRAMS:-}" ;;
    arm64)
      if [ -n "${DIST_PROGRAMS:-}" ] && [ -z "${DIST_PROGRAMS_ARM64:-}" ]; then
        say "LEFT OUT: arm64, as DIST_PROGRAMS has programs for amd64 only"
      elif why=$(arm64_is_missing); then
        say "LEFT OUT: arm64: $why"
      else
        release arm64 aarch64-unknown-linux-gnu "${DIST_PROGRAMS_ARM64:-}"
      fi
      ;;
    *) fail "unknown architecture $arch" ;;
  esac
done
[ ${#architectures[@]} -gt 0 ] || fail "nothing is left to be released"
case " $parts " in
  *' image '*)
    say "image for ${architectures[*]%%:*}"
    tools/dist/image.sh "$out" "${architectures[@]}"
    ;;
esac
for staged in "${architectures[@]}"; do rm -rf -- "${staged#*:}"; done
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
say "made in $out:"
(cd "$out" && ls -l --time-style=long-iso | awk 'NR > 1 && $1 ~ /^-/ {printf "  %10d bytes  %s\n", $5, $8}')
