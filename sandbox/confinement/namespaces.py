"""Namespaces around a fork server's programs, and a private writable folder for each program (tier 1).

The fork server sets up these things once:

- mount, pid, network, ipc and uts namespaces, and a user namespace unless it may already mount
- a sleeping init for the pid namespace
- a root that holds only the readable paths, read-only

Each program then gets its own mount namespace with a new tmpfs, which the kernel removes with the program.

Only the children of the fork server enter the new pid namespace. The fork server itself stays outside, so it reports
the same pids that its parent sees, and signals, waits and CPU clocks work as in tier 0.
"""

import contextlib
import ctypes
import errno
import os
import select
import stat
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from .libc import check, end_with_parent, libc

SCRATCH_PARENT = "/scratch"
"""Folder that holds only the mount point. A Landlock rule for it covers everything that is mounted below."""
SCRATCH = f"{SCRATCH_PARENT}/tmp"
TMP = "/tmp"
"""Link to the scratch folder, and HOME of the programs."""
NOBODY = 65534
"""The kernel's overflow id. It is mapped in every user namespace and owns no file."""

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
_MNT_DETACH = 2
# System calls that mount by descriptors. The numbers are the same on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_RDONLY = 1, 4, 1
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_CAP_SYS_ADMIN = 21
_STAGE = "/proc"
"""Folder where the new root is built, because it exists everywhere. Only this process loses sight of /proc."""
_HIDDEN = "/readable"
_MAX_LINKS = 40
SLEEPER = "/bin/sleep"
"""Program that becomes the init of the pid namespace. Without it a fork of the fork server sleeps there."""
HINTS = {
    "unshare": "namespaces are closed to this user: as root in a container start it with CAP_SYS_ADMIN; as another "
    "user allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 on "
    "Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, a seccomp profile of the container that "
    "lets unshare through)",
    "map": "the interpreter's own user could not be mapped into a user namespace: make the interpreter's file "
    "readable for this user",
    "mount": "mounts are closed to this process (AppArmor or SELinux, or a seccomp profile of the container) or the "
    "kernel is older than 5.12",
    "init": "no process could be started in a new pid namespace: see the limits on processes",
}
"""Hint for the user for each step that may be refused."""


class NamespaceError(OSError):
    """The machine refused a step of tier 1. The message names the step and what helps."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(error.errno, f"{error.strerror}. Hint: {HINTS[step]}; or ask for tier 0")

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Contents of a small root in which a set of paths can be read."""

    binds: tuple[str, ...]
    """Real paths, none inside another one."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links on the way to these paths, each with its place and its target."""


def plan_layout(paths: Iterable[str]) -> Layout:
    """Plan the mounts and links of a root in which every path reads as it does now."""
    links: dict[str, str] = {}
    binds: list[str] = []
    # Sorted, so that a folder comes before the paths inside it.
    for path in sorted({_resolve(path, links) for path in paths}):
        if not any(_is_within(path, folder) for folder in binds):
            binds.append(path)
    # A link inside a bind exists already, and /tmp becomes a link itself.
    covered = (TMP, *binds)
    outside = [link for link in links.items() if not any(_is_within(link[0], folder) for folder in covered)]
    return Layout(binds=tuple(binds), links=tuple(sorted(outside)))


def _resolve(path: str, links: dict[str, str]) -> str:
    """Return the real path, and add the links on the way to ``links``."""
    current, rest = "/", deque(path.split("/"))
    num_links = 0
    while rest:
        part = rest.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
            continue
        step = os.path.join(current, part)
        if not os.path.islink(step):
            current = step
            continue
        if (num_links := num_links + 1) > _MAX_LINKS:
            raise OSError(errno.ELOOP, f"{path}: {os.strerror(errno.ELOOP)}")
        links[step] = os.readlink(step)
        rest.extendleft(reversed(links[step].split("/")))
        if links[step].startswith("/"):
            current = "/"
    return current


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Namespaces:
    """Namespaces of this process's future children."""

    def __init__(self) -> None:
        """Enter new namespaces. The process must have only one thread, and its own user must be able to inspect it.

        Raises:
            NamespaceError: the machine refuses a step.
        """
        needs_user = not may_mount()
        flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
        uid, gid = os.geteuid(), os.getegid()
        _step("unshare", libc.unshare(flags | (_CLONE_NEWUSER if needs_user else 0)), "unshare")
        if needs_user:
            try:
                # The kernel requires this before an unprivileged process may map gids.
                _write("/proc/self/setgroups", "deny")
                _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
                _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
            except OSError as error:
                raise NamespaceError("map", error) from error
        # Otherwise the mounts of this process would also appear outside.
        _step("mount", libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "make mounts private")
        self._lifeline, self._init = _start_init()

    def is_over(self) -> bool:
        """Return True if the pid namespace has lost its init, so that no process can be forked into it any more."""
        return os.waitpid(self._init, os.WNOHANG)[0] != 0

    def enter_root(self, layout: Layout) -> "Scratch":
        """Give this process a read-only root that holds the layout and the mount point of the scratch folders.

        Raises:
            NamespaceError: the machine refuses a step.
        """
        # First, because the new root hides the paths.
        trees = [(path, _clone_tree(path)) for path in layout.binds]
        _mount_tmpfs(_STAGE, _MS_NOSUID | _MS_NODEV, "mode=755,size=1m,nr_inodes=4096")
        hidden: list[tuple[str, str]] = []
        for path, tree in trees:
            _set_readonly(tree, "", _AT_EMPTY_PATH | _AT_RECURSIVE)
            place = path
            # A scratch folder will cover this path, so it waits elsewhere and is mounted into each scratch folder.
            if _is_within(path, TMP) or _is_within(path, SCRATCH_PARENT):
                place = f"{_HIDDEN}/{len(hidden)}"
                hidden.append((place, path))
            _make_mount_point(_STAGE + place, is_folder=stat.S_ISDIR(os.stat(tree).st_mode))
            _move_tree(tree, _STAGE + place)
        for link, target in (*layout.links, (TMP, SCRATCH)):
            os.makedirs(os.path.dirname(_STAGE + link), exist_ok=True)
            os.symlink(target, _STAGE + link)
        os.makedirs(_STAGE + SCRATCH)
        os.chdir(_STAGE)
        # Onto the same folder. The old root then lies on top of the new one and needs no mount point of its own.
        _step("mount", libc.pivot_root(b".", b"."), "pivot_root")
        _step("mount", libc.umount2(b".", _MNT_DETACH), "leave the old root")
        os.chdir("/")
        # Last, because the steps before write into the root.
        _set_readonly(_AT_FDCWD, "/", 0)
        return Scratch(hidden)


