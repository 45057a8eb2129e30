#!/bin/bash
# Installs the Debian package of target/dist in a fresh Debian 12, and syncs a chain over loopback as the service would: as
# the user lydian, with the command of the unit. Then: kill -9, an upgrade during a sync, settings that an administrator
# changed, removal, purge, installation on the data of before; and a full disk: under the archive, the installation, an
# upgrade, a sync. The same package syncs in a Debian 11, which has the oldest glibc that is supported. systemd runs the
# unit in another Debian. The archive and the image are started too, and so are those for arm64, under qemu. Needs root,
# mmdebstrap and a mirror of Debian; what is missing is printed as LEFT OUT.
# Environment: DIST_FOLDER, the folder of the release (default: target/dist); PACKAGE_BLOCKS, the length of the chain
# (default 440, at least 436).
set -eu
cd "$(dirname "$0")/.."
. tools/dist/common.sh
say() { echo "package-test: $*"; }
fail() {
  echo "package-test: FAILED: $*" >&2
  exit 1
}
dist=$(realpath "${DIST_FOLDER:-target/dist}")
deb=$dist/lydian_${version}_amd64.deb
blocks=${PACKAGE_BLOCKS:-440}
if [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap >/dev/null; then
  say "LEFT OUT: the package in a fresh system, which needs root and mmdebstrap"
  exit 0
fi
[ -f "$deb" ] || fail "$deb is missing: run 'make dist'"
# Mounts end with this script.
if [ -z "${PACKAGE_TEST_MOUNTS:-}" ]; then
  exec env PACKAGE_TEST_MOUNTS=1 unshare --mount --propagation private "$0" "$@"
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/lydian
# NUMBER NAME: makes a fresh Debian of this release, once.
make_debian() {
  local base=$cache/debian-$1.tar
  [ ! -f "$base" ] || return 0
  mkdir -p "$cache"
  # mmdebstrap makes a folder of a name that does not end so.
  local new=${base%.tar}-new.tar
  say "making a fresh Debian $1 (once)"
  if ! mmdebstrap --quiet --variant=minbase "$2" "$new"; then
    say "LEFT OUT: the package in a fresh Debian $1, as mmdebstrap failed (see above)"
    return 1
  fi
  mv -- "$new" "$base"
}
make_debian 12 bookworm || exit 0
base=$cache/debian-12.tar

work=$(mktemp -d)
root=$work/root
pids=()
cleanup() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null # without the shell's "Killed"
  umount --lazy "$work"/*/proc "$work/small" 2>/dev/null || true
  rm -rf --one-file-system -- "$work"
}
trap cleanup EXIT
# FOLDER: unpacks a fresh Debian there, in which the commands below run from then on.
use_fresh_system() {
  root=$1
  tar --extract --directory "$root" --file "$base"
  mount -t proc proc "$root/proc"
  # No bind mount of /dev, which a mistake here would delete.
  local device
  for device in null:3 zero:5 full:7 random:8 urandom:9; do
    [ -c "$root/dev/${device%:*}" ] || mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
  done
  enter=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive)
}
mkdir "$root"
use_fresh_system "$root"
in_root() { "${enter[@]}" "$@"; }
port_free() { ! { : <"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null; }
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)) && ! port_free "$port"; do :; done
  echo "$port"
}
# SECONDS COMMAND...: waits until the command succeeds. The limit only ends a test that hangs.
wait_until() {
  local until=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [ "$SECONDS" -lt "$until" ] || fail "this never came true: $*"
    sleep 0.2
  done
}

say "the archive works where it is unpacked, and the hashes are those of the files"
(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
tar --extract --gzip --file "$dist/lydian-$version-x86_64-linux-gnu.tar.gz" --directory "$root/opt"
in_root "/opt/lydian-$version/lydian" -version | head -1
here=$work/here/lydian-$version
mkdir "$work/here"
cp -r -- "$root/opt/lydian-$version" "$work/here"

say "making a chain of $blocks blocks, and a node that serves it"
"$here/lydian-lab" chain --preset mainnet-mix --blocks "$blocks" --full 4 --seed 1 --out "$work/chain" >/dev/null
mkdir "$work/server"
"$here/lydian" import "$work/chain" -regtest "-datadir=$work/server" >"$work/import.txt" 2>&1 || fail "import: $(tail -1 "$work/import.txt")"
server_port=$(free_port)
"$here/lydian" -regtest "-datadir=$work/server" -listen=1 "-bind=127.0.0.1:$server_port" -connect=0 -server=0 \
  -printtoconsole=0 >/dev/null 2>&1 &
pids+=($!)
wait_until 120 grep -q "Bound to 127.0.0.1:$server_port" "$work/server/regtest/debug.log"

rpc_port=$(free_port)
# The unit's own command, as its user; regtest and the peer are what this test adds.
command=$(sed -n 's/^ExecStart=//p' contrib/systemd/lydian.service)
start_node() { # OPTION...
  # Every word of this is replaced by the next one, so that $! is the node. The command is several words.
  # shellcheck disable=SC2086
  "${enter[@]}" setpriv --reuid=lydian --regid=lydian --init-groups --no-new-privs -- $command -regtest \
    "-connect=127.0.0.1:$server_port" -listen=0 "-rpcport=$rpc_port" "$@" >"$work/node.txt" 2>&1 &
  node=$!
  pids+=("$node")
}
ask() { in_root setpriv --reuid=lydian --regid=lydian --init-groups -- lydian-cli -regtest -datadir=/var/lib/lydian "-rpcport=$rpc_port" "$@"; }
height_is() { [ "$(ask getblockcount)" = "$1" ]; }
height_above() { [ "$(ask getblockcount)" -gt "$1" ]; }
stop_node() {
  ask stop >/dev/null
  wait "$node" || fail "the node did not stop cleanly: $(tail -3 "$work/node.txt")"
}
must_have() { [ -e "$root$1" ] || fail "$1 is missing $2"; }
must_lack() { [ ! -e "$root$1" ] || fail "$1 is there $2"; }

say "install: no other package is needed"
cp -- "$deb" "$root/opt/lydian.deb"
in_root dpkg --install /opt/lydian.deb >/dev/null
for file in /usr/bin/lydian /usr/bin/lydian-cli /usr/bin/lydian-lab /lib/systemd/system/lydian.service \
  /usr/share/bash-completion/completions/lydian /usr/share/zsh/vendor-completions/_lydian \
  /usr/share/fish/vendor_completions.d/lydian.fish; do must_have "$file" "after installation"; done
[ -z "$(in_root dpkg --audit)" ] || fail "dpkg --audit: $(in_root dpkg --audit)"
in_root dpkg --verify lydian
owners=$(in_root stat -c '%a %U:%G' /etc/lydian /etc/lydian/lydian.conf /var/lib/lydian | tr '\n' ' ')
[ "$owners" = "710 root:lydian 640 root:lydian 710 lydian:lydian " ] || fail "owners and modes: $owners"

say "sync, then kill -9, then the same data again"
start_node
wait_until 300 height_above 0
kill -KILL "$node"
wait "$node" 2>/dev/null || true
start_node
wait_until 600 height_is "$blocks"
tip=$(ask getbestblockhash)
[ "$tip" = "$("$here/lydian" info --json -regtest "-datadir=$work/server" | sed -n 's/.*"tip": *"\([0-9a-f]*\)".*/\1/p' | head -1)" ] ||
  fail "the tips differ"
stop_node

say "upgrade during a sync, with settings of the administrator's"
rm -rf -- "$root/var/lib/lydian/regtest"
echo 'dbcache=100' >>"$root/etc/lydian/lydian.conf"
start_node
wait_until 300 height_above 0
mkdir "$work/newer"
dpkg-deb --raw-extract "$deb" "$work/newer/root"
sed -i "s/^Version: .*/Version: $version+test/" "$work/newer/root/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/newer/root" "$work/newer.deb" >/dev/null
cp -- "$work/newer.deb" "$root/opt/newer.deb"
in_root dpkg --install /opt/newer.deb >/dev/null
grep -q '^dbcache=100$' "$root/etc/lydian/lydian.conf" || fail "the upgrade lost the administrator's settings"
[ "$(in_root stat -c '%a %U:%G' /etc/lydian/lydian.conf)" = "640 root:lydian" ] || fail "the upgrade changed the owner of the settings"
stop_node
start_node
wait_until 600 height_is "$blocks"
[ "$(ask getbestblockhash)" = "$tip" ] || fail "another tip after the upgrade"
stop_node

say "remove and purge: data is kept"
in_root dpkg --remove lydian >/dev/null
must_lack /usr/bin/lydian "after removal"
must_have /etc/lydian/lydian.conf "after removal"
must_have /var/lib/lydian/regtest/blocks "after removal"
said=$(in_root dpkg --purge lydian)
case $said in *'data in /var/lib/lydian'*) ;; *) fail "purge does not say that data is kept: $said" ;; esac
must_lack /etc/lydian/lydian.conf "after purge"
must_have /var/lib/lydian/regtest/blocks "after purge"
in_root getent passwd lydian >/dev/null || fail "the owner of the data is gone after purge"

