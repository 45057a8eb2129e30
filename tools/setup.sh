#!/bin/bash
# Installs missing system packages, with apt if run as root; otherwise prints the command. Installed packages are never
# changed. The exit code is 1 if something is still missing.
# Argument: `build` for what `make build` needs (a C compiler), `test` for what Bitcoin Core and btcd need in `make
# test` too, `browser`, `wallet` and `prometheus` for the packages that only some tests need (those in a browser, that
# with the Electrum wallet, and that of the node's figures), `clients` for clients in Python and Go, `shells` for shells,
# manual pages and the unit of systemd, `dist` for releases, `package` for the test of packages, `peers` for what other systems need (`make test-peers`),
# `store` for a cluster of Cassandra (`make test-store`).
set -eu
rust_needed=1.95

missing=()
need() { # PACKAGE TEST...: the package is missing if the test fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
have_boost() { compgen -G '/usr/include/boost/version.hpp' || compgen -G '/usr/local/include/boost/version.hpp'; }
have_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable; }
# The name without a version, which bindgen looks for: clang alone brings libclang-14.so.1 and libclang-cpp.so.14.
have_libclang() { compgen -G '/usr/lib/llvm-*/lib/libclang.so' || compgen -G '/usr/lib/*/libclang.so'; }
have_libevent() { compgen -G '/usr/include/event2/event.h' || compgen -G '/usr/local/include/event2/event.h'; }
# Versions of Java that Cassandra 5.0 supports; Debian's 17 need not be the default one.
have_java() { java --version 2>/dev/null | grep -qE '^[a-z]+ (11|17)\.' || compgen -G '/usr/lib/jvm/java-17-openjdk-*/bin/java'; }
# A compiler without the C library's headers cannot build anything.
have_c() { command -v cc && echo '#include <stdlib.h>' | cc -E -x c - ; }

advice="install it with rustup (https://rustup.rs), or run 'rustup update stable'"
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
  echo "setup: Rust $rust_needed or newer is needed, and cargo or rustc is missing: $advice" >&2
  exit 1
fi
found=$(rustc --version | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p')
if [ "$(printf '%s\n' "$rust_needed" "${found:-0}" | sort -V | head -1)" != "$rust_needed" ]; then
  echo "setup: Rust $rust_needed or newer is needed, and $(command -v rustc) is $(rustc --version): $advice" >&2
  exit 1
fi

case ${1:-build} in
  build)
    need gcc have_c
    need libc6-dev have_c
    ;;
  browser) need chromium have_browser ;;
  wallet) need electrum command -v electrum ;;
  clients)
    need python3 command -v python3
    need python3-venv python3 -c 'import ensurepip, venv'
    need golang-go command -v go
    ;;
  shells)
    need bash command -v bash
    need zsh command -v zsh
    need fish command -v fish
    need mandoc command -v mandoc
    need systemd command -v systemd-analyze
    ;;
  dist)
    need binutils command -v objdump
    need dpkg command -v dpkg-deb
    need mmdebstrap command -v mmdebstrap # the image, and the glibc that programs are linked against
    ;;
  package) # what reads and runs the results of `make dist`
    need mmdebstrap command -v mmdebstrap
    need lintian command -v lintian
    need skopeo command -v skopeo
    need umoci command -v umoci
    need crun command -v crun
    need jq command -v jq
    need qemu-user-static command -v qemu-aarch64-static # arm64
    ;;
  prometheus) need prometheus command -v promtool ;;
  peers)
    need npm command -v npm         # bcoin, libraries of wallets, axe-core
    need make command -v make
    need python3 command -v python3 # bcoin, ElectrumX
    need python3-venv python3 -c 'import ensurepip, venv'
    need clang command -v clang     # electrs
    need libclang-dev have_libclang
    ;;
  store)
    need openjdk-17-jre-headless have_java
    need maven command -v mvn
    ;;
  test)
    need gcc have_c
    need libc6-dev have_c
    need git command -v git
    need g++ command -v g++
    need cmake command -v cmake
    need ninja-build command -v ninja
    need pkg-config command -v pkg-config
    need libboost-dev have_boost
    need libevent-dev have_libevent
    need golang-go command -v go
    ;;
  *)
    echo "setup: unknown argument '$1'; build, test, browser, wallet, clients, shells, prometheus, dist, package, peers or store" >&2
    exit 1
    ;;
esac

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "setup: missing system packages; install them with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
