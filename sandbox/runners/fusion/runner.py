"""The runner for a SandboxFusion service. Programs run in the service, and expected values stay here.

A request is a self-contained script: the harness (``harness.py`` and the few files that it needs), one program and its
calls. The results come back on standard output, and in a file if they are long. This runner is weaker than
``LocalRunner`` in three points:

- Confinement is the service's task, and this runner knows nothing about it.
- The service is trusted to run the script and to return what the script wrote.
- If a program attacks the harness inside the service, the program's results can be lost, or its run can become an
  outage.
"""

import base64
import functools
import json
import logging
import random
import secrets
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...cases.case import Call
from ...confinement.clean_interpreter import CLEAN_ENVIRONMENT, PACKAGE_FOLDER
from ...errors import SandboxConfigError, SandboxUnavailableError
from ...limits import Limits
from ..base import HASH_SEEDS, Closing, Program, ProgramResult, Role, refuse_long_source, total_seconds
from .client import FusionClient, ServiceOutageError
from .progress import FusionProgress

logger = logging.getLogger(__name__)

MODULES = (
    "errors",
    "limits",
    "cases.case",
    "cases.needs",
    "confinement.rlimits",
    "values.literals",
    "values.encoding",
    "runners.stdin_program",
    "runners.child",
    "runners.base",
    "runners.clocks",
    "runners.forker",
    "runners.attempt",
    "runners.progress",
    "runners.fusion.harness",
)
"""Modules of this package that are sent to the service, in the order in which they are executed."""
STDOUT_BYTES = 48 << 10
"""Bytes of results on standard output. The others come in a file. The last lines must fit into a pipe, too, which holds
64 KiB."""
BACKOFF_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0
"""Pause before the second try, and the longest pause. Each further pause is twice as long as the one before."""
QUEUE_SECONDS = 60.0
"""Seconds that a response may take in addition to the run time of its script, because the service may be busy."""
_START_SECONDS = 10.0
"""Part of a script's run time that is reserved for the start of two interpreters before the program."""
_HARNESS_BYTES = 1 << 30
"""Memory for the harness, in addition to the program's memory."""
_BOOTSTRAP = """\
import os, sys
sys.path[:1] = []
if sys.argv[1:] != ["again"]:
    import resource
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20 if hard < 0 else min(8 << 20, hard), hard))
    kept = {{name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}}
    os.execve(sys.executable, [sys.executable, "-s", "-B", "-X", "utf8", sys.argv[0], "again"], kept | {environment!r})
import base64, enum, json, types, zlib
if lacks_str_enum := not hasattr(enum, "StrEnum"):  # Python 3.10
    class StrEnum(str, enum.Enum):
        __str__ = str.__str__
    enum.StrEnum = StrEnum
task = json.loads(zlib.decompress(base64.b64decode({task!r})))
files = json.loads(zlib.decompress(base64.b64decode({files!r})))
for name, text in files.items():
    full_name = "sandbox." + name
    package = full_name.rpartition(".")[0]
    while package:
        sys.modules.setdefault(package, types.ModuleType(package)).__path__ = []
        package = package.rpartition(".")[0]
    module = sys.modules[full_name] = types.ModuleType(full_name)
    module.__package__ = full_name.rpartition(".")[0]
    exec(compile(text, full_name.replace(".", "/") + ".py", "exec", dont_inherit=True), module.__dict__)
if lacks_str_enum:
    del enum.StrEnum
module.main(task)
"""
"""The script starts the interpreter a second time, because three things must be set before an interpreter starts: the
hash seed, a clean environment, and the stack size of threads. glibc takes this stack size from the limit of the main
thread."""
_ENVIRONMENT = {
    name: CLEAN_ENVIRONMENT[name]
    for name in ("HOME", "LANG", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX")
}


class SandboxFusionRunner(Closing):
    """Runs programs through a SandboxFusion service.

    Args:
        url: address of the service, for instance ``"http://localhost:8080"``.
        num_workers: maximum number of requests at once. Further callers wait.
        limits: limits for judges that set no limits. The harness enforces the limits inside the service.
        tries: number of failed requests in a row, for one program, that counts as an outage.

    Raises:
        SandboxConfigError: ``url`` is no address, or no SandboxFusion service answers there.
        SandboxUnavailableError: the service gives no usable answer.
    """

    confines = False
    """False, because this runner does not know how the service isolates programs."""

    def __init__(self, url: str, *, num_workers: int = 8, limits: Limits | None = None, tries: int = 5) -> None:
        for name, value in (("num_workers", num_workers), ("tries", tries)):
            if value < 1:
                raise SandboxConfigError(f"{name} must be at least 1, got {value!r}")
        self.url = url
        self.limits = limits if limits is not None else Limits()
        self._tries = tries
        self._client = FusionClient(url)
        self._slots = threading.Semaphore(num_workers)
        self._stdout_bytes = 0  # the result of the first program must come in a file
        try:
            self._greet()
        except BaseException:
            self.close()
            raise
        self._stdout_bytes = STDOUT_BYTES
        logger.info("sandbox url=%s workers=%d", url, num_workers)

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end; see ``Runner.run``."""
        started = time.monotonic()
        if refusal := refuse_long_source(program):
            return refusal
        progress = FusionProgress(program=program)
        num_failed = 0
        while not progress.is_done:
            num_known = progress.num_known
            try:
                self._request(progress, role)
                num_failed = 0
            except ServiceOutageError as error:
                # If a response was cut off, but brought some results, the count of failures starts again.
                num_failed = 1 if progress.num_known > num_known else num_failed + 1
                if error.is_final or num_failed >= self._tries:
                    raise SandboxUnavailableError(f"{self.url}, try {num_failed} of {self._tries}: {error}") from error
                logger.warning("%s, try %d of %d: %s", self.url, num_failed, self._tries, error)
                self._pause(num_failed)
        return progress.result(time.monotonic() - started)

    def close(self) -> None:
        """Close all connections. A run in progress raises an error. Idempotent."""
        self._client.close()

    def _greet(self) -> None:
        """Run a small program, so that a wrong url raises an error now and does not look like an outage later."""
        call = Call(expression="double(21)")
        program = Program(source="def double(n): return 2 * n", calls=(call,), limits=self.limits)
        try:
            result = self.run(program, role=Role.CANDIDATE)
        except SandboxUnavailableError as error:
            cause = error.__cause__
            if isinstance(cause, ServiceOutageError) and cause.is_final:
                raise SandboxConfigError(f"{error}; is this the address of a SandboxFusion service?") from error
            raise
        if [answer.value for answer in result.results] != [b"i2a;"]:
            raise SandboxConfigError(
                f"{self.url} does not run Python as it should: double(21) came to {result.results}, "
                f"load_error={result.load_error!r}; the service needs `python` 3.10 or newer on Linux"
            )

    def _request(self, progress: FusionProgress, role: Role) -> None:
        """Send one request with the calls that have no result yet, and read the response."""
        tag = secrets.token_hex(16)  # the tag is secret, because every line with it is accepted
        task = progress.task() | {"tag": tag, "hash_seed": HASH_SEEDS[role], "stdout_bytes": self._stdout_bytes}
        run_seconds = _START_SECONDS + 2 * total_seconds(progress.program)
        request = {
            "code": script(task),
            "language": "python",
            "run_timeout": run_seconds,
            "memory_limit_MB": (progress.program.limits.memory_bytes + _HARNESS_BYTES) >> 20,
            "fetch_files": [tag],
        }
        with self._slots:
            answer = self._client.run_code(request, seconds=run_seconds + QUEUE_SECONDS)
        progress.read(answer, tag=tag)

    def _pause(self, num_failed: int) -> None:
        seconds = BACKOFF_SECONDS * 2 ** (num_failed - 1) * random.uniform(0.5, 1.0)
        if self._client.closed.wait(min(seconds, MAX_WAIT_SECONDS)):
            raise SandboxUnavailableError("the runner is closed")


def script(task: Mapping[str, Any]) -> str:
    """Return the source of a request's script. The script is pure ASCII, because the program is packed as data."""
    environment = _ENVIRONMENT | {"PYTHONHASHSEED": str(task["hash_seed"])}
    return _BOOTSTRAP.format(task=_pack(task), files=_harness_files(), environment=environment)


def _pack(data: Mapping[str, Any]) -> str:
    """Return plain data as ASCII text. JSON escapes lone surrogates."""
    return base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()


@functools.cache
def _harness_files() -> str:
    texts = {}
    for name in MODULES:
        path = Path(PACKAGE_FOLDER, *name.split(".")).with_suffix(".py")
        texts[name] = path.read_text(encoding="utf-8")
    return _pack(texts)
