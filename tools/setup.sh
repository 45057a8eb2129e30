#!/bin/bash
# Installs missing system packages that builds and tests need, with apt if run as root; otherwise prints the command.
# Argument: none, or `browser` for the package that only the test of the report's page needs, or `peers` for the
# packages needed to install other systems (`make test-peers`). The exit code is 1 if something is still missing.
# Installed packages are never changed.
set -eu

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

command -v cargo >/dev/null || { echo "setup: cargo is missing; install Rust 1.95 or newer with rustup first" >&2; exit 1; }
if [ "${1:-}" = browser ]; then
  need chromium have_browser
elif [ "${1:-}" = peers ]; then
  need npm command -v npm         # bcoin
  need make command -v make
  need python3 command -v python3 # bcoin, ElectrumX
  need python3-venv python3 -c 'import ensurepip, venv'
  need clang command -v clang     # electrs
  need libclang-dev have_libclang
else
  need git command -v git
  need g++ command -v g++
  need cmake command -v cmake
  need ninja-build command -v ninja
  need pkg-config command -v pkg-config
  need libboost-dev have_boost
  need libevent-dev have_libevent
  need golang-go command -v go
fi

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "setup: missing system packages; install them with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
