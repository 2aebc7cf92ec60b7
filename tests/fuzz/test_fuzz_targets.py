"""Run the fuzz targets without a fuzzer, on every seed and on mutations of the seeds (thousands with ``--all``)."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
HERE = Path(__file__).resolve().parent
NUM_MUTANTS = {"frames": 6_000, "decoder": 4_000, "parser": 1_200, "extractor": 2_000, "inputs": 1_200, "bodies": 4_000}
SHARE_OF_A_SHORT_RUN = 0.1


def load_targets():
    spec = importlib.util.spec_from_file_location("fuzz_targets", HERE / "targets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


targets = load_targets()


def seeds(name):
    return [*targets.valid_inputs(name), *targets.saved_inputs(name)]


def mutate(chance, pool):
    """Damage one input of the pool in one to four places."""
    data = bytearray(chance.choice(pool))
    for _ in range(chance.randint(1, 4)):
        place, kind = chance.randrange(len(data) + 1), chance.randrange(6)
        if kind == 0:
            data[place:place] = chance.randbytes(chance.randint(1, 4))
        elif kind == 1:
            del data[place : place + chance.randint(1, 8)]
        elif kind == 2:
            other = chance.choice(pool)
            data[place:] = other[chance.randrange(len(other) + 1) :]
        elif kind == 3:
            other = chance.randrange(len(data) + 1)
            data[place:place] = data[min(place, other) : max(place, other)][:64]
        elif data and kind == 4:
            data[place % len(data)] = chance.randrange(256)
        elif data:
            data[place % len(data)] ^= 1 << chance.randrange(8)
    return bytes(data[:4096])


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_every_seed_keeps_the_promises(name):
    for data in seeds(name):
        targets.TARGETS[name](data)


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_damaged_seeds_keep_the_promises(name, pytestconfig):
    chance = random.Random(f"{name} 1")
    pool = seeds(name)
    share = 1 if pytestconfig.getoption("--all") else SHARE_OF_A_SHORT_RUN
    for _ in range(int(NUM_MUTANTS[name] * share)):
        data = mutate(chance, pool)
        try:
            targets.TARGETS[name](data)
        except Exception as error:
            raise AssertionError(
                f"{name} breaks a promise on {data!r}: add {data.hex()} to seeds/{name}.hex"
            ) from error
        if chance.random() < 0.02:
            pool.append(data)


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_bytes_of_no_shape_keep_the_promises(name):
    chance = random.Random(f"{name} 2")
    for _ in range(300):
        targets.TARGETS[name](chance.randbytes(chance.randrange(200)))


def test_a_broken_reader_would_be_noticed(monkeypatch):
    """The frame target must notice a reader that keeps each result twice."""
    take = targets.Attempt._take_result
    monkeypatch.setattr(targets.Attempt, "_take_result", lambda self, *a: (take(self, *a), take(self, *a))[0])
    with pytest.raises(targets.BrokenPromiseError, match="no more answers than calls"):
        targets.frames(next(targets.valid_inputs("frames")))
