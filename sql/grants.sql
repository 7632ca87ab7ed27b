-- The last step, after all functions and views: who may use them (the list is in sql/functions/access.sql).
select proverq.apply_grants();
