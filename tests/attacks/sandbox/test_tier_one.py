"""Programs with a folder to write in that try to get more out of it. One attack a test."""

import ast
import os
import textwrap
from pathlib import Path

import pytest

from sandbox import Limits, LocalRunner, probe

LIMITS = Limits(
    cpu_seconds_per_case=0.5,
    wall_seconds_per_case=2.0,
    load_cpu_seconds=1.0,
    memory_bytes=256 << 20,
    scratch_bytes=1 << 20,
    scratch_files=32,
    threads=40,
)
PASSED = [("passed", "")] * 4


@pytest.fixture(scope="module")
def runner():
    state = probe()[1]
    if not state.is_available:
        pytest.skip(f"tier 1: {state.reason}")
    with LocalRunner(tier=1, limits=LIMITS) as shared:
        yield shared


@pytest.fixture
def error_of(attack):
    """The error with which a candidate's ``attempt`` ends in each of four calls, "breached" for none."""

    def run(attempt):
        source = f"""
import errno, os
def secret(n):
    try:
{textwrap.indent(textwrap.dedent(attempt).strip(), " " * 8)}
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'breached'
"""
        (remark,) = {remark for _, remark in attack(source)}
        return ast.literal_eval(remark)

    return run


def test_files_are_written_and_read_back(comes_to):
    assert comes_to("""
        import os, shutil, tempfile
        def secret(n):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "numbers")
                with open(path, "w") as handle:
                    handle.write(str(n * 7919 + 104729))
                os.rename(shutil.copy2(path, "/tmp/copy"), os.path.expanduser("~/moved"))
            return int(open("moved").read()) % 1000003
    """) == {("passed", "")}


def test_a_planted_file_is_not_there_for_the_next_candidate(attack):
    plant = "import os\ndef secret(n):\n    open('/tmp/{0}', 'a').close()\n    return sorted(os.listdir('/tmp'))\n"
    # The mount point of a virtual environment below /tmp is there for both.
    (first,), (second,) = (
        {tuple(ast.literal_eval(remark)) for _, remark in attack(plant.format(name))} for name in ("first", "second")
    )
    assert set(first) ^ set(second) == {"first", "second"}
    assert "second" in second


def test_a_planted_file_does_not_outlive_its_own_process(attack):
    results = attack("""
        import os
        def secret(n):
            if os.path.exists("left"):
                return "found"
            open("left", "w").close()
            os._exit(0)
    """)
    assert {outcome for outcome, _ in results} == {"died"}


def test_a_planted_module_is_imported_by_nobody_else(comes_to):
    assert comes_to("""
        import os, sys
        def secret(n):
            for folder in (os.getcwd(), "/", *sys.path):
                try:
                    open(os.path.join(folder, "statistics.py"), "w").close()
                except OSError:
                    continue
            return [folder for folder in sys.path if os.path.exists(os.path.join(folder, "statistics.py")) and
                    os.path.getsize(os.path.join(folder, "statistics.py")) == 0]
    """) == {("wrong_value", "[]")}


def test_nothing_reaches_the_machines_own_folders(attack):
    attack("def secret(n):\n    open('/tmp/planted_by_tier_one', 'w').close()\n")
    assert not Path("/tmp/planted_by_tier_one").exists()
    assert not Path("/scratch").exists() or not Path("/scratch/tmp/planted_by_tier_one").exists()


def test_filling_the_folder_is_an_error_of_the_program_and_no_outage(comes_to):
    assert comes_to("""
        def secret(n):
            try:
                with open("big", "wb") as handle:
                    while True:
                        handle.write(bytes(1 << 16))
            except OSError as error:
                return type(error).__name__
    """) == {("wrong_value", "'OSError'")}


def test_many_small_files_run_out_at_the_limit(comes_to):
    assert comes_to("""
        def secret(n):
            if n > 0:
                count = 0
                try:
                    while True:
                        open(f"{n}-{count}", "w").close()
                        count += 1
                except OSError:
                    import os
                    for index in range(count):
                        os.unlink(f"{n}-{index}")
                    return count
    """) == {("wrong_value", "32")}


def test_hard_links_count_as_files(comes_to):
    assert comes_to("""
        import os
        open("file", "w").close()
        def secret(n):
            links = []
            try:
                while True:
                    os.link("file", f"{n}-{len(links)}")
                    links.append(f"{n}-{len(links)}")
            except OSError:
                pass
            for link in links:
                os.unlink(link)
            return len(links) < 32
    """) == {("wrong_value", "True")}


def test_a_sparse_file_longer_than_the_folder_is_refused(error_of):
    assert error_of("open('sparse', 'w').truncate(1 << 30)") == "EFBIG"


def test_memory_mapped_beyond_the_folders_size_is_the_programs_own_death(comes_to):
    assert comes_to("""
        import mmap
        def secret(n):
            files = [open(name, "w+b") for name in "ab"]
            maps = []
            for file in files:
                file.truncate(1 << 20)
                maps.append(mmap.mmap(file.fileno(), 1 << 20))
            for mapped in maps:
                for place in range(0, 1 << 20, 4096):
                    mapped[place] = 1
    """) == {("died", "ended by SIGBUS")}


@pytest.mark.parametrize("path", ["os.__file__", "'/planted'", "'/scratch/planted'", "'/dev/planted'", "'/dev/zero'"])
def test_writing_anywhere_else_is_refused(error_of, path):
    assert error_of(f"open({path}, 'a')") in ("EACCES", "EROFS")


