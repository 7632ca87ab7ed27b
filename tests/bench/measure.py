#!/usr/bin/env python3
"""Runs a command; prints its wall time in seconds and its peak memory in MB: measure.py COMMAND ..."""
import os
import sys
import time

start = time.monotonic()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ,
                      file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(f"{time.monotonic() - start:.3f} {usage.ru_maxrss / 1024:.0f}")
sys.exit(os.waitstatus_to_exitcode(status) != 0)
