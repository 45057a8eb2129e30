#!/bin/bash
# Makes the release of HEAD in two clones that differ in path, folder of cargo, user, umask, time zone, language and
# number of jobs, and compares the hashes of the programs and of every file. Takes two release builds.
# Environment: DIST_PROGRAMS, a folder of programs that are packed twice instead of being built; DIST_PACKAGES, packages of
# which only the programs are built and compared, such as lydian-cli (a few minutes); DIST_CHECK_FOLDER, where to clone
# (default: a temporary folder, which is removed unless hashes differ); DIST_ARCHITECTURES, for which machines (default:
# amd64).
set -eu
cd "$(dirname "$0")/.."
work=${DIST_CHECK_FOLDER:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd -P)
cargo_home=$(cd "${CARGO_HOME:-$HOME/.cargo}" && pwd -P)
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}
first=$work/a
second="$work/another folder/with a longer path"
say() { echo "dist-check: $*"; }
if [ -n "$(git status --porcelain)" ]; then say "changes that are not committed are not checked"; fi
rm -rf -- "$first" "$work/another folder" "$work/cargo" "$work/link to cargo"
case "${DIST_ARCHITECTURES:-amd64}" in *arm64*) tools/arm64.sh root >/dev/null || true ;; esac # one for both
cargo fetch --quiet --locked # before another folder of cargo is made of it
git clone --quiet --no-hardlinks . "$first"
git clone --quiet --no-hardlinks . "$second"
# Packages in another folder: files are shared by hard links where possible, but for the index, which cargo writes to.
mkdir -p "$work/cargo/registry"
for part in registry/cache registry/src git; do
  [ ! -d "$cargo_home/$part" ] || cp -al -- "$cargo_home/$part" "$work/cargo/$part" 2>/dev/null || cp -a -- "$cargo_home/$part/." "$work/cargo/$part"
done
cp -a -- "$cargo_home/registry/index" "$work/cargo/registry/index"
ln -s cargo "$work/link to cargo"
# Linux refuses the namespaces of the compiler for ARM to a user without a group.
as_other=(unshare --user --map-user=12345 --map-group=12345)
"${as_other[@]}" true 2>/dev/null || as_other=()

target=x86_64-unknown-linux-gnu
export DIST_ARCHITECTURES=${DIST_ARCHITECTURES:-amd64}
if [ -n "${DIST_PACKAGES:-}" ]; then
  make=(tools/dist/build.sh target/dist/build "$target")
else
  make=(tools/dist.sh)
fi
say "first: $first, user $(id -u), $(nproc) jobs"
(cd "$first" && umask 022 && TZ=UTC DIST_PARTS="archive deb" "${make[@]}")
say "second: $second, user ${as_other[1]:+12345}, 1 job"
(cd "$second" && umask 077 && env "${as_other[@]}" env TZ=Asia/Kathmandu LANG=C.UTF-8 USER=someone JOBS=1 HOME="$work" \
  XDG_CACHE_HOME="${XDG_CACHE_HOME:-$HOME/.cache}" \
  CARGO_HOME="$work/link to cargo" RUSTUP_HOME="$rustup_home" RUSTFLAGS=-Ctarget-cpu=native DIST_PARTS="archive deb" "${make[@]}")
# mmdebstrap needs more than one user, so that the image is made by this one.
if [ -z "${DIST_PACKAGES:-}" ]; then
  for clone in "$first" "$second"; do
    (cd "$clone" && DIST_PARTS=image DIST_FOLDER=target/image DIST_PROGRAMS=${DIST_PROGRAMS:-target/dist/build/$target/release} \
      DIST_PROGRAMS_ARM64=target/dist/build/arm64/aarch64-unknown-linux-gnu/release tools/dist.sh >/dev/null)
  done
fi

different=0
same=0
compare() { # PATH, relative to a clone
  local sum
  sum=$(sha256sum <"$first/$1" | cut -d' ' -f1)
  if [ "$sum" = "$(sha256sum <"$second/$1" | cut -d' ' -f1)" ]; then
    say "equal $sum $1"
    same=$((same + 1))
  else
    say "DIFFERENT: $1: $(cmp -- "$first/$1" "$second/$1" 2>&1 | tail -1)"
    different=$((different + 1))
  fi
}
while read -r path; do compare "$path"; done < <(
  cd "$first"
  find target/dist/build/*/release target/dist/build/arm64/*/release -maxdepth 1 -type f -perm -100 2>/dev/null | sort
  find target/dist target/image -maxdepth 1 -type f ! -name SHA256SUMS 2>/dev/null | sort
)
say "$same files are equal, $different differ"
if [ "$different" -ne 0 ] || [ "$same" -eq 0 ]; then
  say "both clones are kept in $work; 'diffoscope' shows why files differ"
  exit 1
fi
[ -n "${DIST_CHECK_FOLDER:-}" ] || rm -rf -- "$work"
