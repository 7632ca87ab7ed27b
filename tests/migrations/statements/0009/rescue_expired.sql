-- Takes away the leases that have expired; gives how many.
select proverq.rescue_expired()
