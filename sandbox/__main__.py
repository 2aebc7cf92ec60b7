"""Command line: ``python -m sandbox check``, ``judge FILE.json`` and ``serve``."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .checks.self_test import LIMITS, SELF_TEST
from .confinement.jail import OPTIONAL_FEATURES, UID_POLICY_MEANINGS, landlock_abi, missing_features
from .confinement.tiers import LOCAL_TIERS, TIER_MEANINGS, probe
from .errors import SandboxConfigError, SandboxUnavailableError
from .judge.process_pool import JudgeProcesses, WorkerSettings
from .judge.request import JudgeRequest
from .limits import Limits
from .runners.base import Runner
from .runners.fusion.runner import SandboxFusionRunner
from .runners.local.runner import LocalRunner
from .service.server import JudgeService, ServiceSettings

_SHORT = {"gt": "reference", "code": "candidate"}
_READ_KEYS = {"tests", *(field.name for field in dataclasses.fields(JudgeRequest))}
"""Keys of an item that become fields of its request. Other keys, which data sets often have, are ignored."""
EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    The status is 0 for success and 2 for wrong input. The status is 1 if the sandbox does not work, or if a self-test
    fails.
    """
    options = _parser().parse_args(arguments)
    try:
        exit_status: int = options.run(options)
        return exit_status
    except SandboxConfigError as error:
        print(f"error: {error}", file=sys.stderr)
    except SandboxUnavailableError as error:
        print(f"the sandbox is unavailable: {error}", file=sys.stderr)
    except BrokenPipeError:
        # The process that reads our output has ended, as in `... | head`. The interpreter flushes standard output at
        # its exit. Without the next line, this flush would raise an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="show how this machine confines programs, and run the self-tests")
    check.add_argument("--url", help="test the SandboxFusion service at this address instead of this machine")
    judge = commands.add_parser(
        "judge",
        help="judge items {id, reference, candidate, tests} of a JSON list or JSON lines; an item may have any field "
        "of JudgeRequest",
    )
    judge.add_argument("file", help="input file; '-' reads standard input")
    serve = commands.add_parser("serve", help="serve the judge over HTTP; clients send the token in SANDBOX_TOKEN")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8080, help="port to listen on; 0 takes a free port (default 8080)")
    serve.add_argument(
        "--places",
        type=int,
        default=64,
        help="most requests at once, including those that wait for a worker (default 64)",
    )
    serve.add_argument("--max-body-bytes", type=int, default=4 << 20, help="longest body of a request (default 4 MiB)")
    serve.add_argument("--seconds", type=float, default=10.0, help="most CPU seconds of a /run_code (default 10)")
    for command, run in ((check, _check), (judge, _judge), (serve, _serve)):
        command.set_defaults(run=run)
        command.add_argument(
            "--workers",
            type=int,
            default=1,
            help="number of programs that run at once, or of processes that judge (default 1)",
        )
        command.add_argument("--tier", type=int, default=0, choices=LOCAL_TIERS, help="confinement (default 0)")
        command.add_argument(
            "--allow-missing",
            action="append",
            default=[],
            choices=OPTIONAL_FEATURES,
            help="accept that this kernel lacks a protection",
        )
    return parser


def _check(options: argparse.Namespace) -> int:
    if options.url:
        with SandboxFusionRunner(options.url, num_workers=options.workers, limits=LIMITS) as service:
            return _self_test(service)
    with LocalRunner(num_workers=options.workers, **_confinement(options)) as runner:
        _show_confinement(runner)
        return _self_test(runner)


def _show_confinement(runner: LocalRunner) -> None:
    print(f"tier       {runner.tier}: {TIER_MEANINGS[runner.tier]}")
    for state in probe():
        print(f"tier {state.tier}     {state.reason or 'works here'}")
    kernel = os.uname()
    print(f"kernel     {kernel.sysname} {kernel.release} {kernel.machine}")
    present = {"landlock": f"yes, ABI {landlock_abi()}", "seccomp": "yes"}
    missing = missing_features()
    for name in OPTIONAL_FEATURES:
        print(f"{name:<10} {'MISSING, accepted by --allow-missing' if name in missing else present[name]}")
    print(f"uid        {runner.uid_policy}: {UID_POLICY_MEANINGS[runner.uid_policy]}")
    for note in runner.notes:
        print(f"           {note}")
    for field in dataclasses.fields(Limits):
        print(f"limit      {field.name} = {getattr(runner.limits, field.name)}")


