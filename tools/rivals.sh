#!/bin/bash
# Builds rivals/ and runs it with the given arguments. RocksDB is Debian's (librocksdb-dev), because building it takes
# an hour of CPU time; bindgen needs libclang. If run as root, the script installs both with apt; otherwise it prints
# the command. The build is in the cache next to the judge.
set -eu
cd "$(dirname "$0")/.."

missing=()
compgen -G '/usr/lib/*/librocksdb.so' >/dev/null || missing+=(librocksdb-dev)
compgen -G '/usr/lib/llvm-*/lib/libclang.so' >/dev/null || missing+=(libclang-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "rivals: missing system packages; install them with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

libraries=$(dirname "$(compgen -G '/usr/lib/*/librocksdb.so' | head -1)")
export CARGO_TARGET_DIR="${XDG_CACHE_HOME:-$HOME/.cache}/lydian/rivals-target"
ROCKSDB_LIB_DIR=$libraries ROCKSDB_INCLUDE_DIR=/usr/include SNAPPY_LIB_DIR=$libraries \
  cargo build --quiet --release --locked --manifest-path rivals/Cargo.toml
exec "$CARGO_TARGET_DIR/release/lydian-rivals" "$@"
