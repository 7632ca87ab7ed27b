-- Takes everything away: both schemas, with the functions and views in them and all jobs and proofs.
drop schema proverq, proverq_private cascade;
