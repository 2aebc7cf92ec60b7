"""The command that starts a fork server inside bubblewrap (tier 2).

bubblewrap makes a root directory that holds only the readable paths, the interpreter and this package. It has no
network. The fork server then sets up tier 1 inside it. If our own code for namespaces has a mistake, a program must
still break out of bubblewrap, which thousands of machines rely on.
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
    """Return the command line that runs ``command`` inside bubblewrap.

    Args:
        command: the Python interpreter, and its arguments.
        readable: more paths that programs may read.

    Raises:
        SandboxConfigError: bubblewrap is not installed.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxConfigError(
            "tier 2 does not work here: bubblewrap (bwrap) is not installed. Hint: install the package "
            "'bubblewrap' of the distribution; or ask for tier 1 or 0"
        )
    paths = [*readable_paths(readable), sys.executable, PACKAGE_FOLDER]
    if os.path.exists(SLEEPER):
        paths.append(SLEEPER)
    layout = plan_layout(paths)
    arguments = ["--unshare-ipc", "--unshare-net", "--unshare-uts", "--cap-add", "ALL"]
    if not may_mount():
        arguments.append("--unshare-user")
    for path in layout.binds:
        # A device works only if --dev-bind binds it. The paths include three harmless devices and no other.
        option = "--dev-bind" if path.startswith("/dev/") else "--ro-bind"
        arguments += [option, path, path]
    for link, target in layout.links:
        arguments += ["--symlink", target, link]
    # --die-with-parent is left out, because the kernel would kill bubblewrap when the thread that started it ends.
    # --unshare-pid is left out, because the fork server must report the pids that its parent sees.
    arguments += ["--bind", "/proc", "/proc", "--remount-ro", "/", "--chdir", "/"]
    return [program, *arguments, "--", *command]


def explain(said: str) -> str | None:
    """Return bubblewrap's error message with a hint, or None if ``said`` does not end with such a message."""
    last = said.strip().rpartition("\n")[2]
    if not last.startswith(f"{PROGRAM}:"):
        return None
    return f"tier 2 does not work here: {last}. Hint: {HINTS['unshare']}; or ask for tier 1 or 0"
