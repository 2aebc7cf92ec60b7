"""Shared memory left by servers: found at those who map it, removed afterwards, nothing else touched."""

import os
import signal
import subprocess
import sys
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from code_a1_recipe.training.lifecycle.leftovers import Leftovers, make_sockets_folder, segments_below

MAP_ONE = """
import subprocess, sys
inner = "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=4096);" \
    "print(m.name, flush=True); input()"
subprocess.run([sys.executable, "-c", inner])
"""


@pytest.fixture
def grandchild():
    """A process that starts another one, which maps a segment; yields the process and the segment's name."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAP_ONE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process, process.stdout.readline().strip()
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_segment_of_a_killed_grandchild_is_found_and_removed(grandchild):
    process, name = grandchild
    found = segments_below(os.getpid())
    assert name in {segment.name for segment in found}
    os.killpg(process.pid, signal.SIGKILL)  # the grandchild's resource tracker too, as Ray's end of a worker does
    process.wait()
    assert any(segment.exists() for segment in found if segment.name == name)
    Leftovers(Path(), found).remove()
    assert not any(segment.exists() for segment in found)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_segments_of_others_are_not_found():
    mine = shared_memory.SharedMemory(create=True, size=4096)
    try:
        assert mine.name not in {segment.name for segment in segments_below(os.getpid())}
    finally:
        mine.close()
        mine.unlink()


def test_removing_what_is_gone_is_no_error(tmp_path):
    leftovers = Leftovers(Path(make_sockets_folder()), {tmp_path / "psm_gone"})
    leftovers.remove()
    assert not leftovers.sockets.exists()
    leftovers.remove()


def test_a_folder_of_sockets_that_the_user_named_stays(tmp_path):
    Leftovers(tmp_path).remove()
    assert tmp_path.is_dir()
