"""Two PostgreSQL servers, a primary and its synchronous standby, and what an administrator or a cluster manager does to them.

Each has a host of its own, and small file systems of its own for data and WAL, which can be full. Whoever calls decides which
disturbance comes when; every function here leaves it to heal() to bring back two servers that replicate.
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import time

import pq
from world import NETWORK, command, signal_quietly

PORT = 5432
PATIENCE_S = 120  # for PostgreSQL's own work: a slow machine is waited for
DATA_SIZE, WAL_SIZE = "600m", "400m"  # limits, not what is used
SETTINGS = {
    "unix_socket_directories": "''", "shared_buffers": "48MB", "max_connections": "80", "fsync": "off", "wal_log_hints": "on",
    "max_wal_size": "64MB", "min_wal_size": "16MB", "wal_keep_size": "128MB", "log_min_messages": "warning", "log_line_prefix": "'%m '",
    # A host that is cut off is given up in seconds, so that what its sessions hold is free again.
    "tcp_keepalives_idle": "1", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "2", "tcp_user_timeout": "2000",
    "wal_sender_timeout": "3s", "wal_receiver_timeout": "3s", "wal_retrieve_retry_interval": "300ms", "wal_receiver_status_interval": "200ms",
}


def find_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
    if not found:
        raise RuntimeError("no PostgreSQL server found; run: contrib/scripts/install-packages.sh")
    return os.path.dirname(found[-1])


class Server:
    def __init__(self, network, name, log):
        self.name, self.host, self.log, self.bin = name, f"pg-{name}", log, find_programs()
        self.address = network.add(self.host)
        self.home = f"/mnt/{self.host}"
        for part, size in (("data", DATA_SIZE), ("wal", WAL_SIZE)):
            os.makedirs(f"{self.home}/{part}-disk")
            command("mount", "-t", "tmpfs", "-o", f"size={size}", f"{self.host}-{part}", f"{self.home}/{part}-disk")
        self.data, self.wal = f"{self.home}/data-disk/data", f"{self.home}/wal-disk/wal"
        command("chown", "-R", "postgres", self.home)
        self.admin = pq.Session(f"host={self.address} port={PORT} user=postgres dbname=postgres connect_timeout=3 "
                                "keepalives_idle=1 keepalives_interval=1 keepalives_count=2 tcp_user_timeout=3000")

    def run(self, program, *arguments, check=True):
        user = pwd.getpwnam("postgres")
        words = ["nsenter", f"--net=/run/netns/{self.host}", "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
                 "env", "HOME=/", f"{self.bin}/{program}", *arguments]
        with open(self.log, "ab") as out:
            done = subprocess.run(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(arguments)}: exit status {done.returncode}; see {self.log}")
        return done.returncode == 0

    def create(self):
        self.run("initdb", "-D", self.data, f"--waldir={self.wal}", "-U", "postgres", "--no-locale", "-E", "UTF8", "--no-sync",
                 "--wal-segsize=4", "--auth=trust")
        with open(f"{self.data}/pg_hba.conf", "w", encoding="ascii") as file:
            file.write(f"host all all {NETWORK}.0/24 trust\nhost replication all {NETWORK}.0/24 trust\n")
        with open(f"{self.data}/postgresql.conf", "a", encoding="ascii") as file:
            file.writelines(f"{key} = {value}\n" for key, value in SETTINGS.items())

    def pid(self):
        try:
            with open(f"{self.data}/postmaster.pid", encoding="ascii") as file:
                pid = int(file.readline())
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                status = file.read()
        except (OSError, ValueError):
            return None
        return pid if "State:\tZ" not in status and "Name:\tpostgres" in status else None

    def start(self, seconds=PATIENCE_S):
        """Also after a crash, when processes of the last life may still be ending: it refuses to start as long as there are any."""
        until = time.monotonic() + seconds
        while True:
            options = f"-c listen_addresses={self.address} -c port={PORT}"
            if self.run("pg_ctl", "-D", self.data, "-l", f"{self.home}/log", "-o", options, "-w", "-t", "20", "start", check=False):
                return
            if time.monotonic() > until:
                raise RuntimeError(f"server {self.name} does not start; see {self.log}")
            time.sleep(0.3)

    def keep_log(self):
        """The server's user cannot write among the other logs."""
        shutil.copyfile(f"{self.home}/log", self.log.replace(".log", "-server.log"))

    def stop(self, mode):
        if self.pid() is not None:
            self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "20", "stop", check=False)
        if self.pid() is not None:
            self.kill()

    def kill(self):
        """The first process only, by SIGKILL: the others have to notice."""
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 10
        while pid and self.pid() == pid and time.monotonic() < until:
            time.sleep(0.02)

    def set(self, name, value):
        self.admin.patiently(f"alter system set {name} = '{value}'", PATIENCE_S)
        self.admin.patiently("select pg_reload_conf()", PATIENCE_S)

    def fill(self, part):
        """The file system has no room any more, at once; what is in it stays."""
        for _ in range(20):
            disk = os.statvfs(f"{self.home}/{part}-disk")
            used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
            if command("mount", "-o", f"remount,size={used}", f"{self.home}/{part}-disk", check=False).returncode == 0:
                return
        raise RuntimeError(f"the disk of {self.host} cannot be filled")

    def free(self, part):
        command("mount", "-o", f"remount,size={DATA_SIZE if part == 'data' else WAL_SIZE}", f"{self.home}/{part}-disk")