def test_the_folder_itself_stays_where_it_is(error_of):
    assert error_of("os.mkdir('/scratch/more')") == "EROFS"
    assert error_of("os.rename('/scratch/tmp', '/scratch/other')") in ("EROFS", "EBUSY", "EACCES")
    assert error_of("os.rmdir('/scratch/tmp')") in ("EROFS", "EBUSY", "EACCES")
    assert error_of("os.unlink('/tmp')") in ("EROFS", "EACCES")


def test_devnull_takes_output_as_usual(comes_to):
    assert comes_to("""
        import contextlib, os
        def secret(n):
            with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
                print(n)
            return (n * 7919 + 104729) % 1000003
    """) == {("passed", "")}


def test_a_link_out_of_the_folder_leads_to_nothing_more(error_of):
    assert error_of("os.symlink('/etc/passwd', f'to{n}')\nopen(f'to{n}').read()") == "ENOENT"
    assert error_of("os.symlink(os.__file__, f'to{n}')\nopen(f'to{n}', 'a')") in ("EACCES", "EROFS")
    assert error_of("os.link(os.__file__, f'to{n}')") in ("EXDEV", "EACCES", "EPERM")


def test_climbing_out_of_the_folder_finds_no_other_root(error_of):
    assert error_of("open('../' * 40 + 'etc/passwd').read()") == "ENOENT"
    assert error_of("os.listdir('../..')") == "EACCES"
    assert {error_of(f"os.stat('{folder}')") for folder in ("/boot", "/run", "/sys", "/var")} == {"ENOENT"}


def test_other_processes_are_not_there(error_of):
    assert error_of("os.stat('/proc')") in ("ENOENT", "EACCES")
    assert error_of("os.kill(1, 9)") == "EPERM"
    assert error_of("os.getpgid(os.getppid() or 4194000)") == "ESRCH"


def test_named_pipes_and_devices_are_refused(refused):
    refused("os.mkfifo('pipe')")
    refused("os.mknod('device', 0o20600, os.makedev(1, 3))")


def test_a_socket_in_the_folder_is_refused(refused):
    refused("socket.socket(socket.AF_UNIX).bind('socket')")


def test_mounts_and_namespaces_are_refused(refused):
    refused("""
        results = [libc.unshare(0x00020000), libc.mount(b"none", b"/scratch/tmp", b"tmpfs", 0, None),
                   libc.umount2(b"/scratch/tmp", 2), libc.chroot(b"/scratch"), libc.pivot_root(b".", b"."),
                   libc.setns(3, 0)]
        if set(results) == {-1}:
            raise OSError
    """)


def test_machine_code_in_the_folder_cannot_be_loaded(comes_to):
    assert comes_to("""
        import ctypes, glob, os, shutil
        libraries = glob.glob(os.path.dirname(os.__file__) + "/lib-dynload/*.so")
        shutil.copyfile(min(libraries, key=os.path.getsize), "planted.so")
        def secret(n):
            try:
                return ctypes.CDLL("./planted.so")
            except OSError as error:
                return "failed to map segment" in str(error)
    """) == {("wrong_value", "True")}


def test_taking_away_its_own_rights_hurts_nobody(attack):
    results = attack("""
        import os
        os.chmod("/tmp", 0)
        def secret(n):
            return (n * 7919 + 104729) % 1000003
    """)
    assert results == PASSED
    assert attack("def secret(n):\n    open('x', 'w').close()\n    return (n * 7919 + 104729) % 1000003\n") == PASSED


def test_a_deep_tree_is_dropped_with_its_program(comes_to):
    assert comes_to("""
        import os
        def deepen():
            try:
                while True:
                    os.mkdir("d" * 255)
                    os.chdir("d" * 255)
            except OSError:
                os.chdir("/tmp")
        deepen()
        def secret(n):
            return (n * 7919 + 104729) % 1000003
    """) == {("passed", "")}


def test_a_thread_bomb_ends_at_the_limit(attack):
    results = attack("""
        import threading
        threading.stack_size(65536)
        gate, started = threading.Event(), []
        def secret(n):
            try:
                while len(started) < 1000:
                    thread = threading.Thread(target=gate.wait, daemon=True)
                    thread.start()
                    started.append(thread)
            except RuntimeError:
                pass
            return len(started)
    """)
    assert {remark for _, remark in results} <= {"38", "39"}


def test_a_main_thread_that_ends_without_the_others_is_not_waited_for(comes_to):
    """The process looks as if the kernel were ending it; its channel is closed; nothing ends by itself."""
    assert comes_to("""
        import ctypes, os, threading
        libc = ctypes.CDLL(None)
        def linger():
            os.close(3)
            while True:
                pass
        def secret(n):
            threading.Thread(target=linger, daemon=True).start()
            libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)
    """) == {("died", "closed its channel")}


def test_a_hang_costs_its_own_case(attack):
    results = attack("""
        def secret(n):
            while n == 2:
                pass
            return (n * 7919 + 104729) % 1000003
    """)
    assert sorted(outcome for outcome, _ in results) == ["passed"] * 3 + ["timed_out"]


def test_the_home_folder_is_the_private_one(attack):
    results = attack("import os\ndef secret(n):\n    return os.path.realpath(os.path.expanduser('~')) == os.getcwd()\n")
    assert results == [("wrong_value", "True")] * 4
    assert os.environ.get("HOME") != "/tmp"
