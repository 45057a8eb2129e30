#!/bin/bash
# Boots a Debian 12 with systemd in namespaces, installs the Debian package there, and lets systemd run the unit: start,
# sync, kill -9, a filter of system calls without io_uring, settings that are wrong, upgrade, stop, removal. Needs root and
# the chain that tools/package-test.sh serves, which calls this.
# Arguments: the package, a newer one, the port of a node that serves a chain, the length of the chain, and its tip.
# Environment: XDG_CACHE_HOME, where the Debian is kept as an archive.
set -eu
cd "$(dirname "$0")/.."
say() { echo "systemd-test: $*"; }
fail() {
  echo "systemd-test: FAILED: $*" >&2
  exit 1
}
deb=$1 newer=$2 server_port=$3 blocks=$4 tip=$5
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lydian
base=$cache/debian-12-systemd.tar
if [ ! -f "$base" ]; then
  mkdir -p "$cache"
  # mmdebstrap makes a folder of a name that does not end so.
  new=${base%.tar}-new.tar
  say "making a Debian 12 with systemd (once)"
  if ! mmdebstrap --quiet --variant=minbase --include=systemd-sysv bookworm "$new"; then
    say "LEFT OUT: a boot under systemd, as mmdebstrap failed (see above)"
    exit 0
  fi
  mv -- "$new" "$base"
fi
work=$(mktemp -d)
root=$work/root
mkdir "$root"
init=
cleanup() {
  # Everything in its namespace ends with it, and so do the mounts.
  [ -z "$init" ] || kill -KILL "$init" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf --one-file-system -- "$work"
}
trap cleanup EXIT
tar --extract --directory "$root" --file "$base"
cp -- "$deb" "$root/opt/lydian.deb"
cp -- "$newer" "$root/opt/newer.deb"

# What a container engine prepares; the network is this machine's.
cat >"$work/boot" <<'BOOT'
set -eu
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"; done
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root"/dev/{pts,shm,mqueue}
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
cd "$root"
mkdir -p old
pivot_root . old
umount --lazy /old
# As systemd itself does: namespaces of services get what is mounted later.
mount --make-rshared /
exec env -i container=lydian-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
BOOT
unshare --mount --propagation private --pid --fork --kill-child --cgroup --uts --ipc bash "$work/boot" "$root" \
  >"$work/console.txt" 2>&1 </dev/null &
outer=$!
# SECONDS COMMAND...: waits until the command succeeds. The limit only ends a test that hangs.
wait_until() {
  local until=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [ "$SECONDS" -lt "$until" ] || fail "this never came true: $*: $(tail -5 "$work/console.txt")"
    sleep 0.2
  done
}
inside() { nsenter --target "$init" --mount --pid --cgroup --uts --ipc -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
has_booted() {
  init=$(pgrep --parent "$outer") || { kill -0 "$outer" || fail "no boot: $(tail -3 "$work/console.txt")"; return 1; }
  # A container may lack units that a machine has; it is then "degraded".
  case $(inside systemctl is-system-running) in running | degraded) ;; *) return 1 ;; esac
}
if ! unshare --mount --pid --fork --cgroup true 2>/dev/null; then
  say "LEFT OUT: a boot under systemd, as this machine allows no namespaces"
  exit 0
fi
wait_until 120 has_booted
say "systemd $(inside systemctl --version | awk 'NR == 1 {print $2}') is process 1"

property() { inside systemctl show --property="$1" --value lydian.service; }
journal() { inside journalctl --unit=lydian --lines=8 --output=cat; }
start() { inside systemctl start lydian.service 2>/dev/null || fail "it does not start: $(journal)"; }
is() { [ "$(property "$1")" = "$2" ]; }
must_be() { is "$1" "$2" || fail "$1 is $(property "$1"), not $2: $(journal)"; }

say "install: the unit is known, and neither enabled nor started"
began=${EPOCHREALTIME/./}
inside dpkg --install /opt/lydian.deb >/dev/null
installed=${EPOCHREALTIME/./}
must_be ActiveState inactive
[ "$(inside systemctl is-enabled lydian.service || true)" = disabled ] || fail "the unit is enabled"
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)) && { : <"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; do :; done
  echo "$port"
}
in_conf() { inside tee --append /etc/lydian/lydian.conf >/dev/null; }
in_conf <<CONF
regtest=1
[regtest]
connect=127.0.0.1:$server_port
listen=0
rpcport=$(free_port)
CONF
ask() { inside setpriv --reuid=lydian --regid=lydian --init-groups -- lydian-cli -datadir=/var/lib/lydian -conf=/etc/lydian/lydian.conf "$@"; }
height_is() { [ "$(ask getblockcount)" = "$1" ]; }

