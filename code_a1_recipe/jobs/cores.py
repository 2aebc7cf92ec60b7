"""The number of CPUs that this process may use. ``os.cpu_count`` counts all CPUs of the machine, which may be more."""

import math
import os
from pathlib import Path

# Control groups of version 2 have quota and period in one file, control groups of version 1 in two files.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def usable_cores() -> int:
    """Count the CPUs that this process may use. A container's quota is an upper limit, and is rounded up."""
    cores = len(os.sched_getaffinity(0))
    words = []
    for path in [_QUOTA] if _QUOTA.is_file() else _OLD_QUOTA:
        if path.is_file():
            words += path.read_text().split()
    if len(words) == 2 and all(map(str.isdecimal, words)):  # without a quota, the text is "max" or "-1"
        quota, period = map(int, words)
        if period:
            cores = min(cores, math.ceil(quota / period))
    return max(1, cores)
