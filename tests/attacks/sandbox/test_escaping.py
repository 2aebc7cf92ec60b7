"""Programs that try to reach something outside their process. One attack a test or entry."""

import os

import pytest

REFUSED = {
    "fork": "os.fork()",
    "vfork and clone without a thread": "call(*((58,) if os.uname().machine == 'x86_64' else (220, 17, 0, 0, 0, 0)))",
    "posix spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "os.execv('/bin/true', ['true'])",
    "killing everybody": "os.kill(-1, signal.SIGKILL)",
    "signalling another thread": "call(234 if os.uname().machine == 'x86_64' else 131, os.getppid(), os.getppid(), 9)",
    "a pidfd of the parent": "os.pidfd_open(os.getppid())",
    "tracing the parent": """
        if libc.ptrace(16, os.getppid(), 0, 0) < 0:
            raise OSError
    """,
    "reading the parents memory": """
        if libc.process_vm_readv(os.getppid(), None, 0, None, 0, 0) < 0:
            raise OSError
    """,
    "tcp": "socket.create_connection(('127.0.0.1', 80), 1)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "unix sockets": "socket.socket(socket.AF_UNIX).connect('\\0anything')",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "passing descriptors": """
        one, other = socket.socketpair()
        socket.send_fds(one, [b'x'], [0])
    """,
    "writing into the interpreter": "open(os.__file__, 'a')",
    "anonymous memory files": "os.memfd_create('x')",
    "becoming root": """
        os.setuid(0)
        os.setresuid(0, 0, 0)
    """,
    "new namespaces and mounts": """
        if libc.unshare(0x10000000) < 0 or libc.mount(b'none', b'/', None, 0, None) < 0:
            raise OSError
    """,
    "undoing the parent death signal": """
        if libc.prctl(1, 0, 0, 0, 0) < 0:
            raise OSError
    """,
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_this_attempt_is_refused(refused, attempt):
    refused(attempt)


REFUSED_AFTER_AN_IMPORT = {
    "a subprocess": ("subprocess", "subprocess.run(['/bin/true'])"),
    "raising limits": (
        "resource",
        """
        try:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        except ValueError as error:
            raise OSError from error
    """,
    ),
    # SIGKILL at the hard CPU limit would look like an outage, and an outage is never a verdict.
    "asking the kernel for its own kill": (
        "resource",
        """
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (0, 1))
        except ValueError as error:
            raise OSError from error
    """,
    ),
    "limits of the parent": ("resource", "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))"),
}


@pytest.mark.parametrize(("module", "attempt"), REFUSED_AFTER_AN_IMPORT.values(), ids=REFUSED_AFTER_AN_IMPORT)
def test_this_attempt_with_a_module_is_refused(refused, module, attempt):
    refused(attempt, setup=f"import {module}")


def test_killing_the_parent_is_refused(refused, runner):
    before = runner.fork_server_pids()
    refused("os.kill(os.getppid(), signal.SIGKILL)")
    assert runner.fork_server_pids() == before


def test_proc_is_closed(refused):
    refused("open(f'/proc/{os.getppid()}/environ', 'rb').read()")
    refused("open('/proc/self/mem', 'rb').read(1)")
    refused("os.listdir('/proc')")


def test_reading_foreign_files_is_refused(refused, tmp_path):
    (tmp_path / "answers.json").write_text("[112648]")
    refused(f"open({str(tmp_path / 'answers.json')!r}).read()")
    refused("open('/etc/passwd').read()")


def test_reading_this_test_file_is_refused(refused):
    refused(f"open({os.path.abspath(__file__)!r}).read()")


def test_listing_folders_is_refused(refused):
    refused("os.listdir('/')")
    refused("os.listdir('.')")


def test_writing_files_is_refused(refused, tmp_path):
    refused(f"open({str(tmp_path / 'planted.py')!r}, 'w')")
    refused("open('/tmp/planted.py', 'w')")
    refused("open('/dev/shm/planted.py', 'w')")
    assert list(tmp_path.iterdir()) == []


def test_deleting_renaming_and_linking_are_refused(refused, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("here")
    for attempt in ("os.unlink({0})", "os.rename({0}, {0} + 'x')", "os.link({0}, {0} + 'x')", "os.truncate({0}, 0)"):
        refused(attempt.format(repr(str(victim))))
    refused(f"os.mkdir({str(tmp_path / 'folder')!r})")
    refused(f"os.chmod({str(victim)!r}, 0)")
    assert [path.name for path in tmp_path.iterdir()] == ["victim"]
    assert victim.read_text() == "here"


def test_the_environment_holds_no_secret(comes_to):
    assert comes_to("""
        import os
        def secret(n):
            return [name for name, value in os.environ.items() if "SECRET" in name or "swordfish" in value]
    """) == {("wrong_value", "[]")}


def test_no_descriptor_is_inherited_but_the_standard_ones_and_the_channel(comes_to):
    assert comes_to("""
        import os
        def secret(n):
            found = []
            for fd in range(64):
                try:
                    os.fstat(fd)
                    found.append(fd)
                except OSError:
                    pass
            return found
    """) == {("wrong_value", "[0, 1, 2, 3]")}


def test_rare_kernel_interfaces_are_refused(refused):
    names = {"bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425), "keyctl": (250, 219),
             "userfaultfd": (323, 282), "open_by_handle_at": (304, 265), "shmget": (29, 194)}  # fmt: skip
    for x86, arm in names.values():
        refused(f"call({x86} if os.uname().machine == 'x86_64' else {arm}, 0, 0, 0, 0, 0)")


def test_a_call_of_the_32_bit_convention_is_fatal_or_refused(comes_to):
    assert comes_to("""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def secret(n):
            return "breached" if libc.syscall(0x40000000 + 39) > 0 else "refused"
    """) <= {("died", "ended by SIGSYS"), ("wrong_value", "'refused'")}
