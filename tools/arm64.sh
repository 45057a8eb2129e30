#!/bin/bash
# Builds and tests for 64-bit ARM on an x86-64 machine. In a Debian 12 of its own, Debian's newest Rust with its standard
# library for arm64 and a cross compiler for C build; what they build runs under qemu. Needs mmdebstrap, a mirror of
# Debian (once), and user namespaces; what is missing is printed as LEFT OUT, and the exit code is then 3.
# Usage: tools/arm64.sh root                  make that Debian, if it is missing (about 2 GB)
#        tools/arm64.sh cargo ARGUMENTS...    run cargo for aarch64-unknown-linux-gnu in the checkout
#        tools/arm64.sh run PROGRAM...        run a program for ARM under qemu
#        tools/arm64.sh rustc ARGUMENTS...    run its compiler
#        tools/arm64.sh tool NAME...          run a tool of binutils for ARM, such as objcopy
#        tools/arm64.sh instructions          count the instructions for a signature, by kernel
# Environment: CARGO_TARGET_DIR (default: target/arm64); QEMU_CPU, the processor that qemu emulates (default: max);
# LYDIAN_*, RUST_*, and the flags that tools/dist/build.sh sets: passed on.
set -eu
cd -P "$(dirname "$0")/.."
say() { echo "arm64: $*" >&2; }
left_out() {
  say "LEFT OUT: $*"
  exit 3
}

# Debian 12's own rustc is too old; its security updates have a newer one, for browsers.
packages=rustc-web,cargo-web,libstd-rust-web-dev,libstd-rust-web-dev:arm64,libc6-dev,libc6-dev:arm64,gcc,gcc-aarch64-linux-gnu,libgcc-s1:arm64,qemu-user-static,qemu-user,bash,coreutils,git
# Programs that tests start. Under qemu, starting a missing program is no error: it ends with exit code 127.
packages+=,procps,util-linux,bsdutils,gzip,python3,mandoc,zsh,fish,systemd
target=aarch64-unknown-linux-gnu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lydian
root=$cache/arm64-3
[ "$(uname -m)" = x86_64 ] || left_out "this machine is $(uname -m); run cargo itself on ARM"

make_root() {
  [ -d "$root" ] && return
  command -v mmdebstrap >/dev/null || left_out "mmdebstrap is missing: run 'apt-get install mmdebstrap'"
  say "making a Debian 12 with a compiler for ARM (once)"
  mkdir -p "$cache"
  local new
  new=$(mktemp -d "$cache/arm64-new-XXXXXX")
  if ! mmdebstrap --quiet --variant=extract --architectures=amd64,arm64 --include="$packages" bookworm - 2>"$new.log" |
    tar --extract --directory "$new" --no-same-owner; then
    tail -3 "$new.log" >&2
    rm -rf -- "$new" "$new.log"
    left_out "mmdebstrap failed (see above)"
  fi
  rm -f -- "$new.log"
  mkdir -p "$new"/{proc,dev,tmp}
  # The packages do not include Debian's /bin/sh, with which the node runs commands.
  [ -e "$new/bin/sh" ] || ln -s bash "$new/bin/sh"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$new/etc/hosts"
  mv -- "$new" "$root"
}

