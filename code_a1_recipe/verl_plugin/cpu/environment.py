"""Environment variables of a CPU run, set in the driver and handed to every Ray worker."""

import ctypes

PLATFORM_VARIABLE = "VERL_PLATFORM"
PLATFORM_NAME = "cpu"
TRAINING_THREADS_VARIABLE = "CODE_A1_TRAINING_THREADS"

# GiB of KV cache per vLLM server. Tiny models need a few MiB; vLLM takes whole GiB only.
KV_CACHE_GIB = 1

# MiB of float32 logits that a worker holds at a time; their softmax and its gradient take five times as much. On a card
# few large chunks are faster, and the head's gradient, a sum of one bfloat16 matrix a chunk, is rounded less often
LOGITS_MIB = 64
LOGITS_MIB_ON_CARD = 512


def logits_chunk(vocabulary: int, *, on_card: bool = False) -> int:
    """Tokens whose logits exist at a time, at least 1."""
    return max(1, (LOGITS_MIB_ON_CARD if on_card else LOGITS_MIB) * 2**20 // (4 * vocabulary))


def cpu_environment(*, threads: int, training_threads: int = 1) -> dict[str, str]:
    """Variables that verl, vLLM and Ray read on a CPU-only machine.

    Args:
        threads: OpenMP threads per process, at least 1. Two servers that compute at the same time need a core for each
            thread: otherwise every parallel region waits for one that the other server has displaced.
        training_threads: of a process that trains.
    """
    return {
        PLATFORM_VARIABLE: PLATFORM_NAME,
        "OMP_NUM_THREADS": str(threads),
        TRAINING_THREADS_VARIABLE: str(training_threads),
        # Threads that wait for their next work sleep; by default they spin, on cores that other processes need.
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": str(KV_CACHE_GIB),
        # Binding threads to cores is right for one server that owns the machine, not for two that share it.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # glibc uses freed memory again. By default large pieces are new pages each time: a sixth of an update's time,
        # and of what a server computes for a large vocabulary
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
        "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
        # Tiny models spend longer in the compiler than in training, and a laptop may have none for C++.
        "TORCHDYNAMO_DISABLE": "1",
        # Ray clears the visible devices of actors that ask for none; the logical devices of a CPU run are
        # only bookkeeping and must stay as they are.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Ray starts a process for each logical CPU beforehand; an actor with variables of its own gets another one.
        "RAY_prestart_worker_first_driver": "0",
    }


def give_back_freed_memory() -> None:
    """Hand what tensors took back to the system: glibc keeps freed pieces, while another process has its turn."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
