-- The shortcuts of .psqlrc.
\echo ':jobs      the latest jobs              :why       why job :j is not moving      (\\set j 7)'
\echo ':failed    partitions that failed       :job       all that happened to job :j'
\echo ':provers   the provers of now           :waits     what the jobs of the last 5 minutes waited for'
\echo ':webhooks  the latest deliveries        :steps     how long each step takes'
\echo ':busy      devices, second by second    :gaps      what the devices waited for'
\echo ':workers   what the GPU workers did     :longest   the longest times in which a device did nothing'
\echo ':alerts    what needs attention'
