"""Namespaces around a fork server's programs, and a private writable folder for each program (tier 1).

The fork server sets up these things once:

- mount, pid, network, ipc and uts namespaces; also a user namespace, unless the fork server already has the right to
  mount
- a sleeping init for the pid namespace
- a read-only root that holds only the readable paths

Each program then gets its own mount namespace with a new tmpfs, which the kernel removes when the program ends.

Only the children of the fork server enter the new pid namespace. The fork server itself stays outside of it. So the
fork server reports the pids that its parent sees. As in tier 0, these pids work for signals, waiting and CPU clocks.
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
"""Folder that holds only the mount point of the scratch folders. A Landlock rule for this folder also covers the mounts
below the folder."""
SCRATCH = f"{SCRATCH_PARENT}/tmp"
TMP = "/tmp"
"""A link to the scratch folder, and the programs' HOME."""
NOBODY = 65534
"""The kernel's overflow uid and gid, which own no file."""

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
_MNT_DETACH = 2
# System calls that mount by descriptors. These calls have the same numbers on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_RDONLY = 1, 4, 1
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_CAP_SYS_ADMIN = 21
_STAGE = "/proc"
"""Folder on which the new root is built. /proc exists on every machine, and only this process loses it."""
_HIDDEN = "/readable"
"""Folder in the new root for readable paths that scratch folders cover."""
_MAX_LINKS = 40
_SLEEPER = "/bin/sleep"
"""Program that runs as the init of the pid namespace. If a machine lacks this program, a fork of the fork server sleeps
in its place."""
_HINTS = {
    "unshare": "namespaces are closed to this user: as root in a container, start the container with CAP_SYS_ADMIN; as "
    "another user, allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 "
    "on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, a seccomp profile of the container that "
    "allows unshare)",
    "map": "the interpreter's own user could not be mapped into a user namespace: make the interpreter's file "
    "readable for this user",
    "mount": "AppArmor, SELinux or the container's seccomp profile forbids mounts: allow them; or the kernel is older "
    "than 5.12: use a newer one",
    "init": "no process could be started in a new pid namespace: raise the limits on processes",
}
"""Maps each step to a hint for the user. The hint is shown if the machine refuses the step."""


class NamespaceError(OSError):
    """The machine refused a step of tier 1. The message names the step and gives a hint."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(error.errno, f"{error.strerror}. Hint: {_HINTS[step]}; or ask for tier 0")

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The contents of a new, small root directory."""

    binds: tuple[str, ...]
    """Real paths that are mounted in the new root. No path lies inside another one."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links that lead to the mounted paths. Each pair holds the place and the target of a link."""


def plan_layout(paths: Iterable[str]) -> Layout:
    """Plan a root directory in which every path can be read under its present name."""
    links: dict[str, str] = {}
    real_paths = {_resolve(path, links) for path in paths}
    binds: list[str] = []
    # Sorting puts a folder before the paths inside it.
    for path in sorted(real_paths):
        if not _is_within_any(path, binds):
            binds.append(path)
    # A link inside a mounted path exists already, and /tmp itself becomes a link.
    covered = (TMP, *binds)
    outside = [(place, target) for place, target in sorted(links.items()) if not _is_within_any(place, covered)]
    return Layout(binds=tuple(binds), links=tuple(outside))


def _resolve(path: str, links: dict[str, str]) -> str:
    """Return the real path of ``path``. Each symbolic link on the way is added to ``links``."""
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


