"""Command line that puts bubblewrap around a fork server (tier 2).

bubblewrap makes a root with the readable paths, the interpreter and this package, without a network. The fork server
then builds tier 1 inside it. If our own handling of namespaces has a mistake, programs still have to break
bubblewrap, which thousands of machines rely on.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

from ..errors import SandboxConfigError
from .clean_interpreter import PACKAGE_FOLDER
from .jail import readable_paths
from .namespaces import HINTS, SLEEPER, may_mount, plan_layout

PROGRAM = "bwrap"


def wrap(command: Sequence[str], *, readable: Iterable[str] = ()) -> list[str]:
    """Return the command line that runs a command in bubblewrap's small root.

    Args:
        command: this interpreter and its arguments.
        readable: further paths that programs may read.

    Raises:
        SandboxConfigError: bubblewrap is not installed.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxConfigError(
            "tier 2 does not work here: bubblewrap (bwrap) is not installed. Hint: install the package "
            "'bubblewrap' of the distribution; or ask for tier 1 or 0"
        )
    layout = plan_layout(
        (*readable_paths(readable), sys.executable, PACKAGE_FOLDER, *filter(os.path.exists, [SLEEPER]))
    )
    arguments = ["--unshare-ipc", "--unshare-net", "--unshare-uts", "--cap-add", "ALL"]
    if not may_mount():
        arguments.append("--unshare-user")
    for path in layout.binds:
        # Devices work only in device binds. The paths include only three harmless devices.
        arguments += ["--dev-bind" if path.startswith("/dev/") else "--ro-bind", path, path]
    for link, target in layout.links:
        arguments += ["--symlink", target, link]
    # Not --die-with-parent, because the kernel would wait for the end of the thread that started bubblewrap. Not
    # --unshare-pid, because the fork server must report the pids that its parent sees.
    arguments += ["--bind", "/proc", "/proc", "--remount-ro", "/", "--chdir", "/"]
    return [program, *arguments, "--", *command]


def explain(said: str) -> str | None:
    """Explain an error message of bubblewrap and what helps. Return None if the message is not bubblewrap's."""
    last = said.strip().rpartition("\n")[2]
    if not last.startswith(f"{PROGRAM}:"):
        return None
    return f"tier 2 does not work here: {last}. Hint: {HINTS['unshare']}; or ask for tier 1 or 0"
