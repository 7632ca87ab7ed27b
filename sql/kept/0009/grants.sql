-- The last step, after all functions and views: who may use them (the list is in sql/functions/roles.sql).
select proverq.apply_grants();
