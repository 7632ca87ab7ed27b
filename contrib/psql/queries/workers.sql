-- What the GPU workers did in the last 5 minutes: parts of their time, in percent. The rows of a worker add up to 100.
select prover_id, device, worker, step, count(*) as count, round(sum(duration) / 1000.0, 1) as ms,
       round(100 * sum(duration) / sum(sum(duration)) over (partition by prover_id, worker), 2) as percent
from proverq.timings
where recorded_at > now() - interval '5 minutes' and step in ('idle', 'pick_up', 'slot_wait', 'launch', 'compute', 'inputs_wait', 'device_wait', 'hand_over')
group by prover_id, device, worker, step
order by prover_id, worker, sum(duration) desc;
