"""Command line: ``python -m sandbox check``, ``judge FILE.json``, ``control FILE.json`` and ``serve``."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .checks.control import control_programs, passes_all
from .checks.self_test import LIMITS, SELF_TEST
from .confinement.jail import OPTIONAL_FEATURES, UID_POLICY_MEANINGS, landlock_abi, missing_features
from .confinement.tiers import LOCAL_TIERS, TIER_MEANINGS, probe
from .errors import SandboxConfigError, SandboxUnavailableError
from .judge.process_pool import JudgeProcesses, WorkerSettings
from .judge.request import JudgeRequest
from .judge.verdict import CandidateVerdict
from .limits import Limits
from .runners.base import Runner
from .runners.fusion.runner import SandboxFusionRunner
from .runners.local.runner import LocalRunner
from .service.server import JudgeService, ServiceSettings

_SHORT = {"gt": "reference", "code": "candidate"}
_READ = {"tests", *(field.name for field in dataclasses.fields(JudgeRequest))}
"""Fields of an item that are read. Corpora say more of their entries."""
EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0 done, 1 the sandbox fails, 2 the input is wrong."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="what this machine's sandbox confines, and a self-test")
    check.add_argument("--url", help="test the SandboxFusion service at this address instead of this machine")
    judge = commands.add_parser(
        "judge",
        help="judge a JSON list, or lines, of {id, reference, candidate, tests}: any fields of JudgeRequest",
    )
    control = commands.add_parser(
        "control",
        help="which programs that solve nothing pass the tests of such a list, where an item may have its prompt; "
        "a JSON line each",
    )
    for command in (judge, control):
        command.add_argument("file", help="input file; '-' reads standard input")
    serve = commands.add_parser("serve", help="the judge over HTTP; clients send the token in SANDBOX_TOKEN")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8080, help="0 takes a free one (default 8080)")
    serve.add_argument("--places", type=int, default=64, help="requests at once, waiting ones too (default 64)")
    serve.add_argument("--max-body-bytes", type=int, default=4 << 20, help="of a request (default 4 MiB)")
    serve.add_argument("--seconds", type=float, default=10.0, help="most CPU seconds of a /run_code (default 10)")
    for command in (check, judge, control, serve):
        command.add_argument(
            "--workers", type=int, default=1, help="programs run at once, or processes that judge (default 1)"
        )
        command.add_argument("--tier", type=int, default=0, choices=LOCAL_TIERS, help="confinement (default 0)")
        command.add_argument(
            "--allow-missing",
            action="append",
            default=[],
            choices=OPTIONAL_FEATURES,
            help="do without a protection that this kernel lacks",
        )
    options = parser.parse_args(arguments)
    try:
        items = []
        if options.command in ("judge", "control"):
            items = _read_items(options.file, given={"candidate": None} if options.command == "control" else {})
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        if options.command == "judge":
            return _judge(options, items)
        if options.command == "control":
            return _control(options, items)
        if options.command == "serve":
            return _serve(options)
        return _check(options)
    except SandboxConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_FAILED
    except SandboxUnavailableError as error:
        print(f"the sandbox is unavailable: {error}", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:  # `... | head`: whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _check(options: argparse.Namespace) -> int:
    if options.url:
        with SandboxFusionRunner(options.url, num_workers=options.workers, limits=LIMITS) as service:
            return _self_test(service)
    with LocalRunner(num_workers=options.workers, **_confinement(options)) as runner:
        _show_confinement(runner)
        return _self_test(runner)


def _show_confinement(runner: LocalRunner) -> None:
    missing = missing_features()
    kernel = os.uname()
    print(f"tier       {runner.tier}: {TIER_MEANINGS[runner.tier]}")
    for state in probe():
        print(f"tier {state.tier}     {state.reason or 'works here'}")
    print(f"tier 3     {TIER_MEANINGS[3]}")
    print(f"kernel     {kernel.sysname} {kernel.release} {kernel.machine}")
    for name in OPTIONAL_FEATURES:
        version = f", ABI {landlock_abi()}" if name == "landlock" and name not in missing else ""
        print(f"{name:<10} {'MISSING, accepted by --allow-missing' if name in missing else 'yes' + version}")
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
        failure = check.failure(runner)
        num_passed += not failure
        print(f"{'FAIL' if failure else 'ok  '}       {check.name.replace('_', ' ')}{failure and ': ' + failure}")
    print(f"{num_passed} of {len(checks)} self-tests passed")
    return EXIT_OK if num_passed == len(checks) else EXIT_FAILED


def _read_items(path: str, *, given: dict[str, Any]) -> list[tuple[Any, JudgeRequest, str]]:
    """Id, request and prompt of each item; ``given`` are values of fields that an item may leave out.

    Raises:
        ValueError: the file is not what ``judge`` reads.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
        # Data sets come as either.
        is_list = text.lstrip().startswith("[")
        items = json.loads(text) if is_list else [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot read {path}: {error}; it must hold a JSON list, or an object a line") from error
    requests = []
    for place, item in enumerate(items):
        try:
            named = {_SHORT.get(key, key): value for key, value in item.items()} if isinstance(item, dict) else {}
            read = given | {key: named[key] for key in _READ & named.keys()} if named else item
            requests.append(
                (
                    named.get("id", named.get("question_id", str(place))),
                    JudgeRequest.from_mapping(read),
                    str(named.get("prompt", "")),
                )
            )
        except ValueError as error:
            raise ValueError(f"{path}: item {place}: {error}") from error
    return requests


def _judge(options: argparse.Namespace, items: list[tuple[Any, JudgeRequest, str]]) -> int:
    for (name, _, _), verdict in zip(items, _verdicts(options, [request for _, request, _ in items]), strict=True):
        cases = [case for suite in verdict.suites for case in suite.cases]
        line = {
            "id": name,
            "valid": len(cases),
            "expected_correct": sum(case.expected_correct for case in cases),
            "passed": sum(not case.outcome.failed for case in cases),
            "outcomes": [case.outcome.value for case in cases],
        }
        rejections = [dataclasses.asdict(one) for suite in verdict.suites for one in suite.rejections]
        reasons = {"load_error": verdict.load_error, "rejections": rejections}
        print(json.dumps(line | {key: reason for key, reason in reasons.items() if reason}), flush=True)
    return EXIT_OK


def _control(options: argparse.Namespace, items: list[tuple[Any, JudgeRequest, str]]) -> int:
    programs = [control_programs(request, prompt) for _, request, prompt in items]
    requests = [
        dataclasses.replace(request, candidate=program, until_timeout=True)
        for (_, request, _), of_question in zip(items, programs, strict=True)
        for program in of_question.values()
    ]
    verdicts = _verdicts(options, requests)
    num_passed = num_without = 0
    for (name, _, _), of_question in zip(items, programs, strict=True):
        judged = {control: next(verdicts) for control in of_question}
        passed = [control for control, verdict in judged.items() if passes_all(verdict)]
        num_valid = max(len(suite.cases) for verdict in judged.values() for suite in verdict.suites)
        num_passed += bool(passed)
        num_without += not num_valid
        print(json.dumps({"id": name, "valid": num_valid, "passed_by": passed}), flush=True)
    print(f"the tests of {num_passed} of {len(items)} questions pass what solves nothing", file=sys.stderr)
    if num_without:
        print(f"{num_without} questions have no valid test: `judge` says why", file=sys.stderr)
    return EXIT_FAILED if num_passed or num_without else EXIT_OK


def _verdicts(options: argparse.Namespace, requests: list[JudgeRequest]) -> Iterator[CandidateVerdict]:
    with JudgeProcesses(options.workers, settings=WorkerSettings(runner=_confinement(options))) as judges:
        for result in judges.judge_all(requests):
            if isinstance(result, SandboxUnavailableError):
                # Verdicts of part of a file would look like those of the whole.
                raise result
            yield result


def _confinement(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of ``LocalRunner``."""
    return {"tier": options.tier, "allow_missing": options.allow_missing}


def _serve(options: argparse.Namespace) -> int:
    """Until interrupted. Beyond the loopback only with a token."""
    token, host = os.environ.get("SANDBOX_TOKEN", ""), options.host
    # Whoever reaches the port could otherwise run programs here.
    if not token and host not in ("127.0.0.1", "localhost"):
        raise SandboxConfigError(f"--host {host} is reached from elsewhere: set SANDBOX_TOKEN for its clients")
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
