"""Fixtures shared by all tests."""

import functools
import gc
import io
import logging
import os
import pickle
import random
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import omegaconf.base
import pytest
import yaml
from hypothesis import settings
from omegaconf import OmegaConf

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason, SuiteVerdict

REPOSITORY = Path(__file__).resolve().parent.parent

# How long an example takes says something about the machine, not about the code.
settings.register_profile("ordinary", deadline=None, max_examples=50)
settings.register_profile("all", deadline=None, max_examples=200)

# Hundreds of tests compose a configuration of the same thirty files with a few kinds of interpolations. Parsing both
# took most of the time.
omegaconf.base.parse = functools.cache(omegaconf.base.parse)
_load = OmegaConf.load


@functools.cache
def _parsed(text: str) -> bytes:
    return pickle.dumps(_load(io.StringIO(text)))


def _load_once(file: Any) -> Any:
    text = file.read() if hasattr(file, "read") else Path(file).read_text(encoding="utf-8")
    try:
        return pickle.loads(_parsed(text))
    except yaml.YAMLError:  # its message names the file
        return _load(getattr(file, "name", file))


OmegaConf.load = staticmethod(_load_once)

# What a shell starts in the background ignores interrupts, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

OWN_PACKAGES = ("code_a1_recipe", "reward_fns", "sandbox")


@pytest.fixture(autouse=True)
def own_loggers(caplog: pytest.LogCaptureFixture) -> None:
    """Let our loggers warn, whatever another test of the process has imported.

    Importing vLLM or verl raises the levels of the root logger and of its handlers, and disables older loggers.
    """
    caplog.handler.setLevel(logging.NOTSET)
    for package in OWN_PACKAGES:
        logging.getLogger(package).setLevel(logging.WARNING)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith(OWN_PACKAGES) and isinstance(logger, logging.Logger):
            logger.disabled = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="tests marked nightly too; 200 examples of a property, not 50")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--all") else "ordinary")
    # The user's cache must not decide a test. Processes of pytest-xdist inherit the folder, and share what is made.
    if "CODE_A1_CACHE" not in os.environ:
        cache = tempfile.TemporaryDirectory(prefix="code-a1-cache-")
        os.environ["CODE_A1_CACHE"] = cache.name
        config.add_cleanup(cache.cleanup)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked nightly, unless all is asked for."""
    if config.getoption("--all"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=nightly)
    items[:] = [item for item in items if item not in nightly]


def pytest_collection_finish() -> None:
    """Hide what is imported by now from the garbage collector, which walks a million objects of torch and verl."""
    gc.freeze()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of development data beside the checkout; skips where there is none."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the development data in {folder}, which is not part of the project")
    return folder


@pytest.fixture(scope="session")
def share_of(pytestconfig: pytest.Config) -> Callable[[Sequence[Any], int], Sequence[Any]]:
    """``share_of(rows, number)``: so many of them, the same each time; with ``--all`` every row."""

    def choose(rows: Sequence[Any], number: int) -> Sequence[Any]:
        return rows if pytestconfig.getoption("--all") else random.Random(0).sample(rows, number)

    return choose


@pytest.fixture(scope="session")
def make_case() -> Callable[..., CaseResult]:
    """A valid case the candidate passed; tests state only what differs."""

    def build(**changes: object) -> CaseResult:
        fields = {
            "call": "f(0)",
            "reference_value": "1",
            "expected": "1",
            "expected_correct": True,
            "outcome": CaseOutcome.PASSED,
        }
        return CaseResult(**(fields | changes))

    return build


@pytest.fixture(scope="session")
def make_suite(make_case: Callable[..., CaseResult]) -> Callable[..., SuiteVerdict]:
    """A suite of ``num_valid`` distinct cases; the first ones fail, the last ones claim wrongly."""

    def build(
        num_valid: int = 0,
        *,
        num_failed: int = 0,
        num_expected_incorrect: int = 0,
        num_rejected: int = 0,
        outcome: CaseOutcome = CaseOutcome.WRONG_VALUE,
    ) -> SuiteVerdict:
        cases = tuple(
            make_case(
                call=f"f({index})",
                expected_correct=index < num_valid - num_expected_incorrect,
                outcome=outcome if index < num_failed else CaseOutcome.PASSED,
            )
            for index in range(num_valid)
        )
        rejection = Rejection(text="assert f(", reason=RejectionReason.UNPARSABLE)
        return SuiteVerdict(cases=cases, rejections=(rejection,) * num_rejected)

    return build


@pytest.fixture(scope="session")
def make_verdict(make_suite: Callable[..., SuiteVerdict]) -> Callable[..., CandidateVerdict]:
    """A loaded candidate with the given suites and ``num_history`` replays, the first of them failed."""

    def build(
        *suites: SuiteVerdict, num_history: int = 0, num_history_failed: int = 0, loaded: bool = True
    ) -> CandidateVerdict:
        return CandidateVerdict(
            loaded=loaded,
            load_error="" if loaded else "SyntaxError",
            suites=suites,
            history=make_suite(num_history, num_failed=num_history_failed).cases,
            dropped_history=(),
            cpu_seconds=0.0,
            wall_seconds=0.0,
        )

    return build
