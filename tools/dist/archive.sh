#!/bin/bash
# Makes the archive of the programs, and that of their debug information.
# Arguments: the staged files, the architecture (amd64 or arm64), and the folder of the results.
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
stage=$1
case $2 in
  amd64) name=lydian-$version-x86_64-linux-gnu ;;
  arm64) name=lydian-$version-aarch64-linux-gnu ;;
  *) fail "unknown architecture $2" ;;
esac
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
# The programs are at the top, so that `./lydian` works after unpacking.
mkdir "$work/lydian-$version" "$work/lydian-$version-debug"
cp -r -- "$stage"/bin/* "$stage"/{README.md,CHANGELOG.md,LICENSE-MIT,LICENSE-APACHE,THIRD-PARTY.txt,sbom.cdx.json} \
  "$stage"/{lydian.service,lydian.conf,man,completions} "$work/lydian-$version"
cp -- "$stage"/debug/* "$work/lydian-$version-debug"
reproducible_tar "$work" "lydian-$version" | gzip -9n >"$3/$name.tar.gz"
reproducible_tar "$work" "lydian-$version-debug" | gzip -9n >"$3/$name-debug.tar.gz"