def _is_within_any(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


class Namespaces:
    """New namespaces for the future children of this process."""

    def __init__(self) -> None:
        """Enter new namespaces. Call this while the process has one thread, and before ``forbid_inspection``.

        Raises:
            NamespaceError: the machine refuses a step.
        """
        self.has_own_user = not _may_mount()
        """True if the namespaces include a user namespace."""
        uid, gid = os.geteuid(), os.getegid()
        flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
        if self.has_own_user:
            flags |= _CLONE_NEWUSER
        _step("unshare", libc.unshare(flags), "unshare")
        if self.has_own_user:
            try:
                # The kernel requires this line before an unprivileged process may map gids.
                _write("/proc/self/setgroups", "deny")
                _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
                _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
            except OSError as error:
                raise NamespaceError("map", error) from error
        # Without this step, the mounts of this process would also appear outside of its namespace.
        _step("mount", libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "make mounts private")
        self._lifeline, self._init = _start_init()

    def is_over(self) -> bool:
        """Return True if the init of the pid namespace has ended. No process can then be forked into the namespace."""
        return os.waitpid(self._init, os.WNOHANG)[0] != 0

    def enter_root(self, layout: Layout) -> "Scratch":
        """Give this process a read-only root that holds the layout and the mount point of the scratch folders.

        Raises:
            NamespaceError: the machine refuses a step.
        """
        # The paths are cloned first, because the new root hides them.
        trees = {path: _clone_tree(path) for path in layout.binds}
        _mount_tmpfs(_STAGE, _MS_NOSUID | _MS_NODEV, "mode=755,size=1m,nr_inodes=4096")
        hidden: list[tuple[str, str]] = []
        for path, tree in trees.items():
            _set_readonly(tree, "", _AT_EMPTY_PATH | _AT_RECURSIVE)
            place = path
            # A scratch folder will cover this path. So the path is mounted elsewhere now, and later into each scratch
            # folder.
            if _is_within_any(path, (TMP, SCRATCH_PARENT)):
                place = f"{_HIDDEN}/{len(hidden)}"
                hidden.append((place, path))
            mount_point = _STAGE + place
            is_folder = stat.S_ISDIR(os.stat(tree).st_mode)
            _make_mount_point(mount_point, is_folder=is_folder)
            _move_tree(tree, mount_point)
        for link, target in (*layout.links, (TMP, SCRATCH)):
            place = _STAGE + link
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.symlink(target, place)
        os.makedirs(_STAGE + SCRATCH)
        os.chdir(_STAGE)
        # Both arguments are the same folder, so the old root lies on top of the new one and needs no mount point.
        _step("mount", libc.pivot_root(b".", b"."), "pivot_root")
        _step("mount", libc.umount2(b".", _MNT_DETACH), "leave the old root")
        os.chdir("/")
        # The root becomes read-only last, because the steps before write into it.
        _set_readonly(_AT_FDCWD, "/", 0)
        return Scratch(hidden)


class Scratch:
    """The private writable folder of each program.

    Args:
        hidden: pairs of a place in the fork server's root and the readable path whose content is at this place. Scratch
            folders cover these readable paths, so each scratch folder gets mounts of them.
    """

    def __init__(self, hidden: list[tuple[str, str]]) -> None:
        self._hidden = hidden
        mounts = set()
        for _, path in hidden:
            way = ""
            for part in path.removeprefix(TMP).strip("/").split("/"):
                way += f"/{part}"
                mounts.add(way)
        self._num_mount_inodes = len(mounts)
        """Number of folders and files that lead to the hidden paths. These folders and files do not count in
        ``num_files``."""

    def place_of(self, path: str) -> str:
        """Return the place of a readable path in the fork server's root. If scratch folders cover the path, the place
        differs from the path."""
        for place, covered in self._hidden:
            if covered == path:
                return place
        return path

    def enter(self, *, size_bytes: int, num_files: int, uid: int, gid: int) -> None:
        """Mount an empty working directory that only this process sees. The kernel removes the directory when the
        process ends.

        A process must call this before it drops its privileges.

        Args:
            size_bytes: maximum number of bytes in the folder.
            num_files: maximum number of files, folders and links in the folder.
            uid: owner of the folder.
            gid: group of the folder.

        Raises:
            NamespaceError: the machine refuses a step.
        """
        _step("mount", libc.unshare(_CLONE_NEWNS), "unshare the mounts")
        num_inodes = 1 + num_files + self._num_mount_inodes  # 1 is the folder itself
        options = f"mode=700,size={size_bytes},uid={uid},gid={gid},nr_inodes={num_inodes}"
        _mount_tmpfs(SCRATCH, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
        for place, path in self._hidden:
            target = SCRATCH + path.removeprefix(TMP)
            _make_mount_point(target, is_folder=os.path.isdir(place))
            _move_tree(_clone_tree(place), target)
        os.chdir(SCRATCH)


def _may_mount() -> bool:
    """Return True if this process has CAP_SYS_ADMIN, with which it may make namespaces and mounts."""
    with open("/proc/self/status") as handle:
        (line,) = (line for line in handle if line.startswith("CapEff:"))
    effective = int(line.split()[1], 16)
    return bool(effective & 1 << _CAP_SYS_ADMIN)


def _start_init() -> tuple[int, int]:
    """Start the init of the pid namespace, which sleeps until the fork server ends.

    When the init ends, the kernel kills every program in the namespace.

    Returns:
        Our end of a pipe, and the init's pid. The pipe must stay open while programs run.
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
    """Sleep until a signal or the end of the pipe tells that the fork server has ended. Never return."""
    try:
        os.closerange(0, lifeline)
        os.closerange(lifeline + 1, 1 << 20)
        end_with_parent()
        if select.select([lifeline], [], [], 0)[0]:
            return  # the fork server ended before `end_with_parent`
        with contextlib.suppress(OSError):
            os.execv(_SLEEPER, [_SLEEPER, "2147483647"])  # this program uses eight megabytes less than this interpreter
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
    """Mount a detached tree on ``place`` and close the tree's descriptor."""
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
