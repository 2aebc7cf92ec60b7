"""Tiers of confinement, and a probe that finds out which tiers work on this machine.

====  =====================================================================  ==================================
tier  what it is                                                             what it needs
====  =====================================================================  ==================================
0     rlimits, no_new_privs, Landlock, seccomp, credentials; programs        Linux 5.13 (Landlock); works in a
      write no file                                                          default container, without privileges
1     tier 0 in user, mount, pid, network, ipc and uts namespaces, in a      Linux 5.12, and user namespaces or
      root that holds only the readable paths; a private folder for files    CAP_SYS_ADMIN
====  =====================================================================  ==================================
"""

import functools
import os
import subprocess
from dataclasses import dataclass

from ..errors import SandboxConfigError
from .clean_interpreter import CLEAN_ENVIRONMENT, clean_interpreter
from .jail import missing_features, readable_paths, reason_missing
from .namespaces import Namespaces, plan_layout

LOCAL_TIERS = (0, 1)
TIER_MEANINGS = {
    0: "rlimits, no_new_privs, Landlock, seccomp; programs write no file",
    1: "tier 0 in user, mount, pid, network, ipc and uts namespaces; a private folder for files",
}
_PROBE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TierState:
    """State of one tier on this machine."""

    tier: int
    reason: str
    """Reason why the tier does not work, with a hint. Empty if the tier works."""

    @property
    def is_available(self) -> bool:
        return not self.reason


def check_tier(tier: int) -> None:
    """Raise an error if a number is no tier of a local runner.

    Raises:
        SandboxConfigError: ``tier`` is not in ``LOCAL_TIERS``.
    """
    if isinstance(tier, bool) or tier not in LOCAL_TIERS:
        raise SandboxConfigError(f"tier must be one of {list(LOCAL_TIERS)}, got {tier!r}")


@functools.cache
def probe() -> tuple[TierState, ...]:
    """Try every local tier. The result is cached, because each trial starts an interpreter."""
    lacks_tier_0 = "; ".join(reason_missing(name) for name in missing_features())
    return (TierState(tier=0, reason=lacks_tier_0), TierState(tier=1, reason=_lacks_tier_1()))


def _lacks_tier_1() -> str:
    try:
        done = subprocess.run(
            clean_interpreter("from sandbox.confinement.tiers import try_tier_1; try_tier_1()"),
            env=CLEAN_ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip()[-1000:]
    return said or f"the trial ended with status {done.returncode}"


def try_tier_1() -> None:
    """Enter namespaces, enter a scratch folder in a child, and exit. This function must run in a new interpreter."""
    try:
        scratch = Namespaces().enter_root(plan_layout(readable_paths()))
        pid = os.fork()
        if pid == 0:
            message = b""
            try:
                scratch.enter(size_bytes=1 << 16, num_files=4, uid=os.geteuid(), gid=os.getegid())
            except OSError as error:
                message = str(error).encode()
            os.write(2, message)
            os._exit(bool(message))
        _, status = os.waitpid(pid, 0)
    except OSError as error:
        raise SystemExit(str(error)) from error
    raise SystemExit(os.waitstatus_to_exitcode(status))
