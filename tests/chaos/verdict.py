"""What must hold when all is quiet again, counted anew from rows, logs, receipts and what the people around the queue remember.

Each check is a function of the evidence that gives its findings; it has a name, by which the seeded runs are known.
proverq.check_invariants() is asked too, but nothing here is counted by it.
"""
import collections
import json
import subprocess
import time

import hosts
import pq
from load import FINAL
from world import ROOT

CHECKS = {}


def check(name):
    def register(function):
        CHECKS[name] = function
        return function
    return register


class Evidence:
    """All rows, log lines and receipts of one run."""

    def __init__(self, session, folder, jobs, users=None, listener=None, auditor=None, lanes=()):
        self.folder, self.asked, self.users, self.listener, self.auditor, self.lanes = folder, jobs, users, listener, auditor, lanes
        self.jobs = {int(row[0]): {
            "number": int(row[0]), "request": row[1], "partitions": int(row[2]), "present": int(row[3]), "remaining": int(row[4]),
            "run": int(row[5]), "state": row[6], "webhook": row[7] == "t", "code": row[8], "error": row[9], "keeps": row[10] == "t",
            "was_early": row[11] == "t"} for row in session.query(
                "select job_seq, request_id, partitions, present, remaining, run, state, endpoint_id is not null, error_code, error, keep_inputs, "
                "finished_at < (select max(p.proved_at) from proverq.partition p where p.job_seq = j.job_seq) from proverq.job j")}
        self.partitions = {(int(row[0]), int(row[1])): {
            "state": row[2], "attempt": int(row[3]), "circuit": row[4], "proof": row[5], "publics": row[6], "has_input": row[7] == "t",
            "has_token": row[8] == "t"} for row in session.query(
                "select job_seq, partition_idx, p.state, attempt, j.circuit, p.proof::text, p.publics::text, "
                "num_nonnulls(witness, inputs) > 0, token is not null from proverq.partition p join proverq.job j using (job_seq)")}
        self.deliveries = session.query("select webhook_id, job_seq, run, event, state, attempts, last_status, last_error from proverq.deliveries")
        self.keys = dict(session.query("select name, vkey::text from proverq.circuit"))
        self.timed = collections.Counter((int(j), int(p), int(a)) for j, p, a in session.query(
            "select t.job_seq, t.partition_idx, t.attempt from proverq.timing t join proverq.step s using (step) where s.name = 'record'"))
        self.prover_ends = session.query(
            "select f.job_seq, f.partition_idx, f.prover_id, bool_or(r.seen_at > f.failed_at + interval '1 s') "
            "from proverq_private.failure f join proverq_private.prover r using (prover_id) where f.code = 'lost' group by 1, 2, 3")
        self.invariants = session.query("select invariant, job_seq, partition_idx, detail from proverq.check_invariants()")
        self.lines = list(hosts.log_lines(folder))
        try:
            with open(f"{folder}/receipts", encoding="utf-8") as file:
                self.receipts = [json.loads(line) for line in file]
        except FileNotFoundError:
            self.receipts = []

    def parts(self, number):
        return [self.partitions[key] for key in sorted(self.partitions) if key[0] == number]


def judge(evidence):
    """Findings by the name of the check, those without any left out."""
    found = {name: list(function(evidence)) for name, function in CHECKS.items()}
    return {name: texts for name, texts in found.items() if texts}


@check("jobs")
def every_job_is_there(e):
    known = {job["request"]: job for job in e.jobs.values()}
    for job in e.asked:
        row = known.pop(job.request, None)
        if row is None:
            yield f"{job.request} was answered with {job.number} and is gone" if job.number else f"{job.request} was never taken"
        elif (row["number"], row["partitions"]) != (job.number or row["number"], job.size):
            yield f"{job.request} was answered with {job.number} for {job.size} partitions and is {row['number']} with {row['partitions']}"
    for request, row in known.items():
        yield f"job {row['number']} ({request}) is nobody's"


@check("ended")
def every_job_has_ended(e):
    for job in e.jobs.values():
        if job["state"] not in FINAL:
            states = collections.Counter(part["state"] for part in e.parts(job["number"]))
            yield f"job {job['number']} is {job['state']}, its partitions {dict(states)}"


