#!/bin/bash
# Collects the files of a release in a folder, from which the archive, the package and the image are made.
# Arguments: the folder of the programs, the folder to make, and the folder of the build, in which xtask is built.
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
bin=$1
stage=$2
build=$3
rm -rf -- "$stage"
mkdir -p "$stage/bin" "$stage/debug" "$stage/man" "$stage/completions"

for program in "${programs[@]}"; do
  [ -x "$bin/$program" ] || fail "$bin/$program is missing"
  check_needs "$bin/$program"
  # Line numbers for backtraces and profilers are several times as large as the code: they are an archive of their own.
  objcopy --only-keep-debug --compress-debug-sections "$bin/$program" "$stage/debug/$program.debug"
  objcopy --strip-unneeded --remove-section=.comment "$bin/$program" "$stage/bin/$program"
  (cd "$stage/debug" && objcopy --add-gnu-debuglink="$program.debug" "../bin/$program")
  chmod 755 "$stage/bin/$program"
  chmod 644 "$stage/debug/$program.debug"
done

date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
"$bin/lydian" "-help-manual=$date" >"$stage/man/lydian.1"
"$bin/lydian-cli" "-help-manual=$date" >"$stage/man/lydian-cli.1"
"$bin/lydian-lab" manual --out "$stage/man" --date "$date" >/dev/null
for program in "${programs[@]}"; do
  "$bin/$program" completions bash >"$stage/completions/$program.bash"
  "$bin/$program" completions zsh >"$stage/completions/_$program"
  "$bin/$program" completions fish >"$stage/completions/$program.fish"
done

xtask=$bin/xtask
if [ ! -x "$xtask" ]; then
  cargo build --quiet --locked --target-dir "$build" -p xtask
  xtask=$build/debug/xtask
fi
"$xtask" sbom >"$stage/sbom.cdx.json"
"$xtask" third-party >"$stage/THIRD-PARTY.txt"
cp -- README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE contrib/systemd/lydian.service contrib/debian/lydian.conf "$stage"
