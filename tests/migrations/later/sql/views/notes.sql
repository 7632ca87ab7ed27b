create or replace view proverq.notes as select job_seq, proverq.note(job_seq) as note from proverq.job;
comment on view proverq.notes is 'What was noted on each job.';
