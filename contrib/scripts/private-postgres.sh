#!/usr/bin/env bash
# A private PostgreSQL (15 or newer) in a folder: for the demo, the tests and trying things out.
#
#   private-postgres.sh start DIR [SETTING=VALUE ...]   start it (made on first use); prints the connection string
#   private-postgres.sh stop DIR                        stop it; its data stays
#   private-postgres.sh remove DIR                      stop it and delete the folder
#   private-postgres.sh url DIR                         print the connection string of a started one
#   private-postgres.sh psql DIR [ARGUMENT ...]         psql as the owner of the application's database
#
# Nothing outside the folder is touched and no port is fixed, so any number can run beside each other and beside the
# system's own. The connection string (role and database `proverq`, no superuser) works from any local user.
#
# - PostgreSQL refuses to run as root: started by root, it runs as the user `postgres` (or `nobody`). If that user cannot
#   reach DIR (a checkout in /root, say), its files are in a new folder of /var/tmp to which DIR/home points;
#   `remove` deletes both.
# - A path to a socket has at most 107 bytes: when DIR is longer than that allows, the socket is in a new folder of /tmp.
# - fsync is off: a crash of PostgreSQL loses nothing, a crash of the machine may. `start DIR fsync=on` changes that.
set -euo pipefail

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

fail() {
    echo "private-postgres.sh: $*" >&2
    exit 1
}

# Prints the newest folder of server programs that is version 15 or later.
find_server() {
    local bin version best='' best_version=14
    for bin in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin "$(dirname "$(command -v postgres || echo /none/postgres)")"; do
        [ -x "$bin/postgres" ] || continue
        version=$("$bin/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
        if [ "$version" -gt "$best_version" ]; then best=$bin best_version=$version; fi
    done
    [ -n "$best" ] || fail "no PostgreSQL server 15 or newer found; Debian has it since 12, Ubuntu since 24.04: contrib/scripts/install-packages.sh demo"
    echo "$best"
}

# The user that the server runs as; empty for the one who calls.
server_user() {
    [ "$(id -u)" = 0 ] || return 0
    { getent passwd postgres nobody || true; } | head -n 1 | cut -d: -f1
}

# Runs a command as the server's user, in a folder that every user can enter.
as_server() {
    if [ -z "$user" ]; then
        (cd / && "$@")
    else
        (cd / && setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env HOME=/ "$@")
    fi
}

# In a container without a reaping init a killed server stays a zombie, for which pg_ctl and PostgreSQL would wait.
running() {
    local pid
    pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null) || return 1
    if grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null; then
        rm -f "$home/data/postmaster.pid" "$(socket_folder)"/.s.PGSQL.*
    fi
    as_server "$bin/pg_ctl" -D "$home/data" status >/dev/null 2>&1
}

# Decides where the server's files are: in DIR, or where DIR/home points.
make_home() {
    [ -n "$user" ] || { chmod 700 "$dir"; return 0; }
    [ "$home" = "$dir" ] || return 0
    chmod 700 "$dir"
    chown "$user" "$dir"
    as_server test -w "$dir" 2>/dev/null && return 0
    chown "$(id -u)" "$dir"
    home=$(mktemp -d /var/tmp/proverq-postgres.XXXXXX)
    chown "$user" "$home"
    ln -s "$home" "$dir/home"
    echo "private-postgres.sh: the user $user cannot reach $dir; its files are in $home" >&2
}

socket_folder() {
    cat "$home/socket-folder" 2>/dev/null || echo "$home/socket"
}

# Makes the folder of the socket: a new one in /tmp where the path would be too long.
make_socket_folder() {
    socket=$(socket_folder)
    if [ "$(printf '%s/.s.PGSQL.65535.lock' "$socket" | wc -c)" -gt 107 ]; then
        socket=$(mktemp -d /tmp/proverq-pg.XXXXXX)
        echo "$socket" >"$home/socket-folder"
    fi
    mkdir -p "$socket"
    chmod 700 "$socket"
    [ -z "$user" ] || chown "$user" "$socket"
}

create_cluster() {
    [ -f "$home/data/PG_VERSION" ] && [ -f "$home/password" ] && return 0
    rm -rf "$home/data"
    as_server "$bin/initdb" -D "$home/data" -U postgres --no-locale -E UTF8 --no-sync \
        --auth-local=trust --auth-host=scram-sha-256 >"$home/initdb.log" 2>&1 ||
        { cat "$home/initdb.log" >&2; fail "initdb failed"; }
    (umask 077 && od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >"$home/password")
}

free_port() {
    local port
    while port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000)); do
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
}

# Starts on the port of last time, else on a free one; another process may take it first, so a few are tried.
start_server() {
    local port setting options
    port=$(cat "$home/port" 2>/dev/null || free_port)
    for _ in 1 2 3 4 5 6 7 8; do
        options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='$socket' -c fsync=off"
        for setting in "$@"; do options+=" -c $setting"; done
        if as_server "$bin/pg_ctl" -D "$home/data" -l "$home/log" -o "$options" -w -t 60 start >/dev/null 2>&1 9>&-; then
            echo "$port" >"$home/port"
            return 0
        fi
        tail -n 20 "$home/log" | grep -q 'could not create any TCP/IP sockets' || break
        port=$(free_port)
    done
    tail -n 20 "$home/log" >&2
    fail "the server did not start; its log is $home/log"
}

admin() {
    as_server "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$socket" -p "$(cat "$home/port")" -U postgres "$@"
}

create_database() {
    local password
    password=$(cat "$home/password")
    [ "$(admin -d postgres -c "select 1 from pg_roles where rolname = 'proverq'")" = 1 ] ||
        admin -d postgres -c "create role proverq login password '$password'"
    [ "$(admin -d postgres -c "select 1 from pg_database where datname = 'proverq'")" = 1 ] ||
        admin -d postgres -c "create database proverq owner proverq"
}

print_url() {
    [ -f "$home/port" ] || fail "nothing was started in $dir; start it with: private-postgres.sh start $dir"
    echo "postgresql://proverq:$(cat "$home/password")@127.0.0.1:$(cat "$home/port")/proverq"
}

start() {
    mkdir -p "$dir"
    exec 9<"$dir"
    flock 9
    make_home
    if ! running; then
        make_socket_folder
        create_cluster
        start_server "$@"
        create_database
    fi
    print_url
}

stop() {
    if running; then
        as_server "$bin/pg_ctl" -D "$home/data" -m fast -w -t 30 stop >/dev/null 2>&1 ||
            as_server "$bin/pg_ctl" -D "$home/data" -m immediate -w -t 30 stop >/dev/null 2>&1 ||
            fail "the server does not stop; its process is $(head -n 1 "$home/data/postmaster.pid")"
    fi
    [ ! -f "$home/socket-folder" ] || rm -rf "$(cat "$home/socket-folder")" "$home/socket-folder"
}

[ $# -ge 2 ] || usage
command=$1
dir=$(realpath -m -- "$2")
shift 2
for name in ${!PG*}; do unset "$name"; done
bin=$(find_server)
user=$(server_user)
home=$dir
[ ! -L "$dir/home" ] || home=$(readlink "$dir/home")

case $command in
start) start "$@" ;;
stop) stop ;;
remove) stop && rm -rf "$home" "$dir" ;;
url) print_url ;;
psql)
    url=$(print_url)
    exec psql -X "$url" "$@"
    ;;
*) usage ;;
esac
