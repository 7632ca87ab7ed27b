-- At most $1 jobs that wait for their end.
select job_seq from proverq.finalizable($1::int)
