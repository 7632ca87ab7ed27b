#!/usr/bin/env bash
# The queue under fire: `make chaos`. Needs root, for everything happens in namespaces of its own: network, mounts, processes.
# Nothing of it can be seen from outside, and nothing is left when it ends, however it ends.
#
#   run.sh              the main run, then the four faults, each of which must be found
#   run.sh RUN ...      main, token, decrement, notify, rescan
#
#   CHAOS_SEED=N        what happens, and in what order, follows from it (default: a new one, which is printed)
#   CHAOS_SECONDS=N     how long the main run is disturbed (default 270); longer when a kind of disturbance is still to come
#   CHAOS_PARTITIONS=N  how many partitions are enqueued meanwhile (default 5000)
#
# What was done when is in build/chaos/RUN/timeline, beside the logs of all processes.
set -euo pipefail
cd "$(dirname "$0")/../.."

cannot() {
    echo "chaos: $1" >&2
    exit 1
}

for run in "$@"; do
    [[ $run =~ ^(main|token|decrement|notify|rescan)$ ]] || cannot "there is no run $run; there are main, token, decrement, notify, rescan"
done
[ "$(id -u)" = 0 ] || cannot "needs root, to cut hosts off in network namespaces of its own; run: sudo make chaos"
unshare --net --mount --pid --fork true 2>/dev/null || cannot "this root may not make namespaces (a container must be privileged)"
contrib/scripts/install-packages.sh
nice make -s -j"$(nproc)" build build/proverq-faults build/tests/chaos/verify_all

# The inner shell is the first process of the new process namespace: it reaps what loses its parent, and its end ends all. unshare
# itself takes no signals but the last, and hands that on.
# shellcheck disable=SC2016 # the inner shell's arguments
PYTHONDONTWRITEBYTECODE=1 unshare --net --mount --pid --fork --kill-child --mount-proc bash -c '
    nice python3 tests/chaos/chaos.py "$@" &
    wait $!' chaos "$@" </dev/null &
inside=$!
trap 'kill -KILL $inside; exit 130' TERM INT
wait $inside
