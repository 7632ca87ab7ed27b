create or replace view proverq.alerts with (security_invoker = true) as
select * from proverq_private.current_alerts();
comment on view proverq.alerts is 'What an operator should look at, the worst first; no row: all is well. When each is raised: select * from proverq.alert_limit;';
comment on column proverq.alerts.severity is 'critical (work stands still), warning, info.';
comment on column proverq.alerts.alert is 'One of proverq.alert_limit.';
comment on column proverq.alerts.what is 'What is wrong, and where.';
comment on column proverq.alerts.since is 'Null: not known.';
comment on column proverq.alerts.advice is 'What to do, or where to look further.';
