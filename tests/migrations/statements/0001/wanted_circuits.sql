-- Circuits with ready partitions that are not in $1, in the order in which their first partition would be claimed; 8 at most.
select circuit_id from proverq_private.wanted_circuits($1::bigint[], 8)
