"""What happens to processes, hosts and the database. Three lanes run beside each other; what comes next in a lane, and for how
long, follows from the seed alone.
"""
import random
import signal
import threading
import time

import pq

LEASE_S = 0.2


class Lane(threading.Thread):
    def __init__(self, name, seed, timeline, pause):
        super().__init__(daemon=True, name=name)
        self.rng, self.timeline, self.pause = random.Random(f"{seed}/{name}"), timeline, pause
        self.ending, self.count, self.error = threading.Event(), {}, None

    def run(self):
        try:
            while not self.ending.wait(self.rng.uniform(*self.pause)):
                self.disturb()
        except Exception as error:  # told in the verdict: a disturbance that cannot be had is no disturbance
            self.timeline.note(f"{self.name}: ended by {type(error).__name__}: {error}")
            self.error = error

    def end(self):
        self.ending.set()
        self.join()

    def did(self, kind, what):
        self.count[kind] = self.count.get(kind, 0) + 1
        self.timeline.note(f"{self.name}: {what}")

    def missing(self):
        """Kinds that never came; there are none in a run that is long enough."""
        return [kind for kind in self.kinds() if not self.count.get(kind)]

    def kinds(self):
        raise NotImplementedError

    def disturb(self):
        raise NotImplementedError


class Processes(Lane):
    """kill -9, SIGTERM, and SIGSTOP for longer than a lease."""

    def __init__(self, seed, timeline, hosts):
        super().__init__("processes", seed, timeline, (0.3, 1.6))
        self.hosts = hosts

    def kinds(self):
        return [f"{role}s {what}" for role in ("prover", "finalizer", "supervisor") for what in ("killed", "stopped", "ended")]

    def disturb(self):
        unit = self.rng.choice(self.hosts.units)
        role = self.rng.choice(unit.roles())
        kind = self.rng.choice(["kill", "kill", "stop", "stop", "stop", "term"])
        seconds = self.rng.uniform(LEASE_S * 1.5, LEASE_S * 12)
        if kind == "stop":
            if self.hosts.signal(unit, role, signal.SIGSTOP):
                self.did(f"{role}s stopped", f"{unit.name}: {role} stopped for {seconds:.1f} s")
                time.sleep(seconds)
                self.hosts.signal(unit, role, signal.SIGCONT)
        elif kind == "kill":
            if self.hosts.signal(unit, role, signal.SIGKILL):
                self.did(f"{role}s killed", f"{unit.name}: {role} killed")
        elif self.hosts.signal(unit, role, signal.SIGTERM):
            self.did(f"{role}s ended", f"{unit.name}: {role} told to end")


class Links(Lane):
    """A host is cut off and rejoined."""

    def __init__(self, seed, timeline, hosts):
        super().__init__("links", seed, timeline, (3, 8))
        self.hosts, self.names = hosts, sorted({unit.host for unit in hosts.units})

    def kinds(self):
        return ["hosts cut off"]

    def disturb(self):
        host, seconds = self.rng.choice(self.names), self.rng.choice([0.5, 1, 2, 4, 8])
        self.did("hosts cut off", f"{host} is cut off for {seconds} s")
        self.hosts.network.cut(host)
        self.ending.wait(seconds)
        self.hosts.network.join(host)


class Database(Lane):
    """Everything that is done to PostgreSQL; after each deed the cluster is healed. Every kind comes before any comes again."""

    KINDS = ["restart", "crash", "kill", "kill_session", "cut_sessions", "cut_sessions", "data_full", "wal_full", "lose_standby",
             "fail_over", "fail_over_cut"]

    def __init__(self, seed, timeline, cluster):
        super().__init__("database", seed, timeline, (1, 4))
        self.cluster, self.coming = cluster, []
        self.gone = []  # when the old primary's host was out of reach and the new one at work: from, to

    def kinds(self):
        return self.KINDS

    def disturb(self):
        if not self.coming:
            self.coming = self.rng.sample(self.KINDS, len(self.KINDS))
        kind, pause, share = self.coming.pop(), self.rng.uniform(0, 1.5), self.rng.choice([0.1, 0.5, 1])
        self.did(kind, f"{kind}, {pause:.1f} s, share {share}")
        try:
            self.deed(kind, pause, share)
        except (pq.Lost, pq.Refused) as error:
            self.timeline.note(f"database: {kind}: {error}")
        self.cluster.heal()

    def deed(self, kind, pause, share):
        cluster = self.cluster
        if kind in ("restart", "crash", "kill"):
            getattr(cluster, kind)(pause)
        elif kind == "kill_session":
            cluster.kill_session()
        elif kind == "cut_sessions":
            cluster.cut_sessions(share)
        elif kind in ("data_full", "wal_full"):
            cluster.fill_disk(kind.partition("_")[0], 2 + pause)
        elif kind == "lose_standby":
            cluster.lose_standby(pause)
        else:
            cluster.fail_over(kind == "fail_over_cut")
            if kind == "fail_over_cut":  # who tries the old primary first gets no answer, not even a refusal
                start = time.time()
                self.ending.wait(5 + pause)
                self.gone.append((start, time.time()))
