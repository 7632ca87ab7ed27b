-- How busy the devices were in the last minute, second by second, in percent.
select prover_id, device, date_trunc('second', bucket)::time as second, round(100 * avg(kernel_busy)::numeric, 1) as kernels,
       round(100 * avg(copy_busy)::numeric, 1) as copies, round(100 * avg(span_busy)::numeric, 1) as spans,
       round(100 * avg(worker_busy)::numeric, 1) as workers, repeat('#', (40 * avg(coalesce(kernel_busy, span_busy)))::int) as busy
from proverq.device_utilization_between(now() - interval '1 minute', now())
group by prover_id, device, date_trunc('second', bucket)
order by prover_id, second;
