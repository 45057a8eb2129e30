#!/bin/bash
# Collects the files of a release in a folder, from which the archive, the package and the image are made.
# Arguments: the folder of the programs, the folder to make, the folder of the build, in which xtask is built, and the
# architecture (amd64 or arm64).
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
bin=$1
stage=$2
build=$3
arch=$4
rm -rf -- "$stage"
mkdir -p "$stage/bin" "$stage/debug" "$stage/man" "$stage/completions"

here() { for_arch "$arch" "$stage" "$@"; }
for program in "${programs[@]}"; do
  [ -x "$bin/$program" ] || fail "$bin/$program is missing"
  check_needs "$bin/$program"
  cp -- "$bin/$program" "$stage/bin/$program"
  # Line numbers for backtraces and profilers are several times as large as the code: they are an archive of their own.
  here objcopy --only-keep-debug --compress-debug-sections "$stage/bin/$program" "$stage/debug/$program.debug"
  here objcopy --strip-unneeded --remove-section=.comment "$stage/bin/$program"
  here objcopy --add-gnu-debuglink="$stage/debug/$program.debug" "$stage/bin/$program"
  chmod 755 "$stage/bin/$program"
  chmod 644 "$stage/debug/$program.debug"
done

date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
here "$stage/bin/lydian" "-help-manual=$date" >"$stage/man/lydian.1"
here "$stage/bin/lydian-cli" "-help-manual=$date" >"$stage/man/lydian-cli.1"
here "$stage/bin/lydian-lab" manual --out "$stage/man" --date "$date" >/dev/null
for program in "${programs[@]}"; do
  here "$stage/bin/$program" completions bash >"$stage/completions/$program.bash"
  here "$stage/bin/$program" completions zsh >"$stage/completions/_$program"
  here "$stage/bin/$program" completions fish >"$stage/completions/$program.fish"
done

xtask=$bin/xtask
if [ ! -x "$xtask" ]; then
  # It runs for a second: optimising it would take longer.
  cargo build --quiet --locked --target-dir "$build" --config profile.dev.opt-level=0 --config profile.dev.debug=false -p xtask
  xtask=$build/debug/xtask
fi
case $arch in
  amd64) for_release=(x86_64-unknown-linux-gnu) ;;
  arm64) for_release=(aarch64-unknown-linux-gnu "$(cut -d' ' -f2 <<<"$pinned_arm64")") ;;
esac
"$xtask" sbom "${for_release[@]}" >"$stage/sbom.cdx.json"
"$xtask" third-party "${for_release[0]}" >"$stage/THIRD-PARTY.txt"
cp -- README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE contrib/systemd/lydian.service contrib/debian/lydian.conf "$stage"
