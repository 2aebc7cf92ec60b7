"""Run a tool on a program in-process, confined: no network, an unprivileged user, a scratch folder, bounded resources.

Weaker than the sandbox, whose tiers leave a tool neither threads nor files: the process can read what every user of the
machine can read. It is meant for references and mutants of them, not for programs that a model wrote.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from code_a1_recipe.errors import InputError

NOBODY = 65534
MEMORY_BYTES = 2 << 30
FILE_BYTES = 16 << 20
EXTRA_CPU_SECONDS = 4
"""Between the budget, which a tool keeps by itself, and the kernel's limit of one process."""
WALL_PER_CPU_SECOND, EXTRA_WALL_SECONDS = 6, 30
PROGRAMS = ("unshare", "setpriv", "prlimit")
# The interpreter may lie in a home that only its owner can enter: that home is hidden but for the interpreter.
_BARE_HOME = (
    "mount -t tmpfs -o mode=755 tmpfs /mnt && mkdir -p /mnt/python && mount --bind {python} /mnt/python && "
    "mount -t tmpfs -o mode=755 tmpfs {home} && mkdir -p {python} && mount --bind /mnt/python {python} && "
    "umount /mnt/python && umount /mnt && exec {command}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What a confined tool printed and used."""

    output: str
    errors: str
    """The end of its standard error."""
    exit_status: int
    """-n of signal n, 128 + n where a process below had it."""
    cpu_seconds: float
    """User and system time of all of its processes, start-up included."""


def run_confined(
    python: Path, words: Sequence[str], *, files: Mapping[str, str], cpu_seconds: float, confinement: str = "namespaces"
) -> ToolRun:
    """Run an interpreter in a scratch folder with copies of ``files``, which is removed afterwards.

    Args:
        python: the interpreter.
        words: its arguments; relative paths are of the scratch folder.
        files: name -> text.
        cpu_seconds: the budget; the kernel ends a process ``EXTRA_CPU_SECONDS`` later.
        confinement: "namespaces", or "limits": rlimits alone, for tests on programs of one's own.

    Raises:
        InputError: a program that confines is missing, or the kernel refuses what it does.
    """
    with tempfile.TemporaryDirectory(prefix="baseline-") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8", errors="surrogatepass")
        command = [*limits(cpu_seconds), str(python), *words]
        if confinement == "namespaces":
            command = in_namespaces(command, python)
            os.chown(folder, NOBODY, NOBODY)
        return _run(command, Path(folder), wall_seconds=WALL_PER_CPU_SECOND * cpu_seconds + EXTRA_WALL_SECONDS)


def limits(cpu_seconds: float) -> list[str]:
    """The part of a command that bounds what it may use."""
    cpu = int(cpu_seconds) + EXTRA_CPU_SECONDS
    return ["prlimit", f"--cpu={cpu}", f"--as={MEMORY_BYTES}", f"--fsize={FILE_BYTES}", "--core=0", "--"]


def in_namespaces(command: Sequence[str], python: Path) -> list[str]:
    """The command as an unprivileged user without network, other processes, or the homes of the interpreter's owner.

    Raises:
        InputError: this user cannot do that, or a program is missing.
    """
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise InputError(f"the tools need {missing[0]} (util-linux) to be confined, which is not installed; install it")
    if os.geteuid() != 0:
        raise InputError(
            f"the tools need a user that may drop rights (root of a machine or container), got user {os.geteuid()}; "
            "run the command in a container"
        )
    user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    inner = ["setpriv", *user, *command]
    base = python.resolve().parents[1]
    home = next((one for one in [*base.parents][::-1] if not one.stat().st_mode & 0o001), None)
    if home is not None:
        script = _BARE_HOME.format(
            python=shlex.quote(str(base)), home=shlex.quote(str(home)), command=shlex.join(inner)
        )
        inner = ["sh", "-c", script]
    return ["unshare", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", *inner]


def _run(command: Sequence[str], folder: Path, *, wall_seconds: float) -> ToolRun:
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    with Path(folder, "out").open("w+b") as output, Path(folder, "err").open("w+b") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        timer = threading.Timer(wall_seconds, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)  # with it the usage of what it waited for
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for handle in (output, errors):
            handle.seek(0)
            texts.append(handle.read(FILE_BYTES).decode("utf-8", "replace"))
    if process.returncode and any(f"{name} failed" in texts[1] for name in ("unshare", "mount", "setresuid")):
        raise InputError(f"the kernel must allow namespaces here, got {texts[1].strip()[:200]!r}; run it where it does")
    return ToolRun(
        output=texts[0],
        errors=texts[1][-2_000:],
        exit_status=process.returncode,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
    )


def interpreter(python: Path | None) -> Path:
    """The interpreter of the command line, or this one.

    Raises:
        InputError: there is none at the path.
    """
    found = python or Path(sys.executable)
    if not found.is_file() or not os.access(found, os.X_OK):
        raise InputError(f"--python must be an interpreter, got {found}; name the one of the tool's environment")
    return found.absolute()
