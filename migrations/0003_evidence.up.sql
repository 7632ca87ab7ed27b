-- Where the time goes: steps of the GPU workers, when each device was busy, and the indexes that the views need.

insert into proverq.step (step, name, description) values
    (29, 'synthesis_wait', 'the partition waits for a synthesis thread'),
    (41, 'pick_up', 'a GPU worker has taken the partition'),
    (42, 'slot_wait', 'the worker waits for a slot on the device'),
    (43, 'launch', 'copies and kernels are enqueued'),
    (44, 'compute', 'the CPU, being the device, computes the proof''s sums'),
    (45, 'inputs_wait', 'the worker waits until the witness is copied'),
    (46, 'device_wait', 'the worker waits until the device has done its part'),
    (47, 'hand_over', 'the partition goes to the finish stage, or is given up'),
    (48, 'idle', 'the worker waits for a witness'),
    (60, 'finish_wait', 'the sums wait for a finish thread');
update proverq.step set description = 'the witness waits for a GPU worker' where step = 40;

alter table proverq.step add column is_wait bool not null default false;
comment on column proverq.step.is_wait is 'Somebody waits, nothing is done: such time is not running time.';
update proverq.step set is_wait = true where name in ('synthesis_wait', 'queue_wait', 'slot_wait', 'inputs_wait', 'device_wait', 'idle', 'finish_wait', 'record');

-- The windows of the views go by recording time, the look at a worker's neighbours by its own.
create index timing_recorded on proverq.timing using brin (recorded_at) with (pages_per_range = 16, autosummarize = on);
create index timing_worker on proverq.timing (prover_id, worker, started_at) where step between 41 and 48;
comment on column proverq.timing.worker is 'Which thread of the prover: 0 dispatcher, 1 loader, from 20 GPU workers, from 30 finish, 40 record, from 100 synthesis.';

create type proverq.activity_kind as enum ('kernel', 'copy', 'device_span', 'cpu_span');
comment on type proverq.activity_kind is 'What kept a device busy. kernel and copy: by the device''s own clock (CUPTI). device_span: between CUDA events, where CUPTI is missing; includes waiting on the device, so it is no kernel time. cpu_span: steps of proofs on a CPU.';

create table proverq.device_activity (
    recorded_at timestamptz not null default clock_timestamp(),
    prover_id int not null,
    device text not null,
    kind proverq.activity_kind not null,
    started_at timestamptz not null,
    duration bigint not null,
    busy bigint not null
) partition by range (recorded_at);
comment on table proverq.device_activity is 'When each device was busy: intervals, merged over all streams. Read the views proverq.device_utilization and proverq.device_gaps. Drop old days with DROP TABLE proverq.device_activity_YYYYMMDD.';
comment on column proverq.device_activity.recorded_at is 'This database''s clock; decides the day''s table that the row is in.';
comment on column proverq.device_activity.prover_id is 'A prover process owns one device.';
comment on column proverq.device_activity.started_at is 'The prover''s clock.';
comment on column proverq.device_activity.duration is 'Microseconds; pauses shorter than 5 us do not end an interval.';
comment on column proverq.device_activity.busy is 'Nanoseconds of it without those pauses, exact.';
create index device_activity_recorded on proverq.device_activity using brin (recorded_at) with (pages_per_range = 16, autosummarize = on);

create table proverq.device_activity_default partition of proverq.device_activity default;
comment on table proverq.device_activity_default is 'Activity of days without a table; proverq.make_timing_partitions(days) makes those.';

alter table proverq.prover add column activity_until timestamptz;
comment on column proverq.prover.activity_until is 'Up to when (the prover''s clock) it is recorded when its device was busy; null: nothing yet.';

-- It becomes one with other columns.
do $$
begin
    if to_regclass('proverq.step_stats') is not null then
        drop view proverq.step_stats;
    end if;
end
$$;

insert into proverq.schema_migration (version, name, breaking) values (3, 'evidence', false);
