-- Chunk $2 of the artefact $1; no row after the last.
select data from proverq_private.artefact_chunk where sha256 = $1::bytea and idx = $2::int
