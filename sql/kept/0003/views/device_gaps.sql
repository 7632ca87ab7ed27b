create or replace view proverq.device_gaps with (security_invoker = true) as
select * from proverq.device_gaps_between(now() - interval '1 hour', now());
comment on view proverq.device_gaps is 'Every time of the last hour in which a device did nothing (neither for a proof nor to load a key), with the step and the partition that caused it; another window: proverq.device_gaps_between(from, to). Long ones: select * from proverq.device_gaps order by duration desc limit 20;';
comment on column proverq.device_gaps.prover_id is 'A prover process owns one device.';
comment on column proverq.device_gaps.started_at is 'The prover''s clock.';
comment on column proverq.device_gaps.duration is 'Microseconds. A gap is cut where its cause changes.';
comment on column proverq.device_gaps.cause is 'no_work: no job was ready. claim: the partition that ran next was ready and not claimed yet, or was being claimed. retry_wait: it waited for its next attempt. queue_wait: its witness was ready, an idle worker had not taken it up. A step of proverq.step: that step was under way, of the partition that ran next or of the worker that it waited for. other: not known.';
comment on column proverq.device_gaps.job_seq is 'With partition_idx and attempt: the partition whose step it was. Null: none ran after the gap.';
comment on column proverq.device_gaps.worker is 'The GPU worker that took the partition which ran next.';
