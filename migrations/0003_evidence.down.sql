-- Takes the evidence away, with what it recorded. Views that need it are dropped before.
drop function if exists proverq.device_gaps_between, proverq.gap_causes_between, proverq.device_utilization_between, proverq.step_stats_between,
    proverq.record_activity, proverq.record_workers;
alter table proverq.prover drop column activity_until;
drop table proverq.device_activity;
drop type proverq.activity_kind;
drop index proverq.timing_worker, proverq.timing_recorded;
alter table proverq.step drop column is_wait;
delete from proverq.step where step in (29, 41, 42, 43, 44, 45, 46, 47, 48, 60);
delete from proverq.timing where step in (29, 41, 42, 43, 44, 45, 46, 47, 48, 60);
delete from proverq.schema_migration where version = 3;
