#!/usr/bin/env python3
"""Draws what a prover did, out of the database: as SVG, or as Chrome trace JSON, which https://ui.perfetto.dev opens.

    timeline.py --job 7 --svg job.svg --trace job.json
    timeline.py --from '2026-11-30 10:00' --to '2026-11-30 10:01' --svg minute.svg
    timeline.py --last 30s --trace now.json

The connection is PROVERQ_DATABASE, else psql's PG* variables. Needs psql and Python 3.8, nothing else. Each prover has a lane
for each of its threads, one for what ran on its device, and one for the gaps, named after their causes.
"""
import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
from html import escape

# What a lane shows, by the number of a thread (service/prover/pipeline.h).
STAGES = [(0, 0, "dispatcher"), (1, 1, "loader"), (20, 29, "GPU worker"), (30, 39, "verify"), (40, 40, "record"), (100, 999, "synthesis")]
ORDER = ["device", "gaps", "GPU worker", "steps on the device", "dispatcher", "loader", "synthesis", "ready to prove", "verify", "record"]
WAITS = "#d9d9d9"
COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#2f6f8f", "#8cd17d", "#86bcb6"]
KNOWN_COLOURS = {"kernel": "#2ca02c", "copy": "#1f77b4", "cpu_span": "#2ca02c", "device_span": "#98df8a", "no_work": "#eeeeee"}


class Span:
    def __init__(self, prover, device, lane, name, start, duration, job, partition, attempt, is_wait):
        self.prover, self.device, self.lane, self.name = prover, device, lane, name
        self.start, self.duration, self.job, self.partition, self.attempt, self.is_wait = start, duration, job, partition, attempt, is_wait
        self.row = 0

    def label(self):
        of = f" of {self.job}/{self.partition}" if self.job is not None else ""
        again = f", attempt {self.attempt}" if self.attempt is not None and self.attempt > 1 else ""
        return f"{self.name}{of}{again}: {self.duration} us"


