"""A long run of one pool: do its descriptors, memory and rate after 100,000 programs look like a new one's?"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from sandbox import Call, CallStatus, LocalRunner, Program, Role

_SAMPLES = 20
_GROWTH_ALLOWED = 0.05
_RATE_ALLOWED = 0.25
"""Fall of the rate from the first half of the samples to the second that passes for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The pool after some programs."""

    num_programs: int
    seconds: float
    descriptors: int
    """Open in this process and its fork servers."""
    parent_kib: int
    fork_servers_kib: int
    """Resident, summed."""
    programs_per_second: float
    """Since the last sample."""


def run_programs(num_programs: int, *, num_workers: int, report: Callable[[Sample], None]) -> dict[str, object]:
    """Run many small programs, a few of them ill-behaved, in one pool.

    Returns:
        The samples, growth figures and ``ok``: descriptors as at the start, memory of parent and
        fork servers within 5 % of the first sample's, every answer right, rate not falling beyond noise.
    """
    samples: list[Sample] = []
    wrong = 0
    with LocalRunner(num_workers=num_workers) as runner:
        _run_batch(runner, range(200), num_workers)  # every fork server has started
        started = last = time.monotonic()
        per_sample = max(1, num_programs // _SAMPLES)
        for first in range(0, num_programs, per_sample):
            places = range(first, min(first + per_sample, num_programs))
            wrong += _run_batch(runner, places, num_workers)
            now = time.monotonic()
            pids = runner.fork_server_pids()
            sample = Sample(
                num_programs=places.stop,
                seconds=now - started,
                descriptors=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), *pids)),
                parent_kib=_resident_kib(os.getpid()),
                fork_servers_kib=sum(map(_resident_kib, pids)),
                programs_per_second=len(places) / (now - last),
            )
            samples.append(sample)
            report(sample)
            last = now
    return _judge_samples(samples, wrong)


def _judge_samples(samples: Sequence[Sample], wrong: int) -> dict[str, object]:
    first, last = samples[0], samples[-1]
    rates = [sample.programs_per_second for sample in samples]
    half = max(1, len(rates) // 2)
    early, late = sorted(rates[:half])[half // 2], sorted(rates[-half:])[half // 2]
    parent_growth = last.parent_kib / first.parent_kib - 1
    fork_servers_growth = last.fork_servers_kib / first.fork_servers_kib - 1
    is_fine = not wrong and last.descriptors == first.descriptors and late >= (1 - _RATE_ALLOWED) * early
    return {
        "ok": is_fine and max(parent_growth, fork_servers_growth) < _GROWTH_ALLOWED,
        "num_programs": last.num_programs,
        "wrong_answers": wrong,
        "descriptor_growth": last.descriptors - first.descriptors,
        "parent_growth": parent_growth,
        "fork_servers_growth": fork_servers_growth,
        "programs_per_second_early": early,
        "programs_per_second_late": late,
        "samples": [asdict(sample) for sample in samples],
    }


def _run_batch(runner: LocalRunner, places: range, num_workers: int) -> int:
    """Run the programs of these numbers; how many did not answer as they should."""
    numbers = iter(places)
    lock = threading.Lock()
    wrong = [0] * num_workers

    def work(thread: int) -> None:
        while True:
            with lock:
                place = next(numbers, None)
            if place is None:
                return
            program, expected = _soak_program(place, runner)
            answers = runner.run(program, role=Role.CANDIDATE).results
            wrong[thread] += [(answer.status, answer.value) for answer in answers] != expected

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(num_workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(wrong)


def _soak_program(place: int, runner: LocalRunner) -> tuple[Program, list[tuple[CallStatus, bytes]]]:
    """Mostly a plain program; one in a hundred exits, one raises, one leaves threads and big values behind."""
    right = [(CallStatus.VALUE, b"i%x;" % (place + n)) for n in range(3)]
    source = f"def f(n):\n    return {place} + n\n"
    match place % 100:
        case 17:
            source = f"import os\ndef f(n):\n    return {place} + n if n != 1 else os._exit(3)\n"
            right[1] = (CallStatus.DIED, b"")
        case 34:
            source = f"def f(n):\n    return {place} + n if n != 1 else 1 // 0\n"
            right[1] = (CallStatus.RAISED, b"")
        case 51:
            left = (
                "import threading\nkept = bytearray(1 << 24)\nthreading.Thread(target=threading.Event().wait).start()\n"
            )
            source = left + source
    program = Program(
        prelude="",
        source=source,
        calls=tuple(Call(expression=f"f({n})") for n in range(3)),
        reference_cpu_seconds=(0.0,) * 3,
        limits=runner.limits,
    )
    return program, right


def _resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
