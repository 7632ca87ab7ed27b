#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing, and only those.
#
#   install-packages.sh [build | demo | check] ...   what for (default: all three)
#   install-packages.sh --list [GROUP ...]           print the packages and do nothing
#
#   build   compile proverq                    demo    also run it: PostgreSQL's server, wabt for calculators, Python for the sample consumer
#   check   also test it: Check, GMP, node and npm, linters, valgrind
#
# When nothing is missing it does nothing and uses no network. Without the rights to install, it names what to ask for.
# A PostgreSQL server that it installs gets no cluster and no running service, pgbouncer none either: the demo and the tests start
# their own.
set -euo pipefail

packages_of() {
    case $1 in
    build) echo gcc make pkg-config libpq-dev libcurl4-openssl-dev libssl-dev libjansson-dev libmicrohttpd-dev ;;
    demo) echo postgresql postgresql-client ca-certificates curl jq python3 procps wabt libc6-dev ;;
    check) echo g++ check libsubunit-dev libgmp-dev nodejs npm valgrind clang-format clang-tidy cppcheck shellcheck git pgbouncer systemd iproute2 faketime ;;
    esac
}

groups=()
list=no
for argument in "$@"; do
    case $argument in
    build | demo | check) groups+=("$argument") ;;
    --list) list=yes ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
[ ${#groups[@]} -gt 0 ] || groups=(build demo check)

wanted=()
for group in "${groups[@]}"; do
    read -ra packages < <(packages_of "$group")
    wanted+=("${packages[@]}")
done
if [ $list = yes ]; then
    printf '%s\n' "${wanted[@]}"
    exit 0
fi

# A program that came some other way (node from elsewhere, say) serves as well as its package.
present() {
    case $1 in
    nodejs) command -v node ;;
    npm | gcc | g++ | make | valgrind | clang-format | clang-tidy | cppcheck | shellcheck | curl | jq | python3 | git | pkg-config) command -v "$1" ;;
    wabt) command -v wasm2c ;;
    systemd) command -v systemd-analyze ;;
    pgbouncer) command -v pgbouncer || [ -x /usr/sbin/pgbouncer ] ;;
    procps) command -v pgrep ;;
    postgresql-client) command -v psql ;;
    postgresql) compgen -G '/usr/lib/postgresql/*/bin/postgres' || command -v postgres ;;
    *) dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep '^ii' ;;
    esac >/dev/null
}

missing=()
for package in "${wanted[@]}"; do
    present "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then
        as_root=(sudo)
    else
        echo "install-packages.sh: these packages are missing and need an administrator:" >&2
        echo "    apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi
if ! command -v apt-get >/dev/null; then
    echo "install-packages.sh: no apt-get here; install what these Debian packages hold: ${missing[*]}" >&2
    exit 1
fi

log=$(mktemp)
apt() {
    if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "install-packages.sh: apt-get $1 failed; the whole of what it said is in $log" >&2
        exit 1
    fi
}

# Debian's postgresql makes a cluster and starts it unless postgresql-common says no beforehand.
no_cluster() {
    apt install -y --no-install-recommends postgresql-common
    "${as_root[@]}" mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" |
        "${as_root[@]}" tee /etc/postgresql-common/createcluster.d/proverq.conf >/dev/null
}

# Debian's pgbouncer starts a service; the tests start one of their own.
no_pooler() {
    "${as_root[@]}" systemctl disable --now pgbouncer || {
        "${as_root[@]}" service pgbouncer stop
        "${as_root[@]}" update-rc.d pgbouncer disable
    }
}

echo "installing, in about a minute: ${missing[*]}"
apt update
if [[ " ${missing[*]} " == *" postgresql "* ]]; then no_cluster; fi
apt install -y --no-install-recommends "${missing[@]}"
if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    "${as_root[@]}" rm -f /etc/postgresql-common/createcluster.d/proverq.conf
fi
if [[ " ${missing[*]} " == *" pgbouncer "* ]]; then no_pooler >/dev/null 2>&1 || true; fi
rm -f "$log"
