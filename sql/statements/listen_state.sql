-- What came of the webhook $1: delivered?, attempts, the last error.
select d.state = 'delivered' as delivered, d.attempts, d.last_error from proverq.deliveries d where d.webhook_id = $1::text
