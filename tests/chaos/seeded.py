"""Four faults that such queues have had, planted one at a time: the verdict must find each, by the check that is for it.

Each run is short and goes twice, without the fault and with it. So it is the fault that is found and nothing else.
"""
import re
import signal
import time

import hosts
import load
import pq
import verdict

LEASE = ["--lease", "200ms"]
PATIENCE_S = 60  # for what is bound to come, on a slow machine too
# An idle prover's polls are twice as far apart each time: some 10 s and 20 s after its last job. So a job that is enqueued between
# the two is claimed within SLOW_S only by a prover that was notified.
BETWEEN_POLLS_S, SLOW_S = 12, 4


class Fault(Exception):
    """A fault cannot be planted: what it alters is not there any more."""


def admin_session(stage):
    return pq.Session(stage.cluster.primary.admin.conninfo.replace("dbname=postgres", "dbname=proverq"))


def alter_functions(stage, *alterations):
    """Replaces a pattern in the shipped functions of a name: (name, pattern, replacement)."""
    admin = admin_session(stage)
    for name, pattern, replacement in alterations:
        altered = 0
        for (text,) in admin.query("select pg_get_functiondef(p.oid) from pg_proc p "
                                   "where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) "
                                   f"and p.proname = '{name}'"):
            new, count = re.subn(pattern, replacement, text)
            if count:
                admin.query(new)
                altered += count
        if not altered:
            raise Fault(f"{name}() has nothing like {pattern}")
    admin.close()