say "install again: the data of before is used"
in_root dpkg --install /opt/lydian.deb >/dev/null
start_node -connect=0
wait_until 300 height_is "$blocks"
stop_node

say "disk full while the archive is unpacked, and while the package is installed: nothing stays behind"
archive=$dist/lydian-$version-x86_64-linux-gnu.tar.gz
mkdir "$work/small"
# The system of before, but for what is unpacked or written into it.
mount -t tmpfs -o "size=$(($(stat -c %s "$base") / 1048576 + 4 * ($(gzip -dc "$archive" | wc -c) / 1048576) + 100))m" tmpfs "$work/small"
use_fresh_system "$work/small"
cp -- "$deb" "$root/opt/lydian.deb"
cp -- "$work/newer.deb" "$root/opt/newer.deb"
fill() { # MIB: leaves so many free
  fallocate --length "$(($(df --output=avail --block-size=1K "$root" | tail -1) - $1 * 1024))KiB" "$root/filler"
}
# COMMAND...: must fail, and must say that the disk is full.
must_lack_space() {
  ! said=$("$@" 2>&1) || fail "this works on a full disk: $*"
  case $said in *'No space left on device'*) ;; *) fail "$* does not say that the disk is full: $said" ;; esac
}
state() { in_root dpkg-query --show --showformat='${Status} ${Version}' lydian; }
# What dpkg leaves of files that it did not finish.
must_be_tidy() {
  local left
  left=$(find "$root/usr" "$root/etc" "$root/lib/systemd" -name '*.dpkg-new' -o -name '*.dpkg-tmp')
  [ -z "$left" ] || fail "left behind $1: $left"
}
fill 2
must_lack_space tar --extract --gzip --file "$archive" --directory "$root/opt"
rm -rf -- "$root/opt/lydian-$version"
must_lack_space in_root dpkg --install /opt/lydian.deb
must_lack /usr/bin/lydian "after an installation without space"
must_be_tidy "by an installation without space"
rm -- "$root/filler"
in_root dpkg --install /opt/lydian.deb >/dev/null