class Scratch:
    """Private writable folder of one program. Each child enters it once, before it drops its privileges."""

    def __init__(self, hidden: Iterable[tuple[str, str]]) -> None:
        self._hidden = tuple(hidden)
        ways = (path.removeprefix(TMP).strip("/").split("/") for _, path in self._hidden)
        self._num_mount_inodes = len({tuple(way[: depth + 1]) for way in ways for depth in range(len(way))})
        """Folders and files on the way to readable paths inside the folder. They do not count for ``num_files``."""

    def place_of(self, path: str) -> str:
        """Return the place of a readable path in the fork server's root: another one if scratch folders cover it."""
        return next((place for place, covered in self._hidden if covered == path), path)

    def enter(self, *, size_bytes: int, num_files: int, uid: int, gid: int) -> None:
        """Mount an empty folder that only this process sees and that ends with it, and make it the working directory.

        Args:
            size_bytes: most bytes in the folder.
            num_files: most files, folders and links in it.
            uid: owner of the folder.
            gid: group of the folder.

        Raises:
            NamespaceError: the system refused it.
        """
        _step("mount", libc.unshare(_CLONE_NEWNS), "unshare the mounts")
        num_inodes = num_files + 1 + self._num_mount_inodes  # the folder itself takes one
        options = f"mode=700,size={size_bytes},uid={uid},gid={gid},nr_inodes={num_inodes}"
        _mount_tmpfs(SCRATCH, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
        for place, path in self._hidden:
            target = SCRATCH + path.removeprefix(TMP)
            _make_mount_point(target, is_folder=os.path.isdir(place))
            _move_tree(_clone_tree(place), target)
        os.chdir(SCRATCH)


def may_mount() -> bool:
    """Return True if this process has CAP_SYS_ADMIN, so that it may make namespaces and mounts."""
    with open("/proc/self/status") as handle:
        effective = next(int(line.split()[1], 16) for line in handle if line.startswith("CapEff:"))
    return bool(effective & 1 << _CAP_SYS_ADMIN)


def _start_init() -> tuple[int, int]:
    """Start the init of the pid namespace, which sleeps until the fork server ends. Its end kills every program.

    Returns:
        Our end of a pipe, whose closing also ends the init, and the init's pid.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        raise NamespaceError("init", error) from error
    if pid == 0:
        _sleep_as_init(reading)
    os.close(reading)
    return writing, pid


def _sleep_as_init(lifeline: int) -> None:
    """Sleep until the fork server ends, which a signal or the end of the pipe tells. Never returns."""
    try:
        os.closerange(0, lifeline)
        os.closerange(lifeline + 1, 1 << 20)
        end_with_parent()
        if select.select([lifeline], [], [], 0)[0]:
            return  # the fork server ended before the signal was set
        with contextlib.suppress(OSError):
            os.execv(SLEEPER, [SLEEPER, "2147483647"])  # saves eight megabytes of an interpreter
        os.read(lifeline, 1)
    finally:
        os._exit(0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as handle:
        handle.write(text)


def _step(step: str, result: int, what: str) -> int:
    try:
        return check(result, what)
    except OSError as error:
        raise NamespaceError(step, error) from error


def _mount_tmpfs(place: str, flags: int, options: str) -> None:
    mounted = libc.mount(b"tmpfs", place.encode(), b"tmpfs", ctypes.c_ulong(flags), options.encode())
    _step("mount", mounted, f"mount a tmpfs on {place}")


def _clone_tree(path: str) -> int:
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    tree = libc.syscall(_OPEN_TREE, ctypes.c_int(_AT_FDCWD), os.fsencode(path), ctypes.c_uint(flags))
    return _step("mount", int(tree), f"open_tree {path}")


def _move_tree(tree: int, place: str) -> None:
    """Attach a detached tree and close its descriptor."""
    arguments = (ctypes.c_int(tree), b"", ctypes.c_int(_AT_FDCWD), os.fsencode(place))
    moved = libc.syscall(_MOVE_MOUNT, *arguments, ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH))
    _step("mount", int(moved), f"move_mount to {place}")
    os.close(tree)


def _set_readonly(folder: int, path: str, flags: int) -> None:
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)  # set, clear, propagation, user namespace
    arguments = (ctypes.c_int(folder), path.encode(), ctypes.c_uint(flags), attributes)
    done = libc.syscall(_MOUNT_SETATTR, *arguments, ctypes.c_size_t(len(attributes)))
    _step("mount", int(done), "mount_setattr read-only")


def _make_mount_point(place: str, *, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(place, exist_ok=True)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
