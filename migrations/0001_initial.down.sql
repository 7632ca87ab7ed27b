-- Takes everything away: the schema, with the functions and views in it and all jobs and proofs.
drop schema proverq cascade;