say "disk full during an upgrade: the version of before stays, and the same command works with more space"
fill 2
must_lack_space in_root dpkg --install /opt/newer.deb
[ "$(state)" = "install ok installed $version" ] || fail "after an upgrade without space: $(state)"
must_be_tidy "by an upgrade without space"
cmp -- "$here/lydian" "$root/usr/bin/lydian" || fail "an upgrade without space changed the program"
in_root dpkg --verify lydian
in_root lydian -version >/dev/null
rm -- "$root/filler"
in_root dpkg --install /opt/newer.deb >/dev/null
[ "$(state)" = "install ok installed $version+test" ] || fail "after the upgrade with space: $(state)"

say "disk full during a sync: the node ends with a sentence, and continues with more space"
start_node -networkactive=0
wait_until 300 height_is 0
fill 0
ask setnetworkactive true >/dev/null
wait_until 300 eval "! kill -0 $node"
! wait "$node" || fail "the node ended on a full disk as if nothing had happened"
grep -q 'free some space and start again' "$work/node.txt" || fail "on a full disk the node says: $(tail -3 "$work/node.txt")"
rm -- "$root/filler"
start_node
wait_until 600 height_is "$blocks"
[ "$(ask getbestblockhash)" = "$tip" ] || fail "another tip after a full disk"
stop_node

