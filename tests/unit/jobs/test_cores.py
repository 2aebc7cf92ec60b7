"""CPUs of a container: as many as it may use, whatever the machine has."""

import os

import pytest

from code_a1_recipe.jobs import cores


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "9900000 100000"}, 8),
        ({"quota": "300000", "period": "100000"}, 3),
        ({"quota": "-1", "period": "100000"}, 8),
        ({}, 8),
    ],
)
def test_a_quota_bounds_the_cores(monkeypatch, tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(cores, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(cores, "_OLD_QUOTA", (tmp_path / "quota", tmp_path / "period"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert cores.usable_cores() == expected
