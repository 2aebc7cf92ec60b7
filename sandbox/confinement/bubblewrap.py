"""The command line that puts bubblewrap around a fork server: what tier 2 adds to tier 1.

bubblewrap builds the first wall: a root with the readable paths, the interpreter and this package,
without a network. The fork server then builds tier 1 inside of it. So a mistake in our own handling of
namespaces meets a program that thousands of machines rely on.
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
    """The command, run by bubblewrap in a root that holds little else.

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
        # Devices keep working only as device binds; nothing but the three harmless ones is among the paths.
        arguments += ["--dev-bind" if path.startswith("/dev/") else "--ro-bind", path, path]
    for link, target in layout.links:
        arguments += ["--symlink", target, link]
    # No --die-with-parent: the kernel means the thread that started it. No --unshare-pid: pids must be the parent's.
    arguments += ["--bind", "/proc", "/proc", "--remount-ro", "/", "--chdir", "/"]
    return [program, *arguments, "--", *command]


def explain(said: str) -> str | None:
    """Explain what bubblewrap said before it gave up, and what helps; None where somebody else said it."""
    last = said.strip().rpartition("\n")[2]
    if not last.startswith(f"{PROGRAM}:"):
        return None
    return f"tier 2 does not work here: {last}. Hint: {HINTS['unshare']}; or ask for tier 1 or 0"
