"""The people around the queue: those who enqueue jobs, those who change their minds, one who listens, and one who audits.

Each remembers what it was answered and what it only tried: an answer that was lost with its connection leaves both possible.
"""
import base64
import json
import random
import threading
import time

import pq
from world import ROOT

BAD_JOBS = 0.15  # jobs with one witness that breaks the constraints
FINAL = ("finished", "failed", "cancelled")


def witness(circuit):
    return (ROOT / f"tests/circuits/{circuit}/witness.wtns").read_bytes()


def broken_witness(circuit):
    """The first factor, which is value 2 of the witness, is another one; values begin at byte 76."""
    data = bytearray(witness(circuit))
    data[76 + 2 * 32] ^= 1
    return bytes(data)


def store_witnesses(session):
    session.query("drop schema if exists chaos cascade; create schema chaos; create table chaos.witness (kind text primary key, data bytea)")
    for circuit in ("factor", "factor381"):
        for kind, data in ((circuit, witness(circuit)), (f"bad-{circuit}", broken_witness(circuit))):
            session.query(f"insert into chaos.witness values ('{kind}', decode('{base64.b64encode(data).decode()}', 'base64'))")


class Job:
    def __init__(self, request, circuit, size, bad_at, priority, webhook, keeps, is_plain):
        self.request, self.circuit, self.size, self.bad_at, self.priority = request, circuit, size, bad_at, priority
        self.webhook, self.keeps, self.is_plain = webhook, keeps, is_plain
        self.number = None  # once it was answered

    def witnesses(self):
        kinds = [f"bad-{self.circuit}" if i == self.bad_at else self.circuit for i in range(self.size)]
        return ("(select array_agg(w.data order by k.i) "
                f"from unnest('{{{','.join(kinds)}}}'::text[]) with ordinality k (kind, i) join chaos.witness w using (kind))")


def make_job(rng, number):
    circuit = "factor381" if rng.random() < 0.15 else "factor"
    size = rng.choice([1, 1, 2, 3, 4, 6, 8, 12])
    return Job(f"request-{number}", circuit, size, rng.randrange(size) if rng.random() < BAD_JOBS else None,
               rng.choice([0, 0, 0, 0, 1, 5]), rng.random() < 0.8, rng.random() < 0.5, rng.random() < 0.2)


class Producer(threading.Thread):
    """Enqueues jobs evenly over the time, again and again until each is answered, until there are enough partitions and no more are
    needed."""

    def __init__(self, conninfo, seed, partitions, seconds, timeline, needs_more=lambda: False):
        super().__init__(daemon=True)
        self.needs_more = needs_more
        self.session, self.rng, self.timeline = pq.Session(conninfo), random.Random(f"{seed}/jobs"), timeline
        self.partitions, self.seconds = partitions, seconds
        self.jobs, self.given, self.error = [], 0, None

    def run(self):
        start = time.monotonic()
        try:
            while self.given < self.partitions or self.needs_more():
                behind = self.given / self.partitions * self.seconds - (time.monotonic() - start)
                if behind > 0:
                    time.sleep(behind)
                job = make_job(self.rng, len(self.jobs))
                self.jobs.append(job)
                self.insist(job)
                self.given += job.size
        except Exception as error:  # told in the verdict
            self.error = error

    def insist(self, job):
        until = time.monotonic() + 120
        while True:
            try:
                job.number = self.plain(job) if job.is_plain else self.enqueue(job)
                return
            except (pq.Lost, pq.Refused) as error:
                self.timeline.note(f"producer: {job.request} not answered: {error}")
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def enqueue(self, job):
        return int(self.session.one(
            f"select proverq.enqueue_witness('{job.circuit}', {job.witnesses()}, priority => {job.priority}, request_id => '{job.request}', "
            f"webhook => {pq.literal('receiver' if job.webhook else None)}, keep_inputs => {pq.literal(job.keeps)})"))

    def plain(self, job):
        """By INSERTs, in transactions of their own: the job is incomplete in between."""
        number = self.session.one(f"select job_seq from proverq.job where request_id = '{job.request}' and submitter = session_user")
        if number is None:
            number = self.session.one(
                f"insert into proverq.job (circuit, partitions, priority, request_id, webhook, keep_inputs) values ('{job.circuit}', {job.size}, "
                f"{job.priority}, '{job.request}', {pq.literal('receiver' if job.webhook else None)}, {pq.literal(job.keeps)}) returning job_seq")
        if self.session.one(f"select present from proverq.job where job_seq = {number}") == "0":
            self.session.query(f"insert into proverq.partition (job_seq, partition_idx, witness) "
                               f"select {number}, w.i - 1, w.data from unnest({job.witnesses()}) with ordinality w (data, i)")
        return int(number)


