"""A service with SandboxFusion's API in a process of its own."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.conformance.runner_contract")
SERVICE = Path(__file__).parent / "services" / "fusion_service.py"


class FusionService:
    """The running service, and the handle by which a test makes it misbehave."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def misbehave(self, *faults: str) -> None:
        """The next requests meet these faults, one each."""
        body = json.dumps({"faults": faults}).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/control", body, headers), timeout=30):
            pass

    def seen(self) -> dict:
        """What came in since the last look: ``requests`` (bodies) and ``most_at_once``."""
        with urllib.request.urlopen(f"{self.url}/requests", timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="package")
def fusion_service() -> Iterator[FusionService]:
    """The service. Runners wait a moment only before they ask it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sandbox.runners.fusion.runner.BACKOFF_SECONDS", 0.01)
        yield from _started()


def _started() -> Iterator[FusionService]:
    process = subprocess.Popen([sys.executable, str(SERVICE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    service = FusionService(process, int(process.stdout.readline()))
    yield service
    service.stop()
