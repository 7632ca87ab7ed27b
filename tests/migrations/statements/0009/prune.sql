-- Deletes at most $1 rows of what is older than it is to be kept; gives how many, null when none is left.
select sum(removed)::bigint from proverq.prune($1::int)
