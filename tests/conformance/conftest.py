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

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def misbehave(self, *faults: str) -> None:
        """Let each of the next requests meet one of these faults."""
        body = json.dumps({"faults": faults}).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/control", body, headers), timeout=30):
            pass

    def seen(self) -> dict:
        """Return ``requests`` (bodies) and ``most_at_once`` since the last look."""
        with urllib.request.urlopen(f"{self.url}/requests", timeout=30) as answer:
            return json.load(answer)


@pytest.fixture(scope="package")
def fusion_service() -> Iterator[FusionService]:
    """Start the service. Runners wait only a moment before they ask it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sandbox.runners.fusion.runner.BACKOFF_SECONDS", 0.01)
        command = [sys.executable, str(SERVICE)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield FusionService(int(process.stdout.readline()))
            process.communicate()  # the service ends when its standard input closes