say "the steps of docs/usage.md make a service without the package"
manual=$work/manual
mkdir "$manual"
tar --extract --directory "$manual" --file "$base"
mkdir -p "$manual/src/target/release" "$manual/src/contrib"
cp -r -- contrib/systemd "$manual/src/contrib"
cp -- "$here/lydian" "$here/lydian-cli" "$manual/src/target/release"
in_manual() { chroot "$manual" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# All but the last step, which needs systemd. Without sudo, as this is root.
steps=$(sed -n '/^## As a service/,/^## Manual pages/s/^    sudo \(.*\)/\1/p' docs/usage.md | grep -v '^systemctl ')
[ "$(wc -l <<<"$steps")" -ge 5 ] || fail "docs/usage.md has no steps: $steps"
in_manual sh -ec "cd /src; $steps"
# systemd makes the state directory; it makes no directory of settings, which would belong to root alone.
in_manual install -d -m 710 -o lydian -g lydian /var/lib/lydian
# shellcheck disable=SC2086 # the command is several words
in_manual setpriv --reuid=lydian --regid=lydian --init-groups --no-new-privs -- $command -regtest -connect=0 -listen=0 -server=0 \
  -stopafterblockimport || fail "a service that was made by hand does not start"

oldest=2.31
# FOLDER: whether the programs there need a newer glibc than the oldest that is supported; sets $needs to what they need.
needs_newer() {
  needs=$(for program in "${programs[@]}"; do glibc_of "$1/$program"; done | sort -Vu | tail -1)
  [ "$(printf '%s\n' "$needs" "$oldest" | sort -V | tail -1)" != "$oldest" ]
}
if needs_newer "$here"; then
  say "LEFT OUT: Debian 11, as these programs are linked against a newer glibc and need $needs"
elif make_debian 11 bullseye; then
  say "in a Debian 11, with glibc $oldest, the oldest that is supported: install, sync, doctor"
  base=$cache/debian-11.tar
  mkdir "$work/oldest"
  use_fresh_system "$work/oldest"
  in_root sh -c 'ls /lib/x86_64-linux-gnu/libc-*.so' | grep -q "/libc-$oldest.so$" || fail "Debian 11 has another glibc"
  cp -- "$deb" "$root/opt/lydian.deb"
  in_root dpkg --install /opt/lydian.deb >/dev/null
  for program in "${programs[@]}"; do in_root "$program" --version >/dev/null; done
  start_node
  wait_until 600 height_is "$blocks"
  [ "$(ask getbestblockhash)" = "$tip" ] || fail "another tip in Debian 11"
  in_root setpriv --reuid=lydian --regid=lydian --init-groups -- lydian doctor -regtest -datadir=/var/lib/lydian \
    "-rpcport=$rpc_port" >"$work/doctor.txt" || [ $? -eq 1 ] || fail "doctor in Debian 11: $(cat "$work/doctor.txt")"
  stop_node
fi

say "under systemd: tools/systemd-test.sh"
tools/systemd-test.sh "$deb" "$work/newer.deb" "$server_port" "$blocks" "$tip"

debs=("$deb")
arm64_deb=$dist/lydian_${version}_arm64.deb
[ ! -f "$arm64_deb" ] || debs+=("$arm64_deb")
if command -v lintian >/dev/null; then
  say "lintian finds no error"
  lintian --allow-root --fail-on error "${debs[@]}"
else
  say "LEFT OUT: lintian, which is not installed"
fi

image=$dist/lydian-$version.oci.tar
if [ -f "$image" ] && command -v skopeo >/dev/null && command -v umoci >/dev/null && command -v crun >/dev/null; then
  say "skopeo reads the image, and crun runs it with a read-only root"
  skopeo copy --quiet "oci-archive:$image:$version" "oci:$work/oci:$version"
  umoci unpack --image "$work/oci:$version" "$work/bundle" >/dev/null 2>&1
  mkdir "$work/volume"
  chown 10001:10001 "$work/volume"
  # shellcheck disable=SC2016 # $volume and $ARGS are variables of jq
  jq --arg volume "$work/volume" '.root.readonly = true | .process.terminal = false
    | .process.args += $ARGS.positional
    | .mounts |= map(select(.type != "cgroup" and .destination != "/data"))
    | .mounts += [{destination: "/data", type: "bind", source: $volume, options: ["rbind", "rw"]}]' \
    --args -- -regtest -connect=0 -listen=0 "-rpcport=$rpc_port" <"$work/bundle/config.json" >"$work/bundle/new.json"
  mv -- "$work/bundle/new.json" "$work/bundle/config.json"
  # crun refuses a hierarchy of both versions; the mount is this script's own.
  [ ! -d /sys/fs/cgroup/unified ] || mount -t cgroup2 none /sys/fs/cgroup
  name=lydian-package-test-$$
  crun --cgroup-manager=disabled run --bundle "$work/bundle" "$name" >"$work/container.txt" 2>&1 &
  container=$!
  pids+=("$container")
  health() {
    crun --cgroup-manager=disabled exec --user 10001:10001 "$name" /usr/bin/lydian-cli -datadir=/data -regtest "-rpcport=$rpc_port" getblockcount
  }
  wait_until 120 eval "health >/dev/null || ! kill -0 $container"
  [ "$(health)" = 0 ] || fail "the container: $(tail -3 "$work/container.txt")"
  [ "$(stat -c %u "$work/volume/regtest")" = 10001 ] || fail "the container writes as another user"
  crun --cgroup-manager=disabled kill "$name" TERM
  wait "$container" || fail "the container did not stop cleanly: $(tail -3 "$work/container.txt")"
else
  say "LEFT OUT: the image, which needs skopeo, umoci and crun"
fi

if [ ! -f "$arm64_deb" ]; then
  say "LEFT OUT: arm64, which this release lacks"
elif ! command -v qemu-aarch64-static >/dev/null; then
  say "LEFT OUT: the programs for arm64, which need qemu-user-static"
else
  say "arm64: the package has the files of that for amd64"
  files() { dpkg-deb --contents "$1" | awk '{print $1, $2, $6}'; }
  diff <(files "$deb") <(files "$arm64_deb") || fail "the packages have different files"
  [ "$(dpkg-deb --field "$arm64_deb" Architecture)" = arm64 ] || fail "the package for arm64: $(dpkg-deb --field "$arm64_deb")"

  debian=11
  arm64=$work/arm64
  at=/opt/lydian-$version
  mkdir -p "$arm64/opt"
  tar --extract --gzip --file "$dist/lydian-$version-aarch64-linux-gnu.tar.gz" --directory "$arm64/opt" ||
    fail "the archive for arm64 cannot be unpacked"
  if ! needs_newer "$arm64$at" && glibc=$(tools/dist/glibc.sh arm64); then
    cp -r -- "$glibc"/{lib,usr} "$arm64"
  else
    debian=12
    mmdebstrap --quiet --variant=extract --architectures=arm64 --include=libc6,libgcc-s1 bookworm - 2>"$work/log" |
      tar --extract --directory "$arm64" --no-same-owner || fail "mmdebstrap: $(tail -2 "$work/log")"
  fi
  say "arm64: the archive's programs under qemu, with glibc and libgcc of a Debian $debian and nothing else"
  on_arm() { # FOLDER OF A SYSTEM, PROGRAM, ARGUMENTS...
    QEMU_LD_PREFIX=$1 qemu-aarch64-static "$1$2" "${@:3}"
  }
  said=$(on_arm "$arm64" "$at/lydian" -version)
  case $said in *aarch64-unknown-linux-gnu*) ;; *) fail "-version does not name the target: $said" ;; esac
  mkdir "$work/arm64-data"
  arm64_options=(-regtest "-datadir=$work/arm64-data" "-rpcport=$rpc_port")
  on_arm "$arm64" "$at/lydian" "${arm64_options[@]}" "-connect=127.0.0.1:$server_port" -listen=0 -printtoconsole=0 >"$work/node.txt" 2>&1 &
  node=$!
  pids+=("$node")
  arm64_height_is() { [ "$(on_arm "$arm64" "$at/lydian-cli" "${arm64_options[@]}" getblockcount)" = "$1" ]; }
  wait_until 3600 eval "arm64_height_is $blocks || ! kill -0 $node"
  arm64_height_is "$blocks" || fail "the node for arm64: $(tail -3 "$work/node.txt")"
  [ "$(on_arm "$arm64" "$at/lydian-cli" "${arm64_options[@]}" getbestblockhash)" = "$tip" ] || fail "the node for arm64 has another tip"
  # Warnings are fine, such as that qemu has no io_uring. The node is a process of qemu here, so that directory and ports seem
  # to be held by another program.
  on_arm "$arm64" "$at/lydian" doctor --json "${arm64_options[@]}" >"$work/doctor.json" || [ $? -le 2 ] || fail "doctor: $(cat "$work/doctor.json")"
  bad=$(awk -F'"' '$2 == "name" { name = $4 } $2 == "level" && $4 == "bad" && name != "" && name !~ /^(holder|ports)$/ { print name }' "$work/doctor.json")
  [ -z "$bad" ] || fail "doctor: bad are '$bad': $(cat "$work/doctor.json")"
  on_arm "$arm64" "$at/lydian-cli" "${arm64_options[@]}" stop >/dev/null
  wait "$node" || fail "the node for arm64 did not stop cleanly: $(tail -3 "$work/node.txt")"
  "$here/lydian" -regtest "-datadir=$work/arm64-data" -connect=0 -listen=0 -server=0 -stopafterblockimport >"$work/node.txt" 2>&1 ||
    fail "the data of arm64 does not open on amd64: $(tail -3 "$work/node.txt")"
  if [ -f "$image" ] && command -v skopeo >/dev/null && command -v umoci >/dev/null; then
    say "arm64: skopeo takes its part of the image"
    skopeo copy --quiet --override-arch arm64 "oci-archive:$image:$version" "oci:$work/oci-arm64:$version"
    umoci unpack --image "$work/oci-arm64:$version" "$work/bundle-arm64" >/dev/null 2>&1
    [ "$(on_arm "$work/bundle-arm64/rootfs" /usr/bin/lydian -version)" = "$(on_arm "$arm64" "$at/lydian" -version)" ] ||
      fail "the image has another program for arm64 than the archive"
  fi
fi
say "passed"
