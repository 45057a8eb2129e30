#!/bin/bash
# Compares the files of others that the page embeds with the packages that they come from, byte by byte. The table in
# crates/dashboard/assets/ORIGIN.md names them. Without npm, or if it cannot download, nothing is compared, which is
# printed; a file that differs ends this with an error.
set -eu
cd "$(dirname "$0")/../crates/dashboard/assets"
say() { echo "vendor: $*"; }
command -v npm >/dev/null || { say "LEFT OUT: npm is not installed"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
count=0
# | `vendor/FILE` | `PACKAGE`, `PATH` | VERSION | LICENCE | `SHA-256` |
while IFS='|' read -r _ file source version _; do
  file=$(tr -d '` ' <<<"$file")
  package=$(cut -d'`' -f2 <<<"$source")
  path=$(cut -d'`' -f4 <<<"$source")
  version=$(tr -d ' ' <<<"$version")
  folder=$scratch/$package-$version
  if [ ! -d "$folder" ]; then
    mkdir "$folder"
    if ! (cd "$folder" && npm pack --silent "$package@$version" >/dev/null 2>&1 && tar -xzf ./*.tgz); then
      say "LEFT OUT: $package $version, which could not be downloaded"
      exit 0
    fi
  fi
  cmp "$file" "$folder/package/$path" || { say "$file is not $path of $package $version"; exit 1; }
  count=$((count + 1))
done < <(grep '^| `vendor/' ORIGIN.md)
[ "$count" -gt 0 ] || { say "ORIGIN.md names no file"; exit 1; }
say "$count files are those of their packages"