@check("reasons")
def no_end_without_its_reason(e):
    asked = {job.request: job for job in e.asked}
    for row in e.jobs.values():
        job = asked.get(row["request"])
        if job is None:
            continue
        if row["state"] == "finished" and job.bad_at is not None:
            yield f"job {row['number']} is finished although the witness of partition {job.bad_at} is wrong"
        elif row["state"] == "cancelled" and not (e.users and row["number"] in e.users.cancels):
            yield f"job {row['number']} is cancelled, and nobody did that"
        elif row["state"] == "failed" and not (row["code"] == "witness" and f"partition {job.bad_at}:" in row["error"]):
            if "a fault was injected" not in row["error"] and (row["code"] != "poison" or not was_poison(e, row["number"])):
                yield f"job {row['number']} failed without reason ({row['code']}): {row['error']}"


def was_poison(e, number):
    """Three processes lost one of its partitions and were never seen again."""
    gone = collections.Counter((job, part) for job, part, _, lived in e.prover_ends if int(job) == number and lived == "f")
    return any(count >= 3 for count in gone.values())


@check("remaining")
def counts_agree(e):
    for job in e.jobs.values():
        parts = e.parts(job["number"])
        open_ = sum(part["state"] != "proved" for part in parts)
        if (job["present"], job["remaining"]) != (len(parts), open_):
            yield f"job {job['number']} counts {job['present']} present and {job['remaining']} remaining of {len(parts)} with {open_} not proved"
        if job["state"] == "finished" and (open_ or len(parts) != job["partitions"]):
            yield f"job {job['number']} is finished with {len(parts) - open_} of {job['partitions']} partitions proved"


        if job["state"] == "finished" and job["was_early"]:
            yield f"job {job['number']} was finished before its last partition was proved"


@check("leftovers")
def nothing_is_left(e):
    for (number, part), row in e.partitions.items():
        job = e.jobs[number]
        if job["state"] not in FINAL:
            continue
        if row["has_token"] or row["state"] in ("held", "ready", "leased"):
            yield f"partition {part} of job {number} is {row['state']} although the job is {job['state']}"
        if row["has_input"] and not job["keeps"]:
            yield f"partition {part} of job {number} still has its witness although the job is {job['state']}"


@check("completions")
def one_completion_each(e):
    """By the logs: a partition is proved once, in the attempt that its row names. A line is missing when the process was killed
    before it wrote it, or when the answer was lost; there is never one too many."""
    lines = collections.defaultdict(list)
    for log, line in e.lines:
        if line.get("msg") == "partition proved":
            lines[line["job"], line["partition"]].append((line["attempt"], log))
    for key, proved in lines.items():
        row = e.partitions.get(key)
        if row is None:
            yield f"partition {key[1]} of job {key[0]} was proved and is not there"
        elif len(proved) > 1:
            yield f"partition {key[1]} of job {key[0]} was accepted {len(proved)} times: {sorted(proved)}"
        elif row["state"] != "proved" or row["attempt"] != proved[0][0]:
            yield f"partition {key[1]} of job {key[0]} was accepted in attempt {proved[0]}, and is {row['state']} in attempt {row['attempt']}"
    for (number, part), row in e.partitions.items():
        count = e.timed[number, part, row["attempt"]]
        if row["state"] == "proved" and count != 1:
            yield f"the times of partition {part} of job {number}, attempt {row['attempt']}, were recorded {count} times"


@check("proofs")
def every_proof_verifies(e):
    circuits, proved = sorted(e.keys), [(key, row) for key, row in sorted(e.partitions.items()) if row["state"] == "proved"]
    for circuit in circuits:
        with open(f"{e.folder}/{circuit}.vkey.json", "w", encoding="ascii") as file:
            file.write(e.keys[circuit])
    done = subprocess.run([ROOT / "build/tests/chaos/verify_all", *(f"{e.folder}/{circuit}.vkey.json" for circuit in circuits)], check=False,
                          input="".join(f"{circuits.index(row['circuit'])}\t{row['publics']}\t{row['proof']}\n" for _, row in proved),
                          capture_output=True, text=True)
    if done.returncode != 0:
        yield f"verify_all: {done.stderr.strip() or done.returncode}"
    for number in done.stdout.split():
        (job, part), _ = proved[int(number) - 1]
        yield f"the proof of partition {part} of job {job} does not verify"
    twice = [proof for proof, count in collections.Counter(row["proof"] for _, row in proved).items() if count > 1]
    if twice:
        yield f"{len(twice)} proofs are there more than once"


