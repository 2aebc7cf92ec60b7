"""Bytes that training and serving a model take at least: arithmetic alone.

verl trains with float32 master weights, which FSDP2 shards over the GPUs of a policy: each parameter takes ``WEIGHT`` +
``ADAM`` bytes at rest and ``GRADIENT`` more in an update, the 16 of ZeRO (arXiv 1910.02054, section 3.1).
"""

from dataclasses import dataclass

MIB, GIB = 1 << 20, 1 << 30
WEIGHT, ADAM, GRADIENT = 4, 8, 4
"""Bytes of a parameter in float32, of Adam's two moments of it, and of its gradient."""
_FOUR_BYTES = ("float32", "float", "fp32")
_FUSED_BYTES = 18
"""Bytes of a logit in such a chunk: as computed, then logits, softmax, log-softmax and gradient in float32."""
_ENGINE_BYTES = 2 * GIB
"""An allowance for an engine's context and CUDA graphs, not a measurement."""
LABEL_LOSS = 0.6
"""GiB that a GPU reports less than its label says."""
PROCESSES = {
    "driver": 615 * MIB,
    "Ray": 620 * MIB,  # its own processes of a node, idle workers included
    "queue controller": 285 * MIB,
    "queue storage": 285 * MIB,
    "load balancer": 560 * MIB,
    "episode worker": 630 * MIB,
    "judge": 85 * MIB,
    "program": 20 * MIB,  # one confined interpreter
    "worker": 640 * MIB,
    "server": 1170 * MIB,  # the HTTP server's process and its engine's
}
"""Bytes that processes take whatever the model is, their imports mostly: proportional set sizes (what several share is
divided among them) of a run of the preset `cpu`, ``python -m studies.plan_against_measured``. With CUDA's
libraries they take more."""


@dataclass(frozen=True)
class ModelSize:
    """A decoder with a gated MLP; the names are those of Hugging Face's configurations."""

    parameters: int
    layers: int
    hidden: int
    ffn: int
    vocabulary: int

    @property
    def largest_weight(self) -> int:
        """Elements of the largest matrix: an embedding, or one of the MLP."""
        return self.hidden * max(self.vocabulary, self.ffn)


def width(dtype: str) -> int:
    """Bytes of a number; 2 for a name that is not known ("auto" is the model's own, bfloat16)."""
    return 4 if dtype in _FOUR_BYTES else 2


def activation_bytes(size: ModelSize, *, tokens: int, width: int, checkpointing: bool) -> int:
    """Bytes that autograd keeps of one forward pass, without the logits.

    A layer keeps 11 vectors of the hidden size (two norms' inputs and results, queries, keys and values with the heads
    repeated, attention's output and its copy, the MLP's input) and 4 of the MLP's (gate, its SiLU, up, product).
    With gradient checkpointing each layer keeps its input, and one layer all of it, while it is computed again.
    """
    one_layer = 11 * size.hidden + 4 * size.ffn
    vectors = size.hidden * size.layers + one_layer if checkpointing else one_layer * size.layers
    return tokens * vectors * width


def kv_cache_bytes(size: ModelSize, *, room: int, ranks: int, tokens: int, sequences: int) -> int:
    """Bytes of the room of a vLLM engine on one card that its weights, in bfloat16, and a pass leave to its KV cache.

    A pass takes 4 vectors of the hidden size and 3 of the MLP's for each token, and 4 copies of each sequence's logits
    in float32; the engine's context and graphs take ``_ENGINE_BYTES``.

    Args:
        size: of the model.
        room: that the engine may take of the card.
        ranks: cards that share the engine's weights (tensor parallelism).
        tokens: most of a pass, vLLM's ``max_num_batched_tokens``.
        sequences: most of a pass, vLLM's ``max_num_seqs``.
    """
    one_pass = tokens * (4 * size.hidden + 3 * size.ffn) * 2 + sequences * size.vocabulary * 4 * 4
    return room - 2 * size.parameters // ranks - one_pass - _ENGINE_BYTES


def logit_bytes(size: ModelSize, *, tokens: int, width: int, chunk: int | None) -> int:
    """Bytes of the logits and what the log-probabilities make of them, while a pass goes from forward to backward.

    Whole, in bfloat16 with flash-attn's cross entropy: 2.6 copies (logits, gradient in their place, entropy in chunks).
    Whole, in float32 on a CPU: 5 (logits, the same without padding, and three of their gradients), as verl 0.9.1 goes
    with 2,048 tokens of 49,152 words: 4.92 measured.

    Args:
        chunk: tokens whose logits exist at once; None: all of them.
    """
    if chunk is not None:
        return min(tokens, chunk) * size.vocabulary * _FUSED_BYTES
    return int(tokens * size.vocabulary * width * (2.6 if width == 2 else 5))