# ARGUMENTS...: runs env with them in the Debian. Mounts end with it: they are in namespaces of its own, and so is the
# rule by which Linux runs programs for ARM with qemu, which tests need that start programs (Linux 6.7 or newer).
enter() {
  local home=${CARGO_HOME:-$HOME/.cargo} shared=${LYDIAN_SHARED:-../shared}
  mkdir -p "$home" "${CARGO_TARGET_DIR:=target/arm64}"
  local folders=(/proc /dev /tmp "$PWD" "$(realpath "$home")" "$(realpath "$CARGO_TARGET_DIR")")
  [ -d "$shared" ] && folders+=("$(realpath "$shared")")
  [ -z "${DIST_SYSROOT:-}" ] || folders+=("$DIST_SYSROOT")
  local passed=() name
  while read -r name; do passed+=("$name=${!name}"); done < <(compgen -e | grep -E '^(LYDIAN_|RUST_|(QEMU_CPU|CARGO_BUILD_JOBS|CARGO_ENCODED_RUSTFLAGS|CFLAGS|CC_SHELL_ESCAPED_FLAGS|SOURCE_DATE_EPOCH)$)')
  unshare --map-root-user --mount --propagation private bash -c '
    set -eu
    root=$1 count=$2
    shift 2
    for folder in "${@:1:count}"; do
      mkdir -p "$root$folder"
      mount --rbind "$folder" "$root$folder"
    done
    shift "$count"
    elf="\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00"
    mask="\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff"
    rules=$root/proc/sys/fs/binfmt_misc
    { mount -t binfmt_misc none "$rules" && printf %s ":arm64:M::$elf:$mask:$root/usr/bin/qemu-aarch64-static:F" >"$rules/register"; } 2>/dev/null ||
      echo "arm64: programs that tests start cannot run: binfmt_misc needs Linux 6.7 or newer" >&2
    exec chroot "$root" /usr/bin/env -i "$@"
  ' bash "$root" "${#folders[@]}" "${folders[@]}" --chdir="$PWD" \
    PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C CARGO_HOME="$(realpath "$home")" \
    CARGO_TARGET_DIR="$(realpath "$CARGO_TARGET_DIR")" CARGO_BUILD_TARGET=$target CARGO_INCREMENTAL=0 \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=gcc CC_x86_64_unknown_linux_gnu=gcc \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar \
    ${passed[@]+"${passed[@]}"} "$@"
}

# ROUNDS ENGINE KIND: the number of instructions of a benchmark that verifies 1,024 signatures ROUNDS times.
count() {
  LYDIAN_COUNT="$2 $3 1024 $1" enter qemu-aarch64 -plugin "$plugin" "$program" --bench 2>&1 | sed -n 's/^instructions: //p'
}

instructions() {
  local plugin program engine kind reference one two each
  # The profile of tests optimises this crate and libsecp256k1; assertions would be counted.
  program=$(enter cargo --offline test --locked --no-run -p lydian-curve --bench lanes \
    --config 'profile.test.package.lydian-curve.debug-assertions=false' 2>&1 |
    tee -a /dev/stderr | sed -n 's/^ *Executable benches\/lanes.rs (\(.*\))$/\1/p')
  [ -n "$program" ] || { say "the benchmark was not built (see above)"; exit 1; }
  plugin=$(dirname "$program")/count.so
  enter gcc -O2 -Wall -Wextra -shared -fPIC -o "$plugin" tools/arm64/count.c
  for kind in ecdsa schnorr; do
    for engine in reference scalar neon; do
      # The difference leaves out what happens once: tables, keys, the test data.
      one=$(count 1 $engine $kind)
      two=$(count 2 $engine $kind)
      each=$(((two - one) / 1024))
      [ $engine != reference ] || reference=$each
      awk -v kind=$kind -v engine=$engine -v each=$each -v reference="$reference" \
        'BEGIN { printf "%-8s %-10s %8d instructions a check, reference / this = %.2f\n", kind, engine, each, reference / each }'
    done
  done
}

case ${1:-} in
  root) make_root ;;
  cargo)
    shift
    make_root
    # The packages come from the machine's own cargo, which may reach a registry where the Debian cannot.
    cargo fetch --quiet --locked
    enter cargo --offline "$@"
    ;;
  run)
    shift
    make_root
    enter qemu-aarch64-static "$@"
    ;;
  rustc)
    make_root
    enter "$@"
    ;;
  tool)
    shift
    make_root
    name=$1
    shift
    enter "aarch64-linux-gnu-$name" "$@"
    ;;
  instructions)
    make_root
    cargo fetch --quiet --locked
    instructions
    ;;
  *)
    sed -n '5,10p' "$0" >&2
    exit 1
    ;;
esac
