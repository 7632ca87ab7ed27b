-- The circuit version $1 has the compiled calculator $3, with the .dat file $4 or null, on machines $2. A new compilation
-- takes the place of an older one.
insert into proverq_private.calculator (circuit_id, machine, sha256, dat)
values ($1::bigint, $2::text, $3::bytea, $4::bytea)
on conflict (circuit_id, machine) do update set sha256 = excluded.sha256, dat = excluded.dat