def _self_test(runner: Runner) -> int:
    """Run the checks that apply to the runner."""
    checks = [check for check in SELF_TEST if not check.not_applicable(runner)]
    num_passed = 0
    for check in checks:
        statement = check.name.replace("_", " ")
        if failure := check.failure(runner):
            print(f"FAIL       {statement}: {failure}")
        else:
            num_passed += 1
            print(f"ok         {statement}")
    print(f"{num_passed} of {len(checks)} self-tests passed")
    return EXIT_OK if num_passed == len(checks) else EXIT_FAILED


def _read_items(path: str) -> list[tuple[Any, JudgeRequest]]:
    """Read the input file of ``judge``.

    Returns:
        A pair for each item: its id, or its position in the file; and its request.

    Raises:
        ValueError: the file cannot be read, or holds a wrong item.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            entries = json.loads(text)
        else:
            # `splitlines` would also split at special line separators, which a JSON string may contain without escapes.
            entries = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"cannot read {path}: {error}; it must hold a JSON list, or one JSON object in each line"
        ) from error
    items = []
    for position, entry in enumerate(entries):
        try:
            items.append(_read_item(entry, position))
        except ValueError as error:
            raise ValueError(f"{path}: item {position}: {error}") from error
    return items


def _read_item(entry: Any, position: int) -> tuple[Any, JudgeRequest]:
    if not isinstance(entry, dict):
        JudgeRequest.from_mapping(entry)  # raises a ValueError that describes the mistake
    named = {_SHORT.get(key, key): value for key, value in entry.items()}
    request = JudgeRequest.from_mapping({key: named[key] for key in _READ_KEYS & named.keys()})
    return named.get("id", named.get("question_id", str(position))), request


def _judge(options: argparse.Namespace) -> int:
    try:
        items = _read_items(options.file)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    with JudgeProcesses(options.workers, settings=WorkerSettings(runner=_confinement(options))) as judges:
        verdicts = judges.judge_all([request for _, request in items])
        for (name, _), verdict in zip(items, verdicts, strict=True):
            if isinstance(verdict, SandboxUnavailableError):
                # Without this error, verdicts on a part of the file would look like verdicts on the whole file.
                raise verdict
            cases = [case for suite in verdict.suites for case in suite.cases]
            line = {
                "id": name,
                "valid": len(cases),
                "expected_correct": sum(case.expected_correct for case in cases),
                "passed": sum(not case.outcome.failed for case in cases),
                "outcomes": [case.outcome.value for case in cases],
            }
            if verdict.load_error:
                line["load_error"] = verdict.load_error
            rejections = [dataclasses.asdict(rejection) for suite in verdict.suites for rejection in suite.rejections]
            if rejections:
                line["rejections"] = rejections
            print(json.dumps(line), flush=True)
    return EXIT_OK


def _confinement(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ``LocalRunner`` that decide how programs are confined."""
    return {"tier": options.tier, "allow_missing": options.allow_missing}


def _serve(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    token, host = os.environ.get("SANDBOX_TOKEN", ""), options.host
    # Without a token everybody who reaches the port could run programs here.
    if not token and host not in ("127.0.0.1", "localhost"):
        raise SandboxConfigError(f"other machines can reach --host {host}: set SANDBOX_TOKEN, which clients must send")
    if min(options.places, options.max_body_bytes) < 1 or not 0 < options.seconds < 1e6:
        got = f"got {options.places}, {options.max_body_bytes} and {options.seconds}"
        raise SandboxConfigError(
            f"--places and --max-body-bytes must be at least 1, --seconds above 0 and below 1e6; {got}"
        )
    settings = ServiceSettings(
        host=host,
        port=options.port,
        token=token,
        max_places=options.places,
        max_body_bytes=options.max_body_bytes,
    )
    limits = dataclasses.replace(Limits(), cpu_seconds_per_case=options.seconds, total_seconds=3 * options.seconds)
    with (
        LocalRunner(num_workers=options.workers, limits=limits, **_confinement(options)) as runner,
        JudgeProcesses(options.workers, settings=WorkerSettings(runner=_confinement(options))) as judges,
        JudgeService(settings, judges=judges, runner=runner) as service,
    ):
        print(f"http://{host}:{service.server_port}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            service.serve_forever()
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
