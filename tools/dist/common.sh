# shellcheck shell=bash
# What the parts of `make dist` share; read by `.`, in the root of the checkout.

umask 022
export LC_ALL=C TZ=UTC
# The time of every file in a release: that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
programs=(lydian lydian-cli lydian-lab)
# The newest glibc that a program may need: that of Debian 12, Ubuntu 22.04 and RHEL 9 is at least as new. Those that
# tools/dist/build.sh builds need 2.31, as in Debian 11, if tools/dist/glibc.sh can get it.
glibc_max=2.34

say() { echo "dist: $*"; }
fail() {
  echo "dist: $*" >&2
  exit 1
}

# The compiler decides the code. Rust's version is pinned here, not in rust-toolchain.toml, which would make every other
# build download it too.
pinned='rustc 1.95.0 (59807616e 2026-04-14)'
if [ "$(rustc --version)" != "$pinned" ]; then
  export RUSTUP_TOOLCHAIN=1.95.0
  [ "$(rustc --version 2>/dev/null)" = "$pinned" ] ||
    fail "releases are built by $pinned, which is not here: run 'rustup toolchain install 1.95.0'"
fi

# Rust's project publishes its standard library for ARM, but not everywhere can it be fetched: Debian's compiler is used.
pinned_arm64='rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)'
# Succeeds, and prints why, if programs for arm64 cannot be made.
arm64_is_missing() {
  local found
  found=$(tools/arm64.sh root 2>&1) || { echo "$found" | sed -n 's/^arm64: LEFT OUT: //p'; return; }
  # The last line: before Linux 6.7 another one says that tests cannot start programs.
  found=$(tools/arm64.sh rustc --version 2>&1 | tail -1) || true
  [ "$found" = "$pinned_arm64" ] || { echo "it is built by $pinned_arm64, and the compiler of tools/arm64.sh says: $found"; return; }
  return 1
}

# FOLDER NAME: a tar of FOLDER/NAME on standard output that depends on contents and names only.
reproducible_tar() {
  tar --create --directory "$1" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
    --mode='u+rwX,go+rX,go-w' --mtime="@$SOURCE_DATE_EPOCH" -- "$2"
}

# ARCHITECTURE FOLDER COMMAND...: runs a tool of binutils, or a program of the release, for that architecture, on files
# below the folder: those for arm64 in the Debian of tools/arm64.sh, programs under qemu.
for_arch() {
  local arch=$1 folder=$2 kind=run
  shift 2
  if [ "$arch" = amd64 ]; then
    "$@"
    return
  fi
  case $1 in */*) ;; *) kind=tool ;; esac
  CARGO_TARGET_DIR=$folder tools/arm64.sh "$kind" "$@"
}

# FILE: the newest version of glibc whose symbols the program needs, such as 2.34.
glibc_of() {
  objdump -T "$1" | sed -n 's/.*(\?GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -Vu | tail -1
}

# FILE: fails unless the program runs wherever glibc is at least $glibc_max, with nothing but glibc and libgcc.
check_needs() {
  local library needed
  while read -r library; do
    case $library in
      # Parts of glibc, most of which are in libc itself since 2.34; and libgcc.
      libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | libutil.so.1 | \
        ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1 | libgcc_s.so.1) ;;
      *) fail "$1 needs $library: releases may depend on glibc and libgcc only" ;;
    esac
  done < <(objdump -p "$1" | sed -n 's/^ *NEEDED *//p')
  needed=$(glibc_of "$1")
  [ -n "$needed" ] || fail "$1 has no symbols of glibc: it is no program for Linux with glibc"
  if [ "$(printf '%s\n' "$needed" "$glibc_max" | sort -V | tail -1)" != "$glibc_max" ]; then
    fail "$1 needs glibc $needed, and releases may need $glibc_max at most: $(objdump -T "$1" | grep -F "GLIBC_$needed" | awk '{print $NF}' | head -3 | tr '\n' ' ')"
  fi
}
