"""Runs 100,000 programs in one pool, and checks that its descriptors, memory and rate do not change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from sandbox import Call, CallStatus, LocalRunner, Program, Role

NUM_SAMPLES = 20
GROWTH_ALLOWED = 0.05
RATE_ALLOWED = 0.25
"""The rate may fall by this share from the first half of the samples to the second half; this counts as noise."""
WARM_UP = 200
Answer = tuple[CallStatus, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Measurements of the pool after some programs."""

    num_programs: int
    descriptors: int
    """Open file descriptors in this process and its fork servers."""
    parent_kib: int
    """Resident memory of this process."""
    fork_servers_kib: int
    """Resident memory of all fork servers together."""
    programs_per_second: float
    """Rate since the last sample."""


def run_programs(num_programs: int, *, num_workers: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Run many small programs in one pool. A few of them raise, exit, or leave threads and large values.

    Returns:
        Figures of growth, and ``ok``. ``ok`` is True if the number of descriptors did not change, the memory of the
        parent and of the fork servers grew by less than 5 %, every answer was right, and the rate fell by no more than
        noise.
    """
    samples: list[Sample] = []
    num_wrong = 0
    with LocalRunner(num_workers=num_workers) as runner, ThreadPoolExecutor(num_workers) as pool:
        is_wrong = partial(_is_wrong, runner)
        sum(pool.map(is_wrong, range(WARM_UP)))  # starts every fork server before the measurement
        per_sample = max(1, num_programs // NUM_SAMPLES)
        for first in range(0, num_programs, per_sample):
            places = range(first, min(first + per_sample, num_programs))
            started = time.monotonic()
            num_wrong += sum(pool.map(is_wrong, places))
            rate = len(places) / (time.monotonic() - started)
            samples.append(_sample(runner, places.stop, rate))
            report(str(samples[-1]))
    return _judge_samples(samples, num_wrong)


def _sample(runner: LocalRunner, num_programs: int, rate: float) -> Sample:
    pids = runner.fork_server_pids()
    return Sample(
        num_programs=num_programs,
        descriptors=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), *pids)),
        parent_kib=_resident_kib(os.getpid()),
        fork_servers_kib=sum(map(_resident_kib, pids)),
        programs_per_second=rate,
    )


def _judge_samples(samples: Sequence[Sample], num_wrong: int) -> dict[str, Any]:
    first, last = samples[0], samples[-1]
    rates = [sample.programs_per_second for sample in samples]
    half = max(1, len(rates) // 2)
    early, late = sorted(rates[:half])[half // 2], sorted(rates[-half:])[half // 2]
    growth = {
        "parent_growth": last.parent_kib / first.parent_kib - 1,
        "fork_servers_growth": last.fork_servers_kib / first.fork_servers_kib - 1,
    }
    is_steady = last.descriptors == first.descriptors and max(growth.values()) < GROWTH_ALLOWED
    return {
        "ok": not num_wrong and is_steady and late >= (1 - RATE_ALLOWED) * early,
        "num_programs": last.num_programs,
        "wrong_answers": num_wrong,
        "descriptor_growth": last.descriptors - first.descriptors,
        **growth,
        "programs_per_second_early": early,
        "programs_per_second_late": late,
    }


def _is_wrong(runner: LocalRunner, place: int) -> bool:
    """Run the program with this number. Say whether an answer is wrong."""
    source, expected = _soak_program(place)
    program = Program(
        prelude="",
        source=source,
        calls=tuple(Call(expression=f"f({n})") for n in range(3)),
        reference_cpu_seconds=(0.0,) * 3,
        limits=runner.limits,
    )
    results = runner.run(program, role=Role.CANDIDATE).results
    return [(result.status, result.value) for result in results] != expected


def _soak_program(place: int) -> tuple[str, list[Answer]]:
    """Make the program with this number, and its right answers.

    Of a hundred programs, one exits, one raises, and one leaves threads and large values behind.
    """
    expected = [(CallStatus.VALUE, b"i%x;" % (place + n)) for n in range(3)]
    source = f"def f(n):\n    return {place} + n\n"
    match place % 100:
        case 17:
            source = f"import os\ndef f(n):\n    return {place} + n if n != 1 else os._exit(3)\n"
            expected[1] = (CallStatus.DIED, b"")
        case 34:
            source = f"def f(n):\n    return {place} + n if n != 1 else 1 // 0\n"
            expected[1] = (CallStatus.RAISED, b"")
        case 51:
            thread = "threading.Thread(target=threading.Event().wait).start()"
            source = f"import threading\nkept = bytearray(1 << 24)\n{thread}\n{source}"
    return source, expected


def _resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
