"""What coverage.py measures of a module in a plain process, through its public interface."""

import json
import subprocess
import sys

SCRIPT = """
import contextlib, json, sys, types
import coverage

path, prelude, calls = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
module = types.ModuleType("plain")
exec(prelude, module.__dict__)
recorder = coverage.Coverage(data_file=None, branch=True, config_file=False, include=[path])
with recorder.collect():
    exec(compile(open(path).read(), path, "exec"), module.__dict__)
    for call in calls:
        with contextlib.suppress(Exception):
            eval(call, module.__dict__)
_, statements, _, missing, _ = recorder.analysis2(path)
stats = recorder.branch_stats(path).values()
print(json.dumps([statements, missing, sum(a for a, _ in stats), sum(b for _, b in stats)]))
"""


def plain_coverage(source, calls, folder, *, prelude=""):
    """Lines that count, those of them that no call ran, number of branches, number of those taken."""
    path = folder / "plain.py"
    path.write_text(source)
    command = [sys.executable, "-c", SCRIPT, str(path), prelude, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(done.stdout)
