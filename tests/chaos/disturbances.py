"""What happens to processes, hosts and the database. Three lanes run beside each other. In each, every kind of disturbance
comes once before any comes again; their order, and what comes afterwards, follows from the seed.
"""
import random
import signal
import threading
import time

import pq

LEASE_S = 0.2
PROOF_S = 30  # the longest time without a proof while the old primary is cut off; a proof takes milliseconds


class Lane(threading.Thread):
    KINDS = []

    def __init__(self, name, seed, timeline, pause):
        super().__init__(daemon=True, name=name)
        self.rng, self.timeline, self.pause = random.Random(f"{seed}/{name}"), timeline, pause
        self.ending, self.count, self.error = threading.Event(), {}, None
        self.coming = self.shuffled(dict.fromkeys(self.KINDS))  # the last one comes next

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

    def note(self, what):
        self.timeline.note(f"{self.name}: {what}")

    def shuffled(self, kinds):
        return self.rng.sample(list(kinds), len(kinds))

    def missing(self):
        """Kinds that have not come yet."""
        return [kind for kind in dict.fromkeys(self.KINDS) if kind not in self.count]

    def disturb(self):
        """What cannot be done now, because the process is not there, say, is done later."""
        kind = self.coming.pop() if self.coming else self.draw()
        if self.do(kind):
            self.count[kind] = self.count.get(kind, 0) + 1
        elif kind not in self.count:
            self.coming.insert(0, kind)

    def draw(self):
        """The next kind, when each has come once."""
        return self.rng.choice(self.KINDS)

    def do(self, kind):
        """Returns whether it was done."""
        raise NotImplementedError


class Processes(Lane):
    """kill -9, SIGTERM, and SIGSTOP for longer than a lease."""

    SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "ended": signal.SIGTERM}
    KINDS = [f"{role}s {what}" for role in ("prover", "finalizer", "supervisor") for what in ("killed", "stopped", "ended")]

    def __init__(self, seed, timeline, hosts):
        super().__init__("processes", seed, timeline, (0.3, 1.6))
        self.hosts = hosts

    def draw(self):
        role = self.rng.choice(self.rng.choice(self.hosts.units).roles())
        return f"{role}s " + self.rng.choice(["killed", "killed", "stopped", "stopped", "stopped", "ended"])

    def do(self, kind):
        role, what = kind.split("s ")
        unit = self.rng.choice([unit for unit in self.hosts.units if role in unit.roles()])
        seconds = self.rng.uniform(LEASE_S * 1.5, LEASE_S * 12)
        if not self.hosts.signal(unit, role, self.SIGNALS[what]):
            return False
        self.note(f"{unit.name}: {role} {what}" + (f" for {seconds:.1f} s" if what == "stopped" else ""))
        if what == "stopped":
            time.sleep(seconds)
            self.hosts.signal(unit, role, signal.SIGCONT)
        return True


class Links(Lane):
    """A host is cut off and rejoined."""

    KINDS = ["hosts cut off"]

    def __init__(self, seed, timeline, hosts):
        super().__init__("links", seed, timeline, (3, 8))
        self.hosts, self.names = hosts, sorted({unit.host for unit in hosts.units})

    def do(self, kind):
        host, seconds = self.rng.choice(self.names), self.rng.choice([0.5, 1, 2, 4, 8])
        self.note(f"{host} is cut off for {seconds} s")
        self.hosts.network.cut(host)
        self.ending.wait(seconds)
        self.hosts.network.join(host)
        return True


class Database(Lane):
    """Everything that is done to PostgreSQL; after each deed the cluster is healed."""

    KINDS = ["restart", "crash", "kill", "kill_session", "cut_sessions", "cut_sessions", "data_full", "wal_full", "lose_standby",
             "fail_over", "fail_over_cut"]

    def __init__(self, seed, timeline, cluster):
        super().__init__("database", seed, timeline, (1, 4))
        self.cluster = cluster
        self.held_up = []  # times in which the new primary was at work and nothing was proved, although there was work

    def draw(self):
        self.coming = self.shuffled(self.KINDS)
        return self.coming.pop()

    def do(self, kind):
        pause, share = self.rng.uniform(0, 1.5), self.rng.choice([0.1, 0.5, 1])
        self.note(f"{kind}, {pause:.1f} s, share {share}")
        try:
            is_done = self.deed(kind, pause, share)
        except (pq.Lost, pq.Refused) as error:
            self.note(f"{kind}: {error}")
            is_done = False
        self.cluster.heal()
        return is_done

    def deed(self, kind, pause, share):
        cluster = self.cluster
        if kind in ("restart", "crash", "kill"):
            getattr(cluster, kind)(pause)
        elif kind == "kill_session":
            return cluster.kill_session()
        elif kind == "cut_sessions":
            return cluster.cut_sessions(share) > 0
        elif kind in ("data_full", "wal_full"):
            cluster.fill_disk(kind.partition("_")[0], 2 + pause)
        elif kind == "lose_standby":
            cluster.lose_standby(pause)
        else:
            cluster.fail_over(kind == "fail_over_cut")
            if kind == "fail_over_cut":
                self.see_a_proof(5 + pause)
        return True

    def see_a_proof(self, seconds):
        """Whoever tries the old primary first gets no answer, not even a refusal. It stays out of reach for so long, and then
        until something was proved, there is nothing to prove, or it has taken too long."""
        start, session = time.time(), pq.Session(self.cluster.conninfo)
        self.ending.wait(seconds)
        while True:
            try:
                is_proved, has_work = session.query(
                    f"select exists (select from proverq.partition where proved_at > to_timestamp({start})), "
                    "exists (select from proverq.partition where state in ('ready', 'leased')) and not exists (select from proverq_private.paused)")[0]
            except (pq.Lost, pq.Refused):
                is_proved, has_work = "f", "t"
            if is_proved == "t" or has_work == "f":
                break
            if time.time() > start + PROOF_S:
                self.held_up.append(f"nothing was proved for {time.time() - start:.0f} s while the old primary was out of reach, although the "
                                    "new one was there and partitions were waiting")
                break
            time.sleep(0.2)
        self.note(f"the old primary was out of reach for {time.time() - start:.1f} s; "
                  + ("something" if is_proved == "t" else "nothing") + " was proved meanwhile")
        session.close()
