"""Environment variables of a CPU run, which the driver sets and every Ray worker gets."""

import ctypes

PLATFORM_VARIABLE = "VERL_PLATFORM"
PLATFORM_NAME = "cpu"
TRAINING_THREADS_VARIABLE = "CODE_A1_TRAINING_THREADS"

KV_CACHE_GIB = 1
"""KV cache of a vLLM server. Tiny models need a few MiB, but vLLM accepts only whole GiB."""

# Softmax and its gradient take five times the memory of the logits. On a card, large chunks are faster. Large chunks
# also round the head's gradient less often, since this gradient is a sum of one bfloat16 matrix for each chunk.
LOGITS_MIB = 64
"""MiB of float32 logits that a worker holds at a time."""
LOGITS_MIB_ON_CARD = 512


def logits_chunk(vocabulary: int, *, on_card: bool = False) -> int:
    """Return the number of tokens whose logits exist at the same time, at least 1."""
    room = (LOGITS_MIB_ON_CARD if on_card else LOGITS_MIB) * 2**20
    return max(1, room // (4 * vocabulary))


def cpu_environment(*, threads: int, training_threads: int = 1) -> dict[str, str]:
    """Return variables that verl, vLLM and Ray read on a machine without GPUs.

    Args:
        threads: OpenMP threads of a process, at least 1. Two servers that compute at the same time need a core for each
            thread. With fewer cores, every parallel region waits for a thread that the other server has displaced.
        training_threads: OpenMP threads of a process that trains.
    """
    return {
        PLATFORM_VARIABLE: PLATFORM_NAME,
        "OMP_NUM_THREADS": str(threads),
        TRAINING_THREADS_VARIABLE: str(training_threads),
        # Waiting threads sleep. By default, waiting threads spin on cores that other processes need.
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": str(KV_CACHE_GIB),
        # Binding threads to cores is right for one server that owns the machine, not for two that share it.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # With these values glibc keeps freed memory and uses it again. By default each large block gets new pages. New
        # pages take a sixth of an update's time, and with a large vocabulary a sixth of a server's time.
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
        "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
        # Tiny models would spend longer in the compiler than in training, and a laptop may have no C++ compiler.
        "TORCHDYNAMO_DISABLE": "1",
        # Ray hides all devices from actors that ask for none. The logical devices of a CPU run must stay visible.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


def give_back_freed_memory() -> None:
    """Return the freed memory of tensors to the system. Otherwise glibc keeps memory that another process needs."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
