create or replace function proverq.make_timing_partitions(days int) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s' set timezone = 'UTC'
as $$
declare
    parent text;
    parent_table text;
    day date;
    made int := 0;
    day_table text;
begin
    if days is null or days not between 0 and 366 then
        raise invalid_parameter_value using message = format('days must be from 0 to 366, not %s', coalesce(days::text, 'NULL'));
    end if;
    perform pg_advisory_xact_lock(hashtextextended('proverq.make_timing_partitions', 0));
    for parent, parent_table, day in
        select t.name, t.full_name, d::date
        from (values ('timing', 'proverq.timing'), ('device_activity', 'proverq_private.device_activity')) t (name, full_name),
             generate_series(current_date, current_date + days, interval '1 day') d
    loop
        day_table := parent || '_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('proverq_private.' || day_table) is not null;
        -- Rows of that day that went to the default table move: attaching would fail on them.
        execute format('lock table proverq_private.%I in access exclusive mode', parent || '_default');
        execute format('create table proverq_private.%I (like %s including defaults including comments)', day_table, parent_table);
        execute format('with moved as (delete from proverq_private.%I where recorded_at >= %L and recorded_at < %L returning *)'
                       ' insert into proverq_private.%I select * from moved', parent || '_default', day, day + 1, day_table);
        execute format('alter table %s attach partition proverq_private.%I for values from (%L) to (%L)', parent_table, day_table, day, day + 1);
        execute format('comment on table proverq_private.%I is %L', day_table, format('Rows of %s UTC.', day));
        made := made + (parent = 'timing')::int;
    end loop;
    return made;
end
$$;
comment on function proverq.make_timing_partitions(int) is
    'Makes the tables proverq_private.timing_YYYYMMDD and device_activity_YYYYMMDD of today and so many days after it; gives how many days were missing.';
