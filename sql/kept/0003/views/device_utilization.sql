create or replace view proverq.device_utilization with (security_invoker = true) as
select * from proverq.device_utilization_between(now() - interval '1 hour', now());
comment on view proverq.device_utilization is 'How busy each device was in each 0.2 s of the last hour, from 0 to 1; another window: proverq.device_utilization_between(from, to). What is known comes some seconds late.';
comment on column proverq.device_utilization.prover_id is 'A prover process owns one device.';
comment on column proverq.device_utilization.bucket is 'The 0.2 s from then on, by the prover''s clock.';
comment on column proverq.device_utilization.kernel_busy is 'Time in which at least one kernel ran, by the device''s own clock; null where nothing was measured on the device.';
comment on column proverq.device_utilization.copy_busy is 'Time in which at least one copy or fill ran, by the device''s own clock; beside kernels or not.';
comment on column proverq.device_utilization.span_busy is 'Where nothing was measured on the device: time between the events of proofs'' steps, waiting included; of a CPU, time in which it computed a proof''s steps.';
comment on column proverq.device_utilization.worker_busy is 'Time that GPU workers were not idle, their mean. Can be high while the device is not.';
