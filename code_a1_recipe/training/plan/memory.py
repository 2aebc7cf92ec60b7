"""The least memory that training and serving a model take, computed by arithmetic alone.

verl trains with float32 master weights, which FSDP2 shards over the GPUs of a policy. Each parameter always takes
``WEIGHT`` + ``ADAM`` bytes, and ``GRADIENT`` bytes more during an update. Together a parameter takes 16 bytes, as in
ZeRO (arXiv 1910.02054, section 3.1).
"""

from dataclasses import dataclass

MIB, GIB = 1 << 20, 1 << 30
WEIGHT, ADAM, GRADIENT = 4, 8, 4
"""Bytes of a parameter in float32, of its two moments of Adam, and of its gradient."""
_FOUR_BYTES = ("float32", "float", "fp32")
_FUSED_BYTES = 18
"""Bytes of a logit with fused kernels: 2 bytes for the computed logit, and 4 bytes each for its float32 copy, softmax,
log-softmax and gradient."""
_ENGINE_BYTES = 2 * GIB
"""Size of an engine's context and CUDA graphs. The size is assumed and was not measured."""
LABEL_LOSS = 0.6
"""GiB by which the reported memory of a GPU is smaller than the label says."""
PROCESSES = {
    "driver": 615 * MIB,
    "Ray": 620 * MIB,  # all of Ray's own processes on a node, idle workers included
    "queue controller": 285 * MIB,
    "queue storage": 285 * MIB,
    "load balancer": 560 * MIB,
    "episode worker": 630 * MIB,
    "judge": 85 * MIB,
    "program": 20 * MIB,  # a confined interpreter
    "worker": 640 * MIB,
    "server": 1170 * MIB,  # the processes of the HTTP server and of the engine
}
"""Bytes that processes take without a model, mostly for imports.

The values are proportional set sizes: memory that several processes share is divided among these processes. The values
were measured in a run of the preset `cpu`. With CUDA's libraries processes take more."""


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
        """Number of elements of the largest matrix: the embedding, or a matrix of the MLP."""
        return self.hidden * max(self.vocabulary, self.ffn)


def width(dtype: str) -> int:
    """Return the bytes of a number of this type; 2 for an unknown name ("auto" is the model's own type, bfloat16)."""
    return 4 if dtype in _FOUR_BYTES else 2


def activation_bytes(size: ModelSize, *, tokens: int, width: int, checkpointing: bool) -> int:
    """Return the bytes that autograd keeps of one forward pass, without the logits.

    For each token a layer keeps 11 vectors of the hidden size and 4 vectors of the MLP's size. The vectors of the
    hidden size are inputs and results of two norms; queries, keys and values with repeated heads; attention's output
    and its copy; the MLP's input. The vectors of the MLP's size are gate, SiLU of the gate, up and product. With
    gradient checkpointing every layer keeps only its input. One layer at a time is computed again, and keeps all its
    vectors.
    """
    one_layer = 11 * size.hidden + 4 * size.ffn
    vectors = size.hidden * size.layers + one_layer if checkpointing else one_layer * size.layers
    return tokens * vectors * width


def kv_cache_bytes(size: ModelSize, *, room: int, ranks: int, tokens: int, sequences: int) -> int:
    """Return the bytes that are left on a card for the KV cache of a vLLM engine with weights in bfloat16.

    A pass takes 4 vectors of the hidden size and 3 of the MLP's size for each token, and 4 copies of each sequence's
    logits in float32. The engine's context and graphs take ``_ENGINE_BYTES``.

    Args:
        size: size of the model.
        room: bytes of the card that the engine may take.
        ranks: number of cards that share the engine's weights (tensor parallelism).
        tokens: largest number of tokens in a pass, vLLM's ``max_num_batched_tokens``.
        sequences: largest number of sequences in a pass, vLLM's ``max_num_seqs``.
    """
    weights = 2 * size.parameters // ranks
    activations = tokens * (4 * size.hidden + 3 * size.ffn) * 2
    logits = sequences * size.vocabulary * 4 * 4
    return room - weights - activations - logits - _ENGINE_BYTES


def logit_bytes(size: ModelSize, *, tokens: int, width: int, chunk: int | None) -> int:
    """Return the bytes of the logits, and of the tensors that log-probabilities need until the backward pass.

    In bfloat16 with flash-attn's cross entropy, all tensors together are as large as 2.6 copies of the logits. The
    gradient overwrites the logits, and the entropy is computed in chunks. In float32 on a CPU there are 5 copies: the
    logits, the logits without padding, and three gradients. verl 0.9.1 was measured at 4.92 copies, with 2,048 tokens
    and a vocabulary of 49,152.

    Args:
        size: size of the model.
        tokens: number of tokens in the pass.
        width: bytes of a logit as the model computes it.
        chunk: number of tokens whose logits exist at the same time; None means all.
    """
    if chunk is not None:
        return min(tokens, chunk) * size.vocabulary * _FUSED_BYTES
    return int(tokens * size.vocabulary * width * (2.6 if width == 2 else 5))
