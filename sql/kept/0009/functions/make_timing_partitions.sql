create or replace function proverq.make_timing_partitions(days int) returns int
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
set lock_timeout = '5s' set timezone = 'UTC'
as $$
declare
    parent text;
    day date;
    made int := 0;
    day_table text;
begin
    if days is null or days not between 0 and 366 then
        raise invalid_parameter_value using message = format('days must be from 0 to 366, not %s', coalesce(days::text, 'NULL'));
    end if;
    perform pg_advisory_xact_lock(hashtextextended('proverq.make_timing_partitions', 0));
    for parent, day in
        select t.name, d::date
        from (values ('timing'), ('device_activity')) t (name), generate_series(current_date, current_date + days, interval '1 day') d
    loop
        day_table := parent || '_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('proverq.' || day_table) is not null;
        -- Rows of that day that went to the default table move: attaching would fail on them.
        execute format('lock table proverq.%I in access exclusive mode', parent || '_default');
        execute format('create table proverq.%I (like proverq.%I including defaults including comments)', day_table, parent);
        execute format('with moved as (delete from proverq.%I where recorded_at >= %L and recorded_at < %L returning *)'
                       ' insert into proverq.%I select * from moved', parent || '_default', day, day + 1, day_table);
        execute format('alter table proverq.%I attach partition proverq.%I for values from (%L) to (%L)', parent, day_table, day, day + 1);
        execute format('comment on table proverq.%I is %L', day_table, format('Rows of %s UTC.', day));
        made := made + (parent = 'timing')::int;
    end loop;
    return made;
end
$$;
comment on function proverq.make_timing_partitions(int) is
    'Makes the tables proverq.timing_YYYYMMDD and device_activity_YYYYMMDD of today and so many days after it; gives how many days were missing.';
