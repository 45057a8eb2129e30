#!/bin/bash
# Prints a folder with the headers and libraries of glibc 2.31, against which releases are linked: a program needs at least
# the glibc that it was linked against. They are those of Debian 11, and are kept outside the checkout. Needs mmdebstrap
# and, once, a mirror of Debian. What is missing is printed on standard error, and the exit code is then 3.
# Argument: the architecture (amd64 or arm64).
set -eu
cd "$(dirname "$0")/../.."
arch=$1
# The startup code and the headers are part of every program: another version is another release.
pinned=2.31-13+deb11u11
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lydian
root=$cache/glibc-2.31-$arch-1
left_out() {
  echo "glibc: $*" >&2
  exit 3
}
if [ ! -d "$root" ]; then
  command -v mmdebstrap >/dev/null || left_out "mmdebstrap is missing: run 'apt-get install mmdebstrap'"
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/glibc-new-XXXXXX")
  trap 'rm -rf -- "$new" "$new.log"' EXIT
  # As it was when Debian 11 was last released, which does not change any more.
  mmdebstrap --quiet --variant=extract --architectures="$arch" --include=libc6-dev,libgcc-s1 \
    --setup-hook='sed -i /security/d "$1"/etc/apt/sources.list' bullseye - 2>"$new.log" |
    tar --extract --directory "$new" --no-same-owner --wildcards './lib*' './usr/lib*' './usr/include*' './usr/share/doc/libc6-dev/changelog.Debian.gz' ||
    left_out "mmdebstrap could not make a Debian 11 for $arch: $(tail -2 "$new.log" | tr '\n' ' ')"
  # Links that begin at the root would lead to the libraries of this machine.
  while read -r link; do
    ln -sfn -- "$new$(readlink "$link")" "$link"
    ln -sfn -- "$(realpath --no-symlinks --relative-to="$(dirname "$link")" "$(readlink "$link")")" "$link"
  done < <(find "$new" -type l -lname '/*')
  mv -- "$new" "$root"
fi
found=$(zcat "$root/usr/share/doc/libc6-dev/changelog.Debian.gz" 2>/dev/null | sed -n '1s/.*(\(.*\)).*/\1/p')
[ "$found" = "$pinned" ] || left_out "releases are linked against libc6-dev $pinned, and $root has '$found'"
echo "$root"
