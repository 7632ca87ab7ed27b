-- How long each step took in the last hour, in microseconds.
select step, circuit, device, count, p50, p95, p99, max, total
from proverq.step_stats;
