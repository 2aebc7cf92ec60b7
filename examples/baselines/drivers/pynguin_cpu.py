"""Pynguin with a clock that counts CPU seconds, so that a busy machine takes nothing from its search.

``python pynguin_cpu.py FOLDER MODULE CPU_SECONDS SEED``; prints the test file. Start-up counts.
"""

import os
import sys
import time
from pathlib import Path

EXPORT_SECONDS = 0.7
"""Kept back of the budget for minimising and writing what the search found."""


def main(folder, module, cpu_seconds, seed):
    """Search, then print the tests."""
    time.time_ns = time.process_time_ns  # what its limit of the search looks at
    os.environ["PYNGUIN_DANGER_AWARE"] = "1"  # confined by the parent
    from pynguin.cli import main as pynguin

    left = int(max(1.0, round(cpu_seconds - time.process_time() - EXPORT_SECONDS)))
    pynguin(
        f"pynguin --project-path {folder} --module-name {module} --output-path {folder} --seed {seed} "
        f"--maximum-search-time {left} --assertion-generation NONE --no-rich".split()
    )
    for path in sorted(Path(folder).glob("test_*.py")):
        print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    folder, module, cpu_seconds, seed = sys.argv[1:]
    main(folder, module, float(cpu_seconds), int(seed))