class Run:
    """What the four have in common: jobs, processes, a listener, and the end."""

    def __init__(self, stage, session, common):
        self.stage, self.session, self.jobs = stage, session, []
        self.park = stage.hosts(common)
        self.listener = load.Listener(stage.cluster.conninfo)
        self.auditor = load.Auditor(stage.cluster.conninfo, 0.05)
        self.listener.start()
        self.auditor.start()
        self.producer = load.Producer(stage.cluster.conninfo, 0, 0, 0, stage.timeline)

    def prover(self, host, **environment):
        return self.park.add(hosts.Unit(host, "prover", environment=environment, faulty=True))

    def finalizer(self):
        return self.park.add(hosts.Unit("one", "finalizer"))

    def enqueue(self, size):
        job = load.Job(f"request-{len(self.jobs)}", "factor", size, None, 0, True, False, False)
        self.jobs.append(job)
        self.producer.insist(job)
        return job

    def wait_for(self, what, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.session.one(f"select {what}") == "t":
                return True
            time.sleep(0.02)
        return False

    def findings(self, settle_s):
        verdict.settle(self.session, settle_s, self.stage.timeline.note)
        time.sleep(0.3)
        self.park.stop(4)
        self.listener.end()
        self.auditor.end()
        return verdict.judge(verdict.Evidence(self.session, str(self.stage.folder), self.jobs, listener=self.listener, auditor=self.auditor))


# No token check at completion ----------------------------------------------------------------------------------------

def plant_token(stage):
    alter_functions(stage, ("complete", r"and p\.token = r\.token", ""))


def run_token(stage, session, _):
    """A prover is stopped with results in hand, until another has proved some of the same. The job is a large one: when nothing
    remains of it, a constraint refuses what the token should."""
    run = Run(stage, session, [*LEASE, "--poll", "200ms"])
    stopped, _ = [run.prover(host, PROVERQ_SLEEP="record:400", PROVERQ_DEPTH="4") for host in ("one", "two")]
    run.finalizer()
    run.enqueue(400)
    run.park.start()
    run.wait_for("count(distinct prover_id) = 2 from proverq.partition where state = 'proved'", PATIENCE_S)
    run.wait_for("count(*) > 10 from proverq.partition join proverq_private.prover r using (prover_id) "
                 f"where r.pid = {stopped.pid('prover')} and partition.state = 'leased'", PATIENCE_S)
    run.park.signal(stopped, "prover", signal.SIGSTOP)
    run.wait_for("count(*) > 0 from proverq.partition where state = 'proved' and losses > 0", PATIENCE_S)
    run.park.signal(stopped, "prover", signal.SIGCONT)
    return run.findings(12)


# Double decrement of what remains ------------------------------------------------------------------------------------

def plant_decrement(stage):
    alter_functions(stage, ("complete", r"j\.remaining - d\.n\b", "greatest(j.remaining - 2 * d.n, 0)"),
                    ("complete", r"j\.remaining = d\.n\b", "j.remaining between 1 and 2 * d.n"))


def run_decrement(stage, session, _):
    run = Run(stage, session, ["--lease", "2s", "--poll", "200ms"])
    run.prover("one", PROVERQ_SLEEP="record:100", PROVERQ_DEPTH="1")
    run.finalizer()
    run.park.start()
    for size in (1, 60, 40):  # large ones: the results of a small one may come together
        run.enqueue(size)
    return run.findings(8)


# NOTIFY before the commit --------------------------------------------------------------------------------------------

def plant_notify(stage):
    """Notifications go out by a connection of their own, at once; the commit comes a little later."""
    admin, server = admin_session(stage), stage.cluster.primary
    admin.query("create extension if not exists dblink schema public")
    admin.query(f"""create function chaos.notify_now(channel text, payload text) returns void language plpgsql security definer as $$
        begin
            perform public.dblink_exec('host={server.address} port=5432 user=postgres dbname=proverq', format('select pg_notify(%L, %L)', channel, payload));
        exception when others then -- dblink_exec does not like that a statement gives a row, but has run it
            null;
        end $$""")
    admin.query("""create function chaos.notify_early(channel text, payload text) returns void language sql as $$
        select chaos.notify_now(channel, payload); select pg_sleep(0.4) $$""")
    admin.query("grant usage on schema chaos to public")
    alter_functions(stage, ("end_job", r"pg_notify\('proverq_job'", "chaos.notify_early('proverq_job'"),
                    ("notify_work", r"pg_notify\('proverq_work'", "chaos.notify_early('proverq_work'"))


def run_notify(stage, session, _):
    """The poll would hide it, so it is slow: who does not get a notification, or gets it too early, waits for long."""
    run = Run(stage, session, ["--lease", "2s", "--poll", "60s"])
    run.prover("one")
    run.finalizer()
    run.enqueue(2)
    run.park.start()
    run.wait_for("count(*) = 1 from proverq.job where state = 'finished'", PATIENCE_S)
    late = []
    for pause in (BETWEEN_POLLS_S, 0.1):
        time.sleep(pause)
        job, start = run.enqueue(1), time.monotonic()
        if not run.wait_for(f"attempt > 0 from proverq.partition where job_seq = {job.number}", SLOW_S):
            late.append(f"job {job.number} was not claimed within {SLOW_S} s of its commit, by a prover that was told of it")
        stage.timeline.note(f"job {job.number} was looked for for {time.monotonic() - start:.3f} s")
    findings = run.findings(2 if late else 8)
    if late:
        findings["latency"] = late
    return findings


# A bound without a scan from the start -------------------------------------------------------------------------------

def run_rescan(stage, session, is_planted):
    """What failed comes back below what was claimed since."""
    run = Run(stage, session, ["--lease", "2s", "--poll", "200ms"])
    run.prover("one", PROVERQ_FAIL="25", **({"PROVERQ_NO_RESCAN": "1"} if is_planted else {}))
    run.finalizer()
    run.park.start()
    for size in (4, 8, 6, 8, 4):
        run.enqueue(size)
    return run.findings(9)


#                     what must be found, how the fault is planted, the run
RUNS = {"token": ("no token check at completion", {"completions"}, plant_token, run_token),
        "decrement": ("a double decrement of what remains", {"remaining", "invariants"}, plant_decrement, run_decrement),
        "notify": ("NOTIFY before the commit", {"notified", "latency"}, plant_notify, run_notify),
        "rescan": ("a bound without a scan from the start", {"ended"}, None, run_rescan)}


def run(stage, tally, name):
    what, expected, plant, scenario = RUNS[name]
    print(f"-- {name}: {what}", flush=True)
    for is_planted in (False, True):
        start = time.monotonic()
        session = stage.begin(f"{name}-{'fault' if is_planted else 'sound'}")
        if is_planted and plant:
            plant(stage)
        found = scenario(stage, session, is_planted)
        stage.finish()
        print(f"   {time.monotonic() - start:.1f} s", flush=True)
        if not is_planted:
            tally.result(f"{name}: nothing is found without the fault", [f"{check}: {text}" for check, texts in found.items() for text in texts[:3]])
            continue
        missed = sorted(expected - set(found))
        tally.result(f"{name}: the fault is found, by {', '.join(sorted(expected))}",
                     [f"not found by {', '.join(missed)}; found: {found or 'nothing'}"] if missed else [])
        for check in sorted(expected & set(found)):
            print(f"        {check}: {found[check][0]}", flush=True)
