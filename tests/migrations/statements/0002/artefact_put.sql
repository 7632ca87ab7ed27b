-- Announces the artefact $1 (sha256): $2 kind, $3 bytes, $4 path or null. One row when it is new, none when it is known: then
-- it has its chunks.
insert into proverq_private.artefact (sha256, kind, bytes, path)
values ($1::bytea, $2::text, $3::bigint, $4::text)
on conflict (sha256) do nothing
returning true as is_new
