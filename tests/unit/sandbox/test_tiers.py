"""Tiers: what they are, how a machine without one says so, and how a runner in tier 1 behaves from outside."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest

from sandbox import Call, Limits, LocalRunner, Program, Role, SandboxConfigError
from sandbox.confinement import tiers
from sandbox.confinement.jail import OWN_UIDS, ProcessLimits
from sandbox.confinement.namespaces import TMP, NamespaceError, plan_layout

from .processes import children, is_gone, wait_until


def program(source, *expressions, **limits):
    calls = tuple(Call(expression=expression) for expression in expressions)
    return Program(source=source, calls=calls, limits=Limits(**limits))


def answers(runner, source, *expressions, **limits):
    result = runner.run(program(source, *expressions, **limits), role=Role.CANDIDATE)
    return [(answer.status.value, answer.value) for answer in result.results]


def need(tier):
    state = tiers.probe()[tier]
    if not state.is_available:
        pytest.skip(f"tier {tier}: {state.reason}")


@pytest.fixture(scope="module")
def walled():
    """A runner of tier 1, where the machine has it."""
    need(1)
    with LocalRunner(tier=1) as runner:
        yield runner


@pytest.mark.parametrize("tier", [2, -1, True, "1", 0.5])
def test_a_number_that_is_no_local_tier_is_refused(tier):
    with pytest.raises(SandboxConfigError, match=r"tier must be one of \[0, 1\], got"):
        tiers.check_tier(tier)


def test_the_layout_holds_real_paths_and_the_links_that_lead_to_them(tmp_path, monkeypatch):
    monkeypatch.setattr("sandbox.confinement.namespaces.TMP", "/no/such/folder")
    real = tmp_path.resolve()
    (real / "lib" / "inner").mkdir(parents=True)
    (real / "lib-old").mkdir()  # sorts between a folder and what is inside it
    (real / "way").symlink_to("lib/../lib")
    (real / "file").write_text("x")
    layout = plan_layout(str(real / path) for path in ("way/inner", "lib", "lib-old", "file"))
    assert layout.binds == (str(real / "file"), str(real / "lib"), str(real / "lib-old"))
    assert layout.links == ((str(real / "way"), "lib/../lib"),)


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        plan_layout([str(tmp_path / "a")])


def test_a_refused_step_names_itself_and_the_cure():
    error = NamespaceError("unshare", PermissionError(1, "unshare: Operation not permitted"))
    assert str(error).startswith("unshare: Operation not permitted. Hint: namespaces are closed to this user")
    assert "user.max_user_namespaces" in str(error)


def test_process_limits_survive_the_wire():
    limits = ProcessLimits(
        memory_bytes=1, stack_bytes=2, cpu_seconds=3, open_files=4, threads=5, scratch_bytes=6, scratch_files=7
    )
    assert ProcessLimits.unpack(limits.pack()) == limits


def test_without_namespaces_tier_1_says_so_and_is_not_lowered(repository):
    """In a user namespace that may hold no further one, without capabilities: what a locked-down machine is like."""
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("needs unshare and setpriv of util-linux")
    script = (
        "echo 0 > /proc/sys/user/max_user_namespaces && "
        f"exec setpriv --inh-caps=-all --bounding-set=-all {sys.executable} -m sandbox check --tier 1"
    )
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script], cwd=repository, capture_output=True, text=True, check=False
    )
    if "unshare failed" in done.stderr or "max_user_namespaces" in done.stderr.split("error:")[0]:
        pytest.skip(f"user namespaces cannot be limited here: {done.stderr.strip()}")
    assert done.returncode == 1
    assert "error: programs cannot be confined on this machine: tier 1 does not work here: unshare:" in done.stderr
    assert "Hint: namespaces are closed to this user" in done.stderr
    assert "self-tests passed" not in done.stdout


def test_a_runner_logs_every_tier_and_its_own(caplog):
    with caplog.at_level(logging.INFO, logger="sandbox"), LocalRunner():
        pass
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(":")[0] for line in lines[:2]] == ["sandbox tier 0", "sandbox tier 1"]
    assert any(line.startswith("sandbox tier=0 missing=") for line in lines)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a user namespace 65,536 ids")
def test_check_says_where_programs_share_one_uid(repository):
    check = [sys.executable, "-m", "sandbox", "check"]
    namespace = [sys.executable, "tests/unit/sandbox/in_user_namespace.py", *check]
    inside, outside = (
        subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
        for command in (namespace, check)
    )
    if inside.returncode == 125:
        pytest.skip("this machine has no user namespaces")
    assert "self-tests passed" in inside.stdout
    assert "all programs share one uid" in inside.stdout
    assert "all programs share one uid" not in outside.stdout


def test_files_work_and_do_not_stay(walled):
    # A virtual environment below /tmp has its mount point in the folder.
    source = (
        "import os\nbefore = set(os.listdir('.'))\n"
        "def f():\n    open('/tmp/x', 'x').close()\n    return sorted(set(os.listdir('.')) - before)\n"
    )
    assert [answers(walled, source, "f()") for _ in range(2)] == [[("value", b"l1:s1:x")]] * 2


def test_the_size_and_the_number_of_files_are_those_of_the_limits(walled):
    source = """
import errno
def size():
    written = 0
    try:
        with open('big', 'wb', 0) as handle:
            while True:
                written += handle.write(bytes(4096))
    except OSError as error:
        return written, errno.errorcode[error.errno]