class Users(threading.Thread):
    """Cancel, retry, reorder, pause and resume, at random."""

    def __init__(self, conninfo, seed, producer, timeline):
        super().__init__(daemon=True)
        self.session, self.rng, self.producer, self.timeline = pq.Session(conninfo), random.Random(f"{seed}/users"), producer, timeline
        self.cancels, self._ending = set(), threading.Event()

    def end(self):
        self._ending.set()
        self.join()

    def attempt(self, sql):
        try:
            self.session.query(sql)
            said = "done"
        except pq.Refused as error:
            said = str(error).splitlines()[0]
        except pq.Lost:
            said = "not answered"
        self.timeline.note(f"user: {sql}: {said}")

    def pick(self, deed):
        """One of the newest jobs; for a retry, of those that are worth it, as far as can be seen."""
        jobs = [job for job in self.producer.jobs if job.number]
        if deed == "retry":
            try:
                ended = {int(number) for (number,) in self.session.query("select job_seq from proverq.job where state in ('failed', 'cancelled')")}
            except (pq.Lost, pq.Refused):
                return None
            jobs = [job for job in jobs if job.number in ended]
        return self.rng.choice(jobs[-8:]) if jobs else None

    def run(self):
        while not self._ending.wait(self.rng.uniform(0.2, 1.0)):
            deed = self.rng.choice(["cancel", "cancel", "priority", "retry", "retry", "pause"])
            job = self.pick(deed)
            if job is None:
                continue
            if deed == "cancel":
                self.cancels.add(job.number)
                self.attempt(f"select proverq.cancel({job.number}, 'by chaos')")
            elif deed == "priority":
                self.attempt(f"select proverq.set_priority({job.number}, {self.rng.randrange(-5, 10)})")
            elif deed == "retry" and job.keeps:
                self.attempt(f"select proverq.retry({job.number})")
            elif deed == "retry":
                self.attempt(f"select proverq.retry_with_witnesses({job.number}, {job.witnesses()})")
            else:
                circuit = self.rng.choice(["'*'", "'factor'", "'factor381'"])
                self.attempt(f"select proverq.pause({circuit}, 'by chaos')")
                self._ending.wait(self.rng.uniform(0.2, 1.5))
                self.attempt(f"select proverq.resume({circuit})")
        for circuit in ("*", "factor", "factor381"):
            self.session.patiently(f"delete from proverq_private.paused where circuit = '{circuit}'", 60)


class Listener(threading.Thread):
    """LISTENs for jobs' ends, and looks at each job at once: it must have ended."""

    def __init__(self, conninfo):
        super().__init__(daemon=True)
        self.session, self._ending = pq.Session(conninfo), threading.Event()
        self.events, self.early = set(), []  # (job, run, state), and those of which the job had not ended

    def end(self):
        self._ending.set()
        self.join()

    def run(self):
        is_listening = False
        while not self._ending.is_set():
            try:
                if not is_listening:
                    self.session.query("listen proverq_job")
                    is_listening = True
                for _, payload in self.session.connection().notifications(0.3):
                    self.look(json.loads(payload))
            except (pq.Lost, pq.Refused):
                self.session.close()
                is_listening = False
                time.sleep(0.2)

    def look(self, told):
        self.events.add((told["job"], told["run"], told["state"]))
        rows = self.session.query(f"select run, state from proverq.job where job_seq = {told['job']}")
        is_known = rows and (int(rows[0][0]) > told["run"] or (int(rows[0][0]) == told["run"] and rows[0][1] == told["state"]))
        if not is_known:
            self.early.append(f"job {told['job']}, run {told['run']}: notified as {told['state']} when it was {rows[0][1] if rows else 'not there'}")


class Auditor(threading.Thread):
    """Asks proverq.check_invariants() again and again: it must find nothing at any moment."""

    def __init__(self, conninfo, pause):
        super().__init__(daemon=True)
        self.session, self.pause, self._ending = pq.Session(conninfo), pause, threading.Event()
        self.audits, self.found = 0, {}

    def end(self):
        self._ending.set()
        self.join()

    def run(self):
        while not self._ending.wait(self.pause):
            try:
                for row in self.session.query("select invariant, job_seq, partition_idx, detail from proverq.check_invariants()"):
                    self.found.setdefault(row[:3], row)
                self.audits += 1
            except (pq.Lost, pq.Refused):
                time.sleep(0.2)
