-- Ends the job $1. No row: another has, or does. No event: it cannot be ended now, and why.
select run, event, error from proverq_private.finalize($1::bigint)