def files():
    try:
        for count in range(1000):
            open(str(count), 'w').close()
    except OSError as error:
        return count, errno.errorcode[error.errno]
"""
    limits = {"scratch_bytes": 1 << 16, "scratch_files": 10}
    (size,) = answers(walled, source, "size()", **limits)
    (files,) = answers(walled, source, "files()", **limits)
    assert size in [("value", b"t2:i10000;s5:EFBIG"), ("value", b"t2:i10000;s6:ENOSPC")]
    assert files == ("value", b"t2:ia;s6:ENOSPC")


def test_pids_are_those_that_the_judge_sees(walled):
    """Clocks, signals and waits all go by them."""
    fork_servers = walled.fork_server_pids()
    assert all("fork_server_main" in Path(f"/proc/{pid}/cmdline").read_text() for pid in fork_servers)
    spin = "def f():\n    while True:\n        pass\n"
    assert answers(walled, spin, "f()", cpu_seconds_per_case=0.1) == [("timed_out", b"")]


def test_a_program_is_alone_in_its_namespaces(walled):
    source = "import os, socket\ndef f():\n    return os.getpid() < 1000, os.getppid(), len(socket.if_nameindex())\n"
    (answer,) = answers(walled, source, "f()")
    assert answer[0] == "raised" or answer == ("value", b"t3:Ti0;i1;")
    inside, outside = (os.readlink(f"/proc/{pid}/ns/net") for pid in (walled.fork_server_pids()[0], "self"))
    assert inside != outside


def test_readable_paths_below_tmp_can_still_be_read(tmp_path):
    need(1)
    assert str(tmp_path.resolve()).startswith(TMP) or pytest.skip("the tests' own folders lie elsewhere")
    given = tmp_path / "given"
    given.write_text("seven")
    tmp_path.chmod(0o755)
    source = f"""
def read():
    open('/tmp/own', 'w').close()
    return open('{given}').read()
def write():
    open('{given}', 'w')
"""
    with LocalRunner(tier=1, readable=[str(tmp_path)]) as runner:
        assert answers(runner, source, "read()", "write()") == [("value", b"s5:seven"), ("raised", b"")]
    assert given.read_text() == "seven"


def test_an_interpreter_deep_below_tmp_has_tier_1_and_takes_no_file_of_the_limit(repository):
    need(1)
    code = """
from sandbox import Call, Limits, LocalRunner, Program, Role, probe
print(repr(probe()[1].reason))
source = '''
def f():
    for count in range(9):
        try:
            open(f'/tmp/{count}', 'x').close()
        except OSError:
            return count
'''
program = Program(source=source, calls=(Call(expression='f()'),), limits=Limits(scratch_files=4))
with LocalRunner(tier=1) as runner:
    print(runner.run(program, role=Role.CANDIDATE).results[0].value)
"""
    with tempfile.TemporaryDirectory(dir=TMP) as root:
        os.chmod(root, 0o755)
        folder = os.path.join(root, "2/2/2/2/2/2/2")
        venv.create(folder)
        done = subprocess.run(
            [os.path.join(folder, "bin", "python"), "-c", code], env={"PYTHONPATH": str(repository)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert (done.stdout, done.stderr) == ("''\nb'i4;'\n", "")


def test_without_landlock_the_root_still_holds_nothing_else(monkeypatch):
    need(1)
    monkeypatch.setattr("sandbox.confinement.jail.landlock_abi", lambda: 0)
    source = """
import errno, os
def f(path, flags):
    try:
        return os.open(path, flags) > 2
    except OSError as error:
        return errno.errorcode[error.errno]
"""
    with LocalRunner(tier=1, allow_missing=("landlock",)) as runner:
        found = answers(runner, source, "f('/etc/passwd', 0)", "f('/proc', 0)", "f(os.__file__, 1)", "f('own', 65)")
    assert [value for _, value in found] == [b"s6:ENOENT", b"s6:ENOENT", found[2][1], b"T"]
    assert found[2][1] in (b"s5:EROFS", b"s6:EACCES")


def test_a_fork_server_that_lost_the_init_of_its_namespace_is_replaced():
    need(1)
    with LocalRunner(tier=1) as runner:
        pool = runner._pools[Role.CANDIDATE]
        (fork_server,) = pool.pids()
        (init,) = children(fork_server)
        os.kill(init, signal.SIGKILL)
        wait_until(lambda: is_gone(init))
        assert answers(runner, "def f(): return 1", "f()") == [("value", b"i1;")]
        assert pool.pids() != [fork_server]


def test_closing_leaves_no_process():
    need(1)
    with LocalRunner(tier=1) as runner:
        fork_servers = runner.fork_server_pids()
        answers(runner, "def f(): return 1", "f()")
        running = [child for fork_server in fork_servers for child in children(fork_server)]
        assert len(running) == 3  # an init each
    wait_until(lambda: all(is_gone(pid) for pid in (*fork_servers, *running)))


def test_programs_of_root_have_ids_of_their_own(walled):
    if os.geteuid() != 0 or walled.uid_policy == "same_user":
        pytest.skip("needs root, who may give programs other ids")
    source = "import os\ndef f():\n    return os.getuid(), os.getgid(), os.getgroups()\n"
    ((kind, value),) = answers(walled, source, "f()")
    assert (kind, value[-3:]) == ("value", b"l0:")
    assert int(value.split(b";")[0].removeprefix(b"t3:i"), 16) >= OWN_UIDS
