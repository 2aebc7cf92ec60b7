"""The least bytes that training and serving a model take, by arithmetic alone.

verl trains with float32 master weights, which FSDP2 shards over the GPUs of a policy. Each parameter takes ``WEIGHT`` +
``ADAM`` bytes at rest and ``GRADIENT`` bytes more in an update: 16 in all, as in ZeRO (arXiv 1910.02054, section 3.1).
"""

from dataclasses import dataclass

MIB, GIB = 1 << 20, 1 << 30
WEIGHT, ADAM, GRADIENT = 4, 8, 4
"""Bytes of a parameter in float32, of its two moments of Adam, and of its gradient."""
_FOUR_BYTES = ("float32", "float", "fp32")
_FUSED_BYTES = 18
"""Bytes of a logit with fused kernels: 2 as computed, and 4 each for logits, softmax, log-softmax and gradient."""
_ENGINE_BYTES = 2 * GIB
"""Assumed size of an engine's context and CUDA graphs. It is not measured."""
LABEL_LOSS = 0.6
"""A GPU reports so many GiB less than its label says."""
PROCESSES = {
    "driver": 615 * MIB,
    "Ray": 620 * MIB,  # its own processes of a node, idle workers included
    "queue controller": 285 * MIB,
    "queue storage": 285 * MIB,
    "load balancer": 560 * MIB,
    "episode worker": 630 * MIB,
    "judge": 85 * MIB,
    "program": 20 * MIB,  # a confined interpreter
    "worker": 640 * MIB,
    "server": 1170 * MIB,  # the HTTP server's process and its engine's
}
"""Bytes that processes take without a model, mostly for imports. They are proportional set sizes (shared memory is
divided among its processes) of a run of the preset `cpu`, measured by ``python -m studies.plan_against_measured``. With
CUDA's libraries processes take more."""


@dataclass(frozen=True)
class ModelSize:
    """Sizes of a decoder with a gated MLP, as in Hugging Face's configurations."""

    parameters: int
    layers: int
    hidden: int
    ffn: int
    vocabulary: int

    @property
    def largest_weight(self) -> int:
        """Elements of the largest matrix: the embedding, or a matrix of the MLP."""
        return self.hidden * max(self.vocabulary, self.ffn)


def width(dtype: str) -> int:
    """Bytes of a number of this type; 2 for an unknown name ("auto" is the model's own type, bfloat16)."""
    return 4 if dtype in _FOUR_BYTES else 2


def activation_bytes(size: ModelSize, *, tokens: int, width: int, checkpointing: bool) -> int:
    """Bytes that autograd keeps of one forward pass, without the logits.

    A layer keeps 11 vectors of the hidden size (inputs and results of two norms; queries, keys and values with repeated
    heads; attention's output and its copy; the MLP's input) and 4 vectors of the MLP's size (gate, its SiLU, up,
    product). With gradient checkpointing each layer keeps its input alone, and the layer that is computed again keeps
    everything.
    """
    one_layer = 11 * size.hidden + 4 * size.ffn
    vectors = size.hidden * size.layers + one_layer if checkpointing else one_layer * size.layers
    return tokens * vectors * width


def kv_cache_bytes(size: ModelSize, *, room: int, ranks: int, tokens: int, sequences: int) -> int:
    """Bytes that are left on a card for the KV cache of a vLLM engine, whose weights are in bfloat16.

    A pass takes 4 vectors of the hidden size and 3 of the MLP's for each token, and 4 copies of each sequence's logits
    in float32. The engine's context and graphs take ``_ENGINE_BYTES``.

    Args:
        size: the model's.
        room: bytes of the card that the engine may take.
        ranks: cards that share the engine's weights (tensor parallelism).
        tokens: largest number in a pass, vLLM's ``max_num_batched_tokens``.
        sequences: largest number in a pass, vLLM's ``max_num_seqs``.
    """
    one_pass = tokens * (4 * size.hidden + 3 * size.ffn) * 2 + sequences * size.vocabulary * 4 * 4
    return room - 2 * size.parameters // ranks - one_pass - _ENGINE_BYTES


def logit_bytes(size: ModelSize, *, tokens: int, width: int, chunk: int | None) -> int:
    """Bytes of the logits, and of the tensors that log-probabilities need, between forward and backward pass.

    In bfloat16 with flash-attn's cross entropy there are 2.6 copies: the logits, which become their gradient, and the
    entropy in chunks. In float32 on a CPU there are 5 copies: the logits, the logits without padding, and three
    gradients. verl 0.9.1 was measured at 4.92 copies, with 2,048 tokens and a vocabulary of 49,152.

    Args:
        size: the model's.
        tokens: tokens of the pass.
        width: bytes of a logit as the model computes it.
        chunk: tokens whose logits exist at once; None: all of them.
    """
    if chunk is not None:
        return min(tokens, chunk) * size.vocabulary * _FUSED_BYTES
    return int(tokens * size.vocabulary * width * (2.6 if width == 2 else 5))
