-- Stores chunk $2 of the artefact $1, in the transaction of artefact_put.
insert into proverq_private.artefact_chunk (sha256, idx, data) values ($1::bytea, $2::int, $3::bytea)
