-- The outcomes of webhook attempts, a JSON array. Gives for each 'stale', 'delivered', 'retry', 'failed' or 'disabled'.
select delivery_id, outcome from proverq_private.record_deliveries($1::jsonb)
