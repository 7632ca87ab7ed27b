-- At most $1 jobs that wait for their end.
select job_seq from proverq_private.finalizable($1::int)
