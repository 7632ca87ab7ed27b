-- Describes the schemas proverq and proverq_private, one line for each thing, in a form that
-- does not depend on PostgreSQL's version.
\pset format unaligned
\pset tuples_only on

select format('table %s%s: %s', c.oid::regclass, coalesce(' (' || array_to_string(c.reloptions, ', ') || ')', ''),
    obj_description(c.oid, 'pg_class'))
from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and c.relkind in ('r', 'p') order by c.oid::regclass::text;

select format('column %s.%s %s%s%s%s: %s', c.oid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
    case when a.attnotnull then ' not null' end,
    case when a.attidentity = 'a' then ' identity' end, ' default ' || pg_get_expr(d.adbin, d.adrelid),
    col_description(c.oid, a.attnum))
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and c.relkind in ('r', 'p')
order by c.oid::regclass::text, a.attnum;

select format('type %s (%s): %s', t.oid::regtype,
    (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid),
    obj_description(t.oid, 'pg_type'))
from pg_type t where t.typnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and t.typtype = 'e'
order by t.oid::regtype::text;

select format('constraint %s.%s %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
from pg_constraint c where c.connamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and c.contype <> 'n' order by c.conrelid::regclass::text, c.conname;

select format('index %s', pg_get_indexdef(i.indexrelid))
from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) order by c.relname;

select format('trigger %s', pg_get_triggerdef(t.oid))
from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and not t.tgisinternal
order by c.relname, t.tgname;

select format('policy %s on %s.%s for %s', p.policyname, p.schemaname, p.tablename, lower(p.cmd))
from pg_policies p where p.schemaname in ('proverq', 'proverq_private')
order by p.schemaname, p.tablename, p.policyname;
select format('policies on %s', c.oid::regclass)
from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and c.relrowsecurity
order by c.oid::regclass::text;

select format('view %s (%s)%s: %s', c.oid::regclass,
    (select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0),
    coalesce(' ' || array_to_string(c.reloptions, ', '), ''), obj_description(c.oid, 'pg_class'))
from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and c.relkind = 'v'
order by c.relname;

select format('function %s.%s(%s) returns %s %s%s%s: %s', p.pronamespace::regnamespace, p.proname,
    pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
    case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
    case when p.prosecdef then ' security definer' end,
    ' set ' || array_to_string(p.proconfig, ', '), obj_description(p.oid, 'pg_proc'))
from pg_proc p where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) order by 1;

-- What would be missing from a person's view of it: must be empty.
select 'no comment: ' || p.oid::regprocedure
from pg_proc p where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and obj_description(p.oid, 'pg_proc') is null;
select 'no comment: ' || c.oid::regclass
from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and c.relkind in ('r', 'p', 'v') and obj_description(c.oid, 'pg_class') is null;
select 'no fixed search_path: ' || p.oid::regprocedure
from pg_proc p where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and p.prosqlbody is null and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false);
-- Nor may anything be for everybody.
select format('%s may be called by everybody', p.oid::regprocedure)
from pg_proc p where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and has_function_privilege('public', p.oid, 'execute') order by 1;
