#!/bin/bash
# Runs a command, and stops it and all that it starts for 2 to 2.5 s, every 20 to 40 s: what a busy machine does to tests.
# Usage: tools/stalls.sh COMMAND...      for example: tools/stalls.sh make tests
# Needs root and Linux 5.14 or newer (cgroup.kill). Prints the moments on stderr; exits with the command's code.
set -eu
[ $# -gt 0 ] || { sed -n '3,4p' "$0" >&2; exit 1; }
say() { echo "stalls: $*" >&2; }
# Of both hierarchies, version 2 is mounted here on systems that still have version 1.
root=/sys/fs/cgroup/unified
[ -d "$root" ] || root=/sys/fs/cgroup
group=$root/lydian-stalls-$$
mkdir "$group" || { say "no group can be made in $root: run it as root"; exit 1; }
[ -e "$group/cgroup.kill" ] || { rmdir "$group"; say "$root has no cgroup.kill: Linux 5.14 has"; exit 1; }
pause=''
end() {
  # After an interrupt, the command runs still; it may also have left processes behind.
  echo 1 >"$group/cgroup.kill"
  echo 0 >"$group/cgroup.freeze"
  kill $pause 2>/dev/null || true
  wait
  rmdir "$group"
}
trap end EXIT
trap 'exit 130' INT TERM
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" &
command=$!
while :; do
  sleep $((20 + RANDOM % 21)) >/dev/null 2>&1 &
  pause=$!
  wait -n "$command" "$pause" && code=0 || code=$?
  kill -0 "$command" 2>/dev/null || break
  echo 1 >"$group/cgroup.freeze"
  sleep 2.$((RANDOM % 6))
  echo 0 >"$group/cgroup.freeze"
  say "stopped until $(date +%T)"
done
exit "$code"
