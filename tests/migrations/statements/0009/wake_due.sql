-- Partitions whose backoff is over become ready; gives how many.
select proverq.wake_due()
