create or replace view proverq.gap_causes with (security_invoker = true) as
select * from proverq.gap_causes_between(now() - interval '1 hour', now());
comment on view proverq.gap_causes is 'What the devices waited for in the last hour, the worst first; another window: proverq.gap_causes_between(from, to). The gaps themselves: proverq.device_gaps.';
comment on column proverq.gap_causes.prover_id is 'A prover process owns one device.';
comment on column proverq.gap_causes.cause is 'As in proverq.device_gaps; between_kernels: pauses of less than 5 us, which are no gaps.';
comment on column proverq.gap_causes.gaps is 'How many, each a piece of one cause.';
comment on column proverq.gap_causes.total is 'Microseconds.';
comment on column proverq.gap_causes.max is 'The longest, in microseconds.';
comment on column proverq.gap_causes.share is 'Of the device''s gaps, from 0 to 1.';
comment on column proverq.gap_causes.of_time is 'Of the time, from 0 to 1.';
