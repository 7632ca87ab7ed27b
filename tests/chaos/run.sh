#!/usr/bin/env bash
# The queue under fire: `make chaos`. Needs root, for everything happens in namespaces of its own: network, mounts, processes.
# Nothing of it can be seen from outside, and nothing is left when it ends, however it ends.
#
#   run.sh              the main run, then the four runs that must be found wrong
#   run.sh RUN ...      main, token, decrement, notify, rescan
#
#   CHAOS_SEED=N        what happens, and when, follows from it (default: a new one, which is printed)
#   CHAOS_SECONDS=N     how long the main run is disturbed (default 210)
#   CHAOS_PARTITIONS=N  how many partitions it proves (default 5000)
#
# What was done when is in build/chaos/RUN/timeline, beside the logs of all processes.
set -euo pipefail
cd "$(dirname "$0")/../.."

cannot() {
    echo "chaos: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || cannot "needs root, to cut hosts off in network namespaces of its own; run: sudo make chaos"
for tool in unshare setpriv ip psql python3; do
    command -v "$tool" >/dev/null || cannot "$tool is missing; run: contrib/scripts/install-packages.sh"
done
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || cannot "libfaketime is missing; run: contrib/scripts/install-packages.sh"
for program in build/proverq build/proverq-faults build/tests/chaos/verify_all; do
    [ -x "$program" ] || cannot "$program is missing; run: make chaos"
done
unshare --net --mount --pid --fork true 2>/dev/null || cannot "this root may not make namespaces (in a container: run it privileged)"

# The shell is the first process of the new process namespace: it reaps what loses its parent, and its end ends all.
# shellcheck disable=SC2016 # the inner shell's arguments
exec unshare --net --mount --pid --fork --kill-child --mount-proc bash -c '
    trap "kill -TERM \$child" TERM INT
    python3 tests/chaos/chaos.py "$@" &
    child=$!
    while kill -0 $child 2>/dev/null; do status=0; wait $child || status=$?; done
    exit $status' chaos "$@"
