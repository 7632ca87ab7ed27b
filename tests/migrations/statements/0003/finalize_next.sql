-- Finalizes one job that is proved or has failed; no row when there is none.
select job_seq, run, event from proverq_private.finalize_next()
