-- Takes functions, views and triggers away, as a way down needs it before it changes tables; tables and what is in them stay. All
-- that is in the two schemas goes, for they are proverq's own. What others have built upon it, outside them, stops it.
do $$
declare
    ours constant oid[] := array(select n.oid from pg_catalog.pg_namespace n where n.nspname in ('proverq', 'proverq_private'));
    thing record;
    dropped int;
    left_over text;
    dependent text;
begin
    for thing in
        select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as command
        from pg_policy p
        where exists (select from pg_depend d join pg_proc f on f.oid = d.refobjid
                      where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass and f.pronamespace = any (ours))
    loop
        execute thing.command;
    end loop;
    for thing in -- in the order of locks: the job before its partitions
        select format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass) as command
        from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc f on f.oid = t.tgfoid
        where c.relnamespace = any (ours) and f.pronamespace = any (ours) and not t.tgisinternal
        order by c.relname, t.tgname
    loop
        execute thing.command;
    end loop;
    loop -- views and functions use each other: again and again, those that nothing uses any more
        dropped := 0;
        left_over := null;
        for thing in
            select format('view %I.%I', n.nspname, c.relname) as name
            from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.oid = any (ours) and c.relkind = 'v'
            union all
            select format('function %s', f.oid::regprocedure) from pg_proc f where f.pronamespace = any (ours)
        loop
            begin
                execute 'drop ' || thing.name;
                dropped := dropped + 1;
            exception when dependent_objects_still_exist then
                get stacked diagnostics dependent = pg_exception_detail;
                left_over := thing.name;
            end;
        end loop;
        exit when left_over is null;
        if dropped = 0 then
            raise dependent_objects_still_exist using
                message = format('cannot drop %s: %s', left_over, split_part(dependent, E'\n', 1)),
                hint = 'Drop what depends on it, and make it again afterwards.';
        end if;
    end loop;
end
$$;