class Cluster:
    def __init__(self, network, timeline, log_folder):
        self.network, self.timeline = network, timeline
        self.primary, self.standby = (Server(network, name, f"{log_folder}/postgresql-{name}.log") for name in "ab")
        hosts = f"{self.primary.address},{self.standby.address}"
        self.conninfo = (f"host={hosts} port={PORT},{PORT} user=proverq dbname=proverq target_session_attrs=read-write connect_timeout=3 "
                         "keepalives_idle=1 keepalives_interval=1 keepalives_count=2 tcp_user_timeout=3000")
        self.failovers = 0

    def create(self):
        self.primary.create()
        self.primary.start()
        self.primary.admin.query("create role proverq login")
        self.primary.admin.query("create database proverq owner proverq")
        self.heal()

    def is_synchronous(self):
        try:
            return self.primary.admin.one("select sync_state from pg_stat_replication where state = 'streaming'") in ("sync", "quorum")
        except (pq.Lost, pq.Refused):
            return False

    def heal(self):
        """The primary runs, the standby follows it, and a commit is one only when both have it."""
        self.network.join(self.primary.host)
        self.network.join(self.standby.host)
        if self.primary.pid() is None:
            self.primary.start()
        self.primary.admin.patiently("select 1", PATIENCE_S)
        if self.is_synchronous():
            return
        # Until the standby is back, commits must not wait for it: so does a cluster manager.
        self.primary.set("synchronous_standby_names", "")
        if self.standby.pid() is None:
            self.follow()
        self.until("the standby follows", lambda: self.primary.admin.one("select state from pg_stat_replication") == "streaming")
        self.primary.set("synchronous_standby_names", "*")
        self.until("commits wait for the standby", self.is_synchronous)
        self.timeline.note(f"database: {self.primary.name} is the primary, {self.standby.name} its synchronous standby")

    @staticmethod
    def until(what, condition):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except (pq.Lost, pq.Refused):
                pass
            time.sleep(0.1)
        raise RuntimeError(f"not within {PATIENCE_S} s: {what}")

    def follow(self):
        """What was the primary goes back to where the two parted; else the standby is made anew."""
        server, source = self.standby, f"host={self.primary.address} port={PORT} user=postgres dbname=postgres"
        is_standby = os.path.exists(f"{server.data}/standby.signal")
        self.primary.admin.patiently("checkpoint", PATIENCE_S)  # pg_rewind reads the timeline from the control file
        rewound = not is_standby and os.path.exists(f"{server.data}/PG_VERSION") and server.run(
            "pg_rewind", "-D", server.data, f"--source-server={source}", "-R", "--no-sync", check=False)
        if not is_standby and not rewound:
            for folder in (server.data, server.wal):
                shutil.rmtree(folder, ignore_errors=True)
            server.run("pg_basebackup", "-D", server.data, f"--waldir={server.wal}", "-d", source, "-R", "-X", "stream", "-c", "fast",
                       "--no-sync")
        self.timeline.note(f"database: {server.name} " + ("goes on as" if is_standby else "was rewound to be" if rewound else "is a new") + " standby")
        server.start()

    # What can happen to them ---------------------------------------------------------------------------------------

    def restart(self, pause):
        self.primary.stop("fast")
        time.sleep(pause)
        self.primary.start()

    def crash(self, pause):
        self.primary.stop("immediate")
        time.sleep(pause)
        self.primary.start()

    def kill(self, pause):
        self.primary.kill()
        time.sleep(pause)
        self.primary.start()

    def kill_session(self):
        """kill -9 of one session's process: the server throws out all the others and recovers. Whether there was a session."""
        pid = self.primary.admin.one("select pid from pg_stat_activity where usename = 'proverq' order by random() limit 1")
        return bool(pid) and signal_quietly(int(pid), signal.SIGKILL)

    def cut_sessions(self, share):
        """Ends this share of the sessions, at least one; returns how many."""
        return int(self.primary.admin.one(
            "with s as (select pid from pg_stat_activity where usename = 'proverq') select count(pg_terminate_backend(pid)) from "
            f"(select pid from s order by random() limit greatest(1, (select round(count(*) * {share}) from s))) t"))

    def fill_disk(self, part, seconds):
        """With a full WAL disk the server stops itself; it can be started when there is room."""
        self.primary.fill(part)
        time.sleep(seconds)
        self.primary.free(part)
        time.sleep(0.5)
        if self.primary.pid() is None:
            self.timeline.note(f"database: {self.primary.name} had stopped itself")
            self.primary.start()

    def lose_standby(self, seconds):
        """Commits wait until whoever looks after the cluster lets them do without it."""
        self.standby.stop("immediate")
        time.sleep(seconds)

    def fail_over(self, is_cut):
        """The primary's host is gone or its server dead; it is fenced before the standby is promoted."""
        if is_cut:
            self.network.cut(self.primary.host)
            time.sleep(1)
        self.primary.kill()
        self.standby.set("synchronous_standby_names", "")
        self.standby.run("pg_ctl", "-D", self.standby.data, "-w", "-t", str(PATIENCE_S), "promote")
        self.primary, self.standby = self.standby, self.primary
        self.failovers += 1
        self.timeline.note(f"database: {self.primary.name} was promoted")
