create or replace function proverq_private.record_activity(
    prover int, kinds smallint[], started timestamptz[], durations bigint[], busy bigint[], until timestamptz)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (cardinality(started) = cardinality(kinds) and cardinality(durations) = cardinality(kinds) and cardinality(busy) = cardinality(kinds)) then
        raise invalid_parameter_value using message = 'the arrays of activity differ in length';
    end if;
    insert into proverq_private.device_activity (prover_id, device, kind, started_at, duration, busy)
    select p.prover_id, p.device, (enum_range(null::proverq_private.activity_kind))[a.kind + 1], a.started, a.duration, a.busy
    from proverq_private.prover p, unnest(kinds, started, durations, busy) a (kind, started, duration, busy)
    where p.prover_id = record_activity.prover;
    if until is not null then
        update proverq_private.prover p set activity_until = until where p.prover_id = record_activity.prover;
    end if;
end
$$;
comment on function proverq_private.record_activity(int, smallint[], timestamptz[], bigint[], bigint[], timestamptz) is
    'Writes when a device was busy (kinds from 0: kernel, copy, device_span, cpu_span; microseconds, and nanoseconds busy), and until when all is known.';
