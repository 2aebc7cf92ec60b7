"""Coverage-guided fuzzing of one target with atheris: ``python coverage_guided.py TARGET [libFuzzer options]``.

This command needs the ``fuzz`` extra. An option without a dash names the folder that keeps new inputs, for example

    python tests/fuzz/coverage_guided.py decoder /tmp/decoder -max_total_time=1800 -timeout=20 -rss_limit_mb=2048

A broken promise, a time-out or too much memory stops the run and writes the input to the working directory. Add
the input's bytes in hexadecimal to ``seeds/TARGET.hex``, so that ``test_fuzz_targets.py`` always replays the input.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sandbox", "reward_fns"]):
    import targets


def main() -> None:
    name = sys.argv[1]
    entry = targets.TARGETS[name]
    options = sys.argv[2:]
    folders = [Path(option) for option in options if not option.startswith("-")]
    for folder in folders[:1]:
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate([*targets.valid_inputs(name), *targets.saved_inputs(name)]):
            (folder / f"seed-{number}").write_bytes(data)
    atheris.Setup([sys.argv[0], *options], entry)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
