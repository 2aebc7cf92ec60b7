"""Sets the resource limits of a process, for the jail and for the harness of a SandboxFusion service."""

import resource


def set_rlimits(
    *,
    address_bytes: int,
    cpu_seconds: int,
    open_files: int,
    file_bytes: int,
    stack_bytes: int,
    threads: int | None,
) -> None:
    """Lower the resource limits of this process. A hard limit that is already lower stays.

    Args:
        address_bytes: size of the whole address space, which includes the interpreter.
        cpu_seconds: CPU time after which the kernel ends the process.
        open_files: highest descriptor plus one.
        file_bytes: longest file that the process may write.
        stack_bytes: stack of the main thread. Programs may raise this limit again, as some do for deep recursion.
        threads: maximum number of processes and threads that this process's uid may have. None sets no limit.
    """
    _lower(resource.RLIMIT_AS, address_bytes, address_bytes)
    _lower(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _lower(resource.RLIMIT_NOFILE, open_files, open_files)
    _lower(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    _lower(resource.RLIMIT_CORE, 0, 0)
    _lower(resource.RLIMIT_STACK, stack_bytes, resource.RLIM_INFINITY)
    if threads is not None:
        _lower(resource.RLIMIT_NPROC, threads, threads)


def _lower(which: int, soft: int, hard: int) -> None:
    _, ceiling = resource.getrlimit(which)
    # RLIM_INFINITY is -1, so `min` would take it for the smallest limit.
    if ceiling != resource.RLIM_INFINITY:
        hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(which, (soft, hard))
