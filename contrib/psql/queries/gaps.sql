-- What the devices waited for in the last hour: milliseconds, parts of all gaps and of the time.
select prover_id, device, cause, gaps, round(total / 1000.0, 1) as ms, round(max / 1000.0, 1) as longest_ms,
       round(100 * share::numeric, 2) as percent_of_gaps, round(100 * of_time::numeric, 2) as percent_of_time
from proverq.gap_causes;
