#!/bin/bash
# Writes the dump of btcd's full-block tests to FILE (format: head of main.go). It is written anew each time, because the
# tests carry the present time. Where Go is missing or too old the file is removed and the test that reads it says that it did not run.
set -eu
file=$1
cd "$(dirname "$0")"

leave() {
  rm -f -- "$file"
  echo "fullblocktests: not run: $1"
  exit 0
}
command -v go >/dev/null || leave "there is no go"
# From 1.21 on, go fetches the toolchain that go.mod asks for.
minor=$(go env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
[ "${minor:-0}" -ge 21 ] || leave "go is older than 1.21 ($(go env GOVERSION))"

mkdir -p "$(dirname "$file")"
trap 'rm -f -- "$file.new"' EXIT
go run . >"$file.new"
mv -- "$file.new" "$file"
echo "fullblocktests: $(($(wc -l <"$file") - 1)) expectations, $(stat -c %s "$file") bytes"