def query(sql, **values):
    """Rows of a query as lists of text; :'name' in it is quoted by psql."""
    command = ["psql", "-X", "-q", "-A", "-t", "--csv", "-v", "ON_ERROR_STOP=1"]
    for name, value in values.items():
        command += ["-v", f"{name}={value}"]
    database = os.environ.get("PROVERQ_DATABASE")
    run = subprocess.run(command + ([database] if database else []), input=sql + ";\n", stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit("timeline.py: the database was not read (psql says why, above)")
    return list(csv.reader(io.StringIO(run.stdout)))


def window_of(args):
    """The first and last microsecond to draw, since 1970."""
    if args.job is not None:
        row = query("select floor(extract(epoch from min(started_at)) * 1e6)::bigint, ceil(extract(epoch from max(started_at + duration * interval '1 us')) * 1e6)::bigint "
                    "from proverq.job_timeline where job_seq = :'job'::bigint", job=args.job)[0]
        if not row[0]:
            sys.exit(f"timeline.py: nothing is recorded of job {args.job}; see: select proverq.why({args.job});")
    elif args.last:
        number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", args.last).groups()
        seconds = int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
        row = query("select floor(extract(epoch from now() - :'s'::float8 * interval '1 s') * 1e6)::bigint, floor(extract(epoch from now()) * 1e6)::bigint", s=seconds)[0]
    else:
        row = query("select floor(extract(epoch from :'a'::timestamptz) * 1e6)::bigint, floor(extract(epoch from :'b'::timestamptz) * 1e6)::bigint",
                    a=args.from_time, b=args.to_time)[0]
    return int(row[0]), int(row[1])


AT = "floor(extract(epoch from {}) * 1e6)::bigint"
BOUNDS = "to_timestamp(:'a'::float8 / 1e6) as a, to_timestamp(:'b'::float8 / 1e6) as b"


def number(text):
    return int(text) if text else None


def lane_of(worker, step_id):
    for first, last, name in STAGES:
        if first <= worker <= last:
            # What a proof does on the device, and its wait for the worker, are beside what the worker does.
            if name == "GPU worker" and step_id == 40:
                return "ready to prove"
            if name == "GPU worker" and step_id > 48:
                return f"steps on the device {worker - first + 1}"
            return name if first == last else f"{name} {worker - first + 1}"
    return f"worker {worker}"


def read_steps(a, b, job):
    of_job = "and t.job_seq = :'job'::bigint" if job is not None else ""
    rows = query(f"""
        select t.prover_id, t.device, t.worker, t.step, coalesce(s.name, t.step::text), {AT.format('t.started_at')}, t.duration,
               t.job_seq, t.partition_idx, t.attempt, coalesce(s.is_wait, false)
        from (select {BOUNDS}) w
        join proverq.timing t on t.recorded_at >= w.a - interval '1 minute' and t.recorded_at < w.b + interval '10 minutes'
             and t.started_at < w.b and t.started_at + t.duration * interval '1 us' >= w.a {of_job}
        left join proverq.step s on s.step = t.step
        order by t.started_at""", a=a, b=b, job=job if job is not None else 0)
    return [Span(int(r[0]), r[1], lane_of(int(r[2]), int(r[3])), r[4], int(r[5]), int(r[6]), number(r[7]), number(r[8]), number(r[9]), r[10] == "t")
            for r in rows]


def read_device(a, b):
    rows = query(f"""
        select d.prover_id, d.device, d.kind, {AT.format('d.started_at')}, d.duration
        from (select {BOUNDS}) w
        join proverq_private.device_activity d on d.recorded_at >= w.a - interval '1 minute' and d.recorded_at < w.b + interval '10 minutes'
             and d.started_at < w.b and d.started_at + d.duration * interval '1 us' >= w.a
        order by d.started_at""", a=a, b=b)
    return [Span(int(r[0]), r[1], "device", r[2], int(r[3]), int(r[4]), None, None, None, False) for r in rows]


def read_gaps(a, b):
    rows = query(f"""
        select g.prover_id, g.device, g.cause, {AT.format('g.started_at')}, g.duration, g.job_seq, g.partition_idx, g.attempt
        from (select {BOUNDS}) w, proverq.device_gaps_between(w.a, w.b) g""", a=a, b=b)
    return [Span(int(r[0]), r[1], "gaps", r[2], int(r[3]), int(r[4]), number(r[5]), number(r[6]), number(r[7]), False) for r in rows]


def pack(spans):
    """Lanes in their order, each a list of rows' spans that do not overlap: [(prover, device, lane, rows, spans)]."""
    lanes = {}
    for span in sorted(spans, key=lambda s: (s.start, -s.duration)):
        lanes.setdefault((span.prover, span.device, span.lane), []).append(span)
    packed = []
    for (prover, device, lane), of_lane in sorted(lanes.items(), key=lambda l: (l[0][0], rank(l[0][2]), l[0][2])):
        ends = []
        for span in of_lane:
            row = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
            ends[row:row + 1] = [span.start + span.duration]
            span.row = row
        packed.append((prover, device, lane, len(ends), of_lane))
    return packed


def rank(lane):
    return next((i for i, name in enumerate(ORDER) if lane.startswith(name)), len(ORDER))


def colour_of(span):
    if span.is_wait or span.name == "idle":
        return WAITS
    return KNOWN_COLOURS.get(span.name) or COLOURS[sum(ord(c) * (i + 1) for i, c in enumerate(span.name)) % len(COLOURS)]


def ticks(length):
    """Distances of the axis' marks, in microseconds: 1, 2 or 5 times a power of ten, about ten of them."""
    step = 10 ** (len(str(max(1, length // 10))) - 1)
    while length / step > 12:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return range(0, length + 1, step)


def write_svg(path, lanes, a, b):
    left, width, height, head = 210, 1400, 14, 34
    scale = (width - left - 20) / max(1, b - a)
    out, y = [], head
    for prover, device, lane, rows, spans in lanes:
        out.append(f'<text x="4" y="{y + 11}">{escape(f"{prover} {device}  {lane}")}</text>')
        for s in spans:
            start, end = max(s.start, a), min(s.start + s.duration, b)
            out.append(f'<rect class="span" x="{left + (start - a) * scale:.2f}" y="{y + s.row * height}" width="{max(0.3, (end - start) * scale):.2f}" '
                       f'height="{height - 2}" fill="{colour_of(s)}"><title>{escape(s.label())}</title></rect>')
        y += rows * height + 6
    axis = []
    for t in ticks(b - a):
        x = left + t * scale
        axis.append(f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{y}" stroke="#cccccc"/><text x="{x + 2:.1f}" y="16">{t / 1000:g} ms</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 10}" font-family="sans-serif" font-size="10">\n'
                   f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(axis + out) + "\n</svg>\n")


def write_trace(path, lanes, a):
    """The Trace Event Format: complete events, times in microseconds; a thread for each row, since those of one must not overlap."""
    events, thread = [], 0
    for prover, device in dict.fromkeys((l[0], l[1]) for l in lanes):
        events.append({"ph": "M", "name": "process_name", "pid": prover, "args": {"name": f"prover {prover}, {device}"}})
    for prover, _, lane, rows, spans in lanes:
        for row in range(rows):
            tid = thread + row
            events.append({"ph": "M", "name": "thread_name", "pid": prover, "tid": tid, "args": {"name": lane if row == 0 else f"{lane} ({row + 1})"}})
            events.append({"ph": "M", "name": "thread_sort_index", "pid": prover, "tid": tid, "args": {"sort_index": tid}})
        for s in spans:
            args = {key: value for key, value in (("job", s.job), ("partition", s.partition), ("attempt", s.attempt)) if value is not None}
            events.append({"ph": "X", "name": s.name, "cat": s.lane, "pid": prover, "tid": thread + s.row, "ts": s.start - a, "dur": s.duration, "args": args})
        thread += rows
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"started_us": a}}, file, indent=0)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--job", type=int, help="all of this job, and what its provers' devices did meanwhile")
    what.add_argument("--from", dest="from_time", metavar="TIME", help="a window, with --to")
    what.add_argument("--last", metavar="TIME", help="the last 500ms, 30s, 5m, 1h")
    parser.add_argument("--to", dest="to_time", metavar="TIME", default="now")
    parser.add_argument("--svg", metavar="FILE", help="write a picture")
    parser.add_argument("--trace", metavar="FILE", help="write Chrome trace JSON")
    args = parser.parse_args()
    if not args.svg and not args.trace:
        parser.error("nothing to write: give --svg FILE, --trace FILE, or both")
    if args.last and not re.fullmatch(r"\d+(ms|s|m|h)", args.last):
        parser.error("--last takes a number and ms, s, m or h")
    a, b = window_of(args)
    steps = read_steps(a, b, args.job)
    provers = {span.prover for span in steps}
    spans = steps + [span for span in read_device(a, b) + read_gaps(a, b) if span.prover in provers or args.job is None]
    if not spans:
        sys.exit("timeline.py: nothing is recorded of that time")
    lanes = pack(spans)
    if args.svg:
        write_svg(args.svg, lanes, a, b)
    if args.trace:
        write_trace(args.trace, lanes, a)
    print(f"{len(spans)} spans of {len(lanes)} lanes, {(b - a) / 1000:.3f} ms")


main()