@check("webhooks")
def every_end_was_told(e):
    """One event for each run that ended, under one id, taken at least once."""
    taken, ids = collections.defaultdict(set), collections.defaultdict(set)
    for receipt in e.receipts:
        try:
            body = json.loads(receipt["body"])
        except ValueError:
            yield f"{receipt['id']} is no JSON: {receipt['body'][:200]}"
            continue
        if not body["type"].startswith("proverq.job."):
            continue
        event = (body["data"]["job"], body["data"]["run"])
        ids[event].add((body["type"], receipt["id"]))
        if receipt["answer"] == "204":
            taken[event].add(body["type"])
    for job in e.jobs.values():
        for run in range(1, job["run"] + 1):
            event = (job["number"], run)
            if not job["webhook"] or (run == job["run"] and job["state"] not in FINAL):
                continue
            if not taken[event]:
                deliveries = [d for d in e.deliveries if d[1:3] == (str(event[0]), str(run))]
                yield f"nobody was told of the end of job {event[0]}, run {run} ({job['state']}): {deliveries}"
            elif len(ids[event]) != 1:
                yield f"the end of job {event[0]}, run {run}, was told as {sorted(ids[event])}"
            elif run == job["run"] and taken[event] != {f"proverq.job.{job['state']}"}:
                yield f"job {event[0]} is {job['state']} and was told to be {taken[event]}"
    for event in taken:
        if event[0] not in e.jobs or event[1] > e.jobs[event[0]]["run"]:
            yield f"job {event[0]}, run {event[1]}, was told of and is not there"


@check("signatures")
def every_receipt_is_signed(e):
    for receipt in e.receipts:
        if not (receipt["signed"] and receipt["timely"]):
            yield f"{receipt['id']} came " + ("with a wrong signature" if not receipt["signed"] else "with a time that is more than 5 minutes off")


@check("notified")
def nobody_was_told_too_early(e):
    if e.listener:
        yield from e.listener.early
        ends = collections.defaultdict(set)
        for number, run, state in e.listener.events:
            ends[number, run].add(state)
        for (number, run), states in ends.items():
            job = e.jobs.get(number)
            if job is None or len(states) > 1 or run > job["run"] or (run == job["run"] and states != {job["state"]}):
                yield f"job {number}, run {run}, was notified as {sorted(states)} and is {job and job['state']}"


@check("invariants")
def shipped_check_agrees(e):
    for row in e.invariants:
        yield f"proverq.check_invariants(): {row}"
    for row in e.auditor.found.values() if e.auditor else ():
        yield f"proverq.check_invariants() in the middle: {row}"


@check("crashes")
def no_process_crashed(e):
    """By its own fault: an overdue step, a sanitizer, a signal that nobody sent."""
    for log, line in e.lines:
        if "aborts" in line.get("msg", "") or "Segmentation" in line.get("error", "") or "Aborted" in line.get("error", ""):
            yield f"{log}: {line}"


@check("disturbances")
def all_was_done(e):
    for lane in e.lanes:
        if lane.error:
            yield f"{lane.name} ended by itself: {type(lane.error).__name__}: {lane.error}"
        elif lane.missing():
            yield f"{lane.name}: there was no {', no '.join(lane.missing())}"


def settle(session, seconds, note):
    """Waits until every job has ended and every webhook is delivered, or nothing has changed for so long. The schedule of webhooks
    goes up to a day, so it is hastened."""
    until, hastened, waiting = time.monotonic() + seconds, 0, None
    while time.monotonic() < until:
        try:
            if time.monotonic() > hastened + 2:
                session.query("update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() where state = 'pending' and "
                              "next_attempt_at > clock_timestamp() + case when token is null then interval '1 s' else interval '5 s' end")
                session.query("update proverq_private.webhook_endpoint set rests_until = null where rests_until is not null")
                session.query("notify proverq_finalize")
                hastened = time.monotonic()
            before, waiting = waiting, session.query(
                "select count(*), coalesce(sum(remaining), 0), (select count(*) from proverq_private.webhook_delivery where state = 'pending') "
                "from proverq.job where finished_at is null")[0]
            if waiting == ("0", "0", "0"):
                return True
            if waiting != before:
                until = time.monotonic() + seconds
        except (pq.Lost, pq.Refused) as error:
            note(f"settling: {error}")
        time.sleep(0.3)
    note(f"not quiet, and nothing has changed for {seconds} s: jobs, partitions, webhooks: {waiting}")
    return False


def explain(admin, note):
    """For the timeline: what every session does, and whom it waits for."""
    for row in admin.query("select pid, application_name, state, wait_event_type, wait_event, pg_blocking_pids(pid), clock_timestamp() - xact_start, "
                           "left(regexp_replace(query, '\\s+', ' ', 'g'), 100) from pg_stat_activity where datname = 'proverq' order by xact_start"):
        note(f"session {row}")
    for row in admin.query("select application_name, state, sync_state, sent_lsn, flush_lsn, pg_current_wal_lsn() from pg_stat_replication"):
        note(f"standby {row}")
