"""The table "Where it runs" of sandbox/README.md: ``python -m sandbox check`` in places that a machine can set up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMESPACES = ("unshare", "mount", "setns", "pivot_root", "umount2")
HOLDS = {0: "14 of 14 self-tests passed", 1: "16 of 16 self-tests passed"}
OTHER_USER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all")


def run(command, repository, *, tier=0, more=()):
    """Status and what was printed, by the interpreter of these tests or the machine's own."""
    python = sys.executable if command[:1] != OTHER_USER[:1] else "/usr/bin/python3"
    words = [python, "-B", "-m", "sandbox", "check", "--tier", str(tier), *more]
    done = subprocess.run([*command, *words], cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 125:
        pytest.skip("this machine has no seccomp")
    return done.returncode, done.stdout + done.stderr


def without(*names):
    return (sys.executable, str(HERE / "without_system_calls.py"), *names, "--")


def mounted(script):
    """In a mount namespace of its own, after ``script``."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("needs root and unshare of util-linux")
    probe = subprocess.run(["unshare", "-m", "sh", "-c", f"mount --make-rprivate / && {script}"], check=False)
    if probe.returncode:
        pytest.skip("no mount namespace can be made here")
    return ("unshare", "-m", "sh", "-c", f'mount --make-rprivate / && {script} && exec "$@"', "sh")


def another_user(repository):
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv of util-linux")
    probe = [*OTHER_USER, "/usr/bin/python3", "-c", "import sys, sandbox; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(probe, cwd=repository, capture_output=True, check=False).returncode:
        pytest.skip("another user can read no interpreter, or not the checkout")
    return OTHER_USER


def test_where_namespaces_are_refused_as_in_dockers_default_profile(repository):
    status, printed = run(without(*NAMESPACES), repository)
    assert (status, HOLDS[0] in printed) == (0, True)
    assert "tier 1     unshare: Operation not permitted. Hint:" in printed
    status, printed = run(without(*NAMESPACES), repository, tier=1)
    assert (status, "tier 1 does not work here: unshare: Operation not permitted" in printed) == (1, True)


def test_without_landlock_it_refuses_until_the_loss_is_accepted_and_then_says_what_is_lost(repository):
    command = without("landlock_create_ruleset")
    status, printed = run(command, repository)
    assert (status, "offers no landlock: without it programs could read every file" in printed) == (1, True)
    status, printed = run(command, repository, more=("--allow-missing", "landlock"))
    assert "landlock   MISSING, accepted by --allow-missing" in printed
    if os.geteuid():
        return  # what a user may not read, its programs may not read either
    assert (status, "FAIL       programs cannot read files of the machine" in printed) == (1, True)


@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize(
    "script",
    [
        "mount -o remount,ro,bind /",
        "mount -t tmpfs -o size=64k tmpfs /dev/shm",
        "mount -t tmpfs -o size=64k tmpfs /tmp",
        "mount -t proc -o hidepid=2 proc /proc",
    ],
)
def test_on_a_read_only_root_and_with_little_or_hidden(repository, script, tier):
    if script.endswith(" /tmp") and any(
        Path("/tmp") in Path(place).resolve().parents for place in (repository, sys.prefix)
    ):
        pytest.skip("the checkout or its environment lies in /tmp")
    status, printed = run(mounted(script), repository, tier=tier)
    assert (status, HOLDS[tier] in printed) == (0, True), printed


@pytest.mark.parametrize("tier", [0, 1])
def test_as_an_unprivileged_user(repository, tier):
    status, printed = run(another_user(repository), repository, tier=tier)
    if tier and "tier 1 does not work here" in printed:
        pytest.skip("this machine closes user namespaces to its users")
    assert (status, HOLDS[tier] in printed) == (0, True), printed
    assert "same_user" in printed


def test_two_runs_of_one_user_side_by_side(repository):
    words = [sys.executable, "-B", "-m", "sandbox", "check"]
    running = [subprocess.Popen(words, cwd=repository, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [HOLDS[0] in one.communicate(timeout=120)[0] for one in running] == [True] * 3


def test_from_a_checkout_under_tmp(repository, tmp_path):
    shutil.copytree(repository / "sandbox", tmp_path / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    for tier in (0, 1):
        status, printed = run((), tmp_path, tier=tier)
        if tier and "tier 1 does not work here" in printed:
            pytest.skip("this machine closes namespaces")
        assert (status, HOLDS[tier] in printed) == (0, True), printed