say "start: systemctl returns when the node is ready, which answers at once"
starting=${EPOCHREALTIME/./}
start
ask getblockcount >/dev/null || fail "the node is ready and does not answer"
answered=${EPOCHREALTIME/./}
say "$(((installed - began) / 1000)) ms for dpkg --install, $(((answered - starting) / 1000)) ms from systemctl start to the first RPC answer"
wait_until 600 height_is "$blocks"
[ "$(ask getbestblockhash)" = "$tip" ] || fail "the tips differ"
wait_until 60 eval '[ -n "$(property StatusText)" ]'
pid=$(property MainPID)
status=$(inside cat "/proc/$pid/status")
for line in NoNewPrivs:$'\t'1 Seccomp:$'\t'2 CapEff:$'\t'0000000000000000 CapBnd:$'\t'0000000000000000; do
  grep -qx "$line" <<<"$status" || fail "the node runs without '$line': $status"
done
[ "$(inside stat -c %U "/proc/$pid")" = lydian ] || fail "the node runs as $(inside stat -c %U "/proc/$pid")"

say "kill -9: systemd starts it again, and the chain is whole"
inside systemctl kill --signal=KILL --kill-whom=main lydian.service
wait_until 120 is NRestarts 1
wait_until 120 is ActiveState active
wait_until 300 height_is "$blocks"

say "the unit's filter of system calls allows io_uring; where it is refused, threads read, and the chain is the same"
inside systemctl stop lydian.service
inside mkdir -p /etc/systemd/system/lydian.service.d
# What is started after the node has the same limits. Its exit code is 1, as a chain of this age is a warning.
inside tee /etc/systemd/system/lydian.service.d/doctor.conf >/dev/null <<'UNIT'
[Service]
ExecStartPost=-/bin/sh -c 'lydian doctor --json -datadir=/var/lib/lydian -conf=/etc/lydian/lydian.conf >/var/lib/lydian/doctor.json'
UNIT
doctor_says() { # CHECK LEVEL
  local level
  level=$(inside cat /var/lib/lydian/doctor.json | jq -r --arg name "$1" '.checks[] | select(.name == $name) | .level')
  [ "$level" = "$2" ] || fail "doctor: $1 is '$level', not $2: $(inside cat /var/lib/lydian/doctor.json)"
}
inside systemctl daemon-reload
start
doctor_says io-uring ok
doctor_says permissions ok
doctor_says user ok
doctor_says rpc ok
inside systemctl stop lydian.service
inside tee /etc/systemd/system/lydian.service.d/filter.conf >/dev/null <<'UNIT'
[Service]
SystemCallFilter=~io_uring_setup io_uring_enter io_uring_register
UNIT
inside systemctl daemon-reload
rm -rf -- "$root/var/lib/lydian/regtest"
# Coins are read from disk.
printf 'dbcache=4\nlowmem=1\n' | in_conf
start
doctor_says io-uring warning
wait_until 600 height_is "$blocks"
[ "$(ask getbestblockhash)" = "$tip" ] || fail "another tip without io_uring"
inside rm -r /etc/systemd/system/lydian.service.d
inside systemctl daemon-reload

say "reload: the log is opened again, as after a rotation, and the node goes on"
pid=$(property MainPID)
log=$root/var/lib/lydian/regtest/debug.log
mv -- "$log" "$log.1"
inside systemctl reload lydian.service
ask setnetworkactive false >/dev/null # is logged
wait_until 60 test -s "$log"
must_be MainPID "$pid"
must_be ActiveState active

say "upgrade: the running service is restarted"
inside dpkg --install /opt/newer.deb >/dev/null
must_be ActiveState active
[ "$(property MainPID)" != "$pid" ] || fail "the upgrade left the old program running"
wait_until 300 height_is "$blocks"

say "settings that the node refuses: systemctl says that it failed, and the journal says why"
inside systemctl stop lydian.service
must_be ActiveState inactive
must_be Result success
echo 'prune=2' | in_conf
! inside systemctl start lydian.service 2>/dev/null || fail "the node starts with -prune=2"
wait_until 60 eval "inside journalctl --unit=lydian --output=cat | grep -q 'Prune configured below'"
inside systemctl stop lydian.service
inside sed -i /prune=2/d /etc/lydian/lydian.conf
start

say "remove: the service is stopped first, and its data stays"
inside dpkg --remove lydian >/dev/null
! pgrep --ns "$init" --nslist pid --exact lydian >/dev/null || fail "the node runs after the removal"
[ -e "$root/var/lib/lydian/regtest/blocks" ] || fail "removal deleted data"
say "passed"
