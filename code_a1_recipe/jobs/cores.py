"""How many CPUs this process may use; ``os.cpu_count`` says how many the machine has."""

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def usable_cores() -> int:
    """CPUs of this process's affinity, or of its container's quota, rounded up, where that is less; at least 1."""
    files = [_QUOTA] if _QUOTA.is_file() else _OLD_QUOTA
    words = [word for path in files if path.is_file() for word in path.read_text().split()]
    cores = len(os.sched_getaffinity(0))
    match words:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):  # else "max", or -1
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)
