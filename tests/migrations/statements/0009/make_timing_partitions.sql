-- Makes the timing tables of today and the $1 days after it; gives how many were missing.
select proverq.make_timing_partitions($1::int)
