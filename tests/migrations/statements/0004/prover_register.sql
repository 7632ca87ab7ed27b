-- A prover process says who it is: $1 instance, $2 host, $3 pid, $4 device, $5 description, $6 version. Gives its number.
insert into proverq_private.prover (instance, host, pid, device, description, version)
values ($1::uuid, $2::text, $3::int, $4::text, $5::text, $6::text)
on conflict (instance) do update
set state = 'running', idle = false, seen_at = clock_timestamp(), description = excluded.description
returning prover_id
