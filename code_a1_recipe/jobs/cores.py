"""The number of CPUs that this process may use. ``os.cpu_count`` tells how many the machine has."""

import math
import os
from pathlib import Path

# Control groups of version 2 keep quota and period in one file, control groups of version 1 in two.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def usable_cores() -> int:
    """Count the CPUs of this process's affinity, but no more than its container's quota, rounded up; at least 1."""
    files = [_QUOTA] if _QUOTA.is_file() else _OLD_QUOTA
    words = [word for path in files if path.is_file() for word in path.read_text().split()]
    cores = len(os.sched_getaffinity(0))
    match words:
        # Without a quota it is "max" or -1, which are no decimal digits.
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)
