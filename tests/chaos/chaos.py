#!/usr/bin/env python3
"""The driver of `make chaos`; run.sh starts it in namespaces of its own and tells its settings."""
import collections
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback

import cluster
import disturbances
import hosts
import load
import pq
import seeded
import verdict
from world import DRIVER, ROOT, Network, Timeline, command, end

RECEIVER_PORT = 8080
SETTLE_S = 60  # without any progress
LATE_S = 180  # after the time of a run, for disturbances that are still to come: nothing is away for so long
LEASE = ["--lease", "200ms"]
OUT = ROOT / "build/chaos"


class Stage:
    """The network and the cluster that all runs use, one after the other."""

    def __init__(self):
        command("mount", "-t", "tmpfs", "-o", "mode=755", "chaos", "/mnt")
        self.network, self.folder = Network(), None
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        self.timeline = Timeline(OUT / "timeline")
        self.cluster = cluster.Cluster(self.network, self.timeline, str(OUT))
        self.cluster.create()
        self.receiver = None

    def session(self):
        return pq.Session(self.cluster.conninfo)

    def begin(self, name):
        """A new folder, schema and receiver for one run."""
        self.folder = OUT / name
        self.folder.mkdir()
        self.timeline = self.cluster.timeline = Timeline(self.folder / "timeline")
        self.cluster.heal()
        session = self.session()
        session.query("drop schema if exists proverq, proverq_private cascade")
        environment = {"PROVERQ_DATABASE": self.cluster.conninfo}
        proverq = str(ROOT / "build/proverq")
        os.environ.update(environment)
        command(proverq, "migrate", "up")
        for circuit in ("factor", "factor381"):
            files = ROOT / f"tests/circuits/{circuit}/{circuit}"
            command(proverq, "circuit", "add", circuit, f"{files}.zkey", "--r1cs", f"{files}.r1cs")
        load.store_witnesses(session)
        secret = session.one(f"select proverq.create_webhook_endpoint('receiver', 'http://{DRIVER}:{RECEIVER_PORT}/hook')")
        (self.folder / "endpoints").write_text(f"/hook strict {secret}\n", encoding="ascii")
        self.begin_receiver()
        return session

    def begin_receiver(self):
        with open(self.folder / "receiver.err", "wb") as err:
            self.receiver = subprocess.Popen([sys.executable, str(ROOT / "tests/receiver.py"), str(self.folder / "endpoints"), str(self.folder / "receipts"),
                                              "--address", DRIVER, "--port", str(RECEIVER_PORT)],
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((DRIVER, RECEIVER_PORT)).close()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def hosts(self, common):
        return hosts.Hosts(self.network, self.timeline, self.cluster.conninfo, str(self.folder), common)

    def finish(self):
        if self.receiver:
            end(self.receiver)
            self.receiver = None
        for server in (self.cluster.primary, self.cluster.standby):
            server.keep_log()
        self.timeline.close()


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def result(self, name, findings):
        if not findings:
            self.passed += 1
            print(f"  ok    {name}", flush=True)
            return
        self.failed += 1
        print(f"  FAIL  {name}")
        for text in findings[:8]:
            print(f"        {text}")
        if len(findings) > 8:
            print(f"        and {len(findings) - 8} more")
        sys.stdout.flush()


def main_run(stage, tally, seed, seconds, partitions):
    print(f"-- main: seed {seed}, {partitions} partitions, {seconds} s", flush=True)
    session = stage.begin("main")
    stage.timeline.note(f"seed {seed}")
    park = stage.hosts([*LEASE, "--poll", "500ms"])
    park.add(hosts.Unit("one", "serve"))
    park.add(hosts.Unit("two", "serve"))
    # One prover and one finalizer live in another hour; some proofs fail on two hosts, and are tried again.
    park.add(hosts.Unit("late", "prover", environment={**hosts.CLOCK_OFF, "PROVERQ_FAIL": "25"}, faulty=True))
    park.add(hosts.Unit("late", "finalizer", environment=hosts.CLOCK_OFF))
    park.add(hosts.Unit("four", "prover", environment={"PROVERQ_FAIL": "25"}, faulty=True))
    park.start()
    database = disturbances.Database(seed, stage.timeline, stage.cluster)
    lanes = [disturbances.Processes(seed, stage.timeline, park), disturbances.Links(seed, stage.timeline, park), database]
    until = time.monotonic() + seconds

    def is_unfinished():
        """Whether a kind of disturbance is still to come: then the run and its load go on."""
        return time.monotonic() < until + LATE_S and any(lane.is_alive() and lane.missing() for lane in lanes)

    producer = load.Producer(stage.cluster.conninfo, seed, partitions, seconds * 0.9, stage.timeline, is_unfinished)
    users = load.Users(stage.cluster.conninfo, seed, producer, stage.timeline)
    listener, auditor = load.Listener(stage.cluster.conninfo), load.Auditor(stage.cluster.conninfo, 1)
    for thread in (*lanes, producer, users, listener, auditor):
        thread.start()
    while time.monotonic() < until or producer.is_alive() or is_unfinished():
        time.sleep(0.5)
    for lane in lanes:
        lane.end()
    users.end()
    park.wake_all()
    stage.cluster.heal()
    stage.timeline.note("quiet")
    start = time.monotonic()
    is_quiet = verdict.settle(session, SETTLE_S, stage.timeline.note)
    quiet_s = time.monotonic() - start
    if not is_quiet:
        verdict.explain(stage.cluster.primary.admin, stage.timeline.note)
    time.sleep(1)
    park.stop()
    listener.end()
    auditor.end()
    evidence = verdict.Evidence(session, str(stage.folder), producer.jobs, users, listener, auditor, lanes)
    findings = verdict.judge(evidence)
    tally.result("all jobs were enqueued", [str(producer.error)] if producer.error else [])
    tally.result("a host that is gone holds up nobody who can do without it", database.held_up)
    tally.result("all was quiet in time", [] if is_quiet else [f"nothing changed for {SETTLE_S} s"])
    for name in verdict.CHECKS:
        tally.result(f"{name}: {describe(verdict.CHECKS[name])}", findings.get(name, []))
    report(evidence, lanes, quiet_s)
    stage.finish()


def describe(function):
    return function.__name__.replace("_", " ")


def report(evidence, lanes, quiet_s):
    states = collections.Counter(job["state"] for job in evidence.jobs.values())
    parts = collections.Counter(row["state"] for row in evidence.partitions.values())
    attempts = sum(row["attempt"] for row in evidence.partitions.values())
    failed = sum(line.get("msg") == "partition failed" for _, line in evidence.lines)
    print(f"   jobs: {dict(states)}; partitions: {len(evidence.partitions)}, {dict(parts)}; "
          f"attempts: {attempts}, of them {100 * failed // attempts} % failed by injection")
    stale = sum("result is refused" in line.get("msg", "") for _, line in evidence.lines)
    print(f"   receipts: {len(evidence.receipts)} of {len(evidence.deliveries)} webhooks; "
          f"runs: {sum(job['run'] for job in evidence.jobs.values())}; stale results refused: {stale}; "
          f"audits: {evidence.auditor.audits}; quiet after {quiet_s:.0f} s")
    for lane in lanes:
        print(f"   {lane.name}: " + ", ".join(f"{kind} {count}" for kind, count in sorted(lane.count.items())))
    sys.stdout.flush()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
    seconds, partitions = int(os.environ.get("CHAOS_SECONDS", "270")), int(os.environ.get("CHAOS_PARTITIONS", "5000"))
    runs = sys.argv[1:] or ["main", *seeded.RUNS]
    tally, stage = Tally(), Stage()
    for name in runs:
        try:
            if name == "main":
                main_run(stage, tally, seed, seconds, partitions)
            else:
                seeded.run(stage, tally, name)
        except Exception:
            tally.result(f"{name}: the run comes to its end", traceback.format_exc().splitlines()[-8:])
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
