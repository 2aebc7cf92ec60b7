"""verl's FSDP engine with packed rows, for CPUs and NVIDIA cards (through verl's ``EngineRegistry``)."""

import copy
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.fsdp import FSDPModule
from verl.models.transformers.dense_common import CausalLMOutputForPPO
from verl.utils.device import get_device_name
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.utils.tensordict_utils import assign_non_tensor, get_non_tensor_data
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.losses import ppo_loss

from . import own_log_probs
from .cpu.environment import PLATFORM_NAME, TRAINING_THREADS_VARIABLE, give_back_freed_memory, logits_chunk
from .packed_rows import Segments, attend_to_segments, response_positions, share_prompts


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class PackedFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine for groups of responses to one prompt.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` a group's prompt is computed once for all of its
    responses. Logits are computed only for responses, and only for some tokens at a time (``logits_chunk``). On one
    rank, an update skips rows whose advantages are all zero. Groups with equal rewards have such rows. If rows are
    split over ranks (``ulysses_sequence_parallel_size`` above 1), verl's own engine computes all rows.
    """

    def _build_fsdp_module(self, module: Any) -> Any:
        if not _on_cpu():
            return super()._build_fsdp_module(module)
        # For a forward-only engine verl asks for CPUOffloadPolicy(pin_memory=True). Pinned memory needs an accelerator,
        # and is useless on a CPU, since the parameters are in its memory already.
        engine_config = self.engine_config
        self.engine_config = copy.copy(engine_config)
        object.__setattr__(self.engine_config, "forward_only", False)  # verl freezes its configs
        try:
            return super()._build_fsdp_module(module)
        finally:
            self.engine_config = engine_config

    @property
    def _keeps_responses_only(self) -> bool:
        is_packed = self.model_config.use_fused_kernels and self.use_remove_padding
        return bool(is_packed and self.engine_config.ulysses_sequence_parallel_size == 1)

    def _build_module(self) -> Any:
        if _on_cpu():
            torch.set_num_threads(int(os.environ.get(TRAINING_THREADS_VARIABLE, "1")))
        # With determinism torch fills new memory with a value, which takes a tenth of an update. The fill is useless,
        # since all memory is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False
        module = super()._build_module()
        if self._keeps_responses_only:
            type(module).forward = forward_with_log_probs  # verl's forward would compute logits of all positions
            module.config._attn_implementation = attend_to_segments.__name__
        return module

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        with super().disable_adapter():
            # In its first pass FSDP notes which parameters are trained. The first pass may compute the reference, for
            # which PEFT marks the adapter as not trained. FSDP would then sum the adapter's gradients in bfloat16.
            for parameter in trained:
                parameter.requires_grad_()
            yield

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        if self._keeps_responses_only and get_non_tensor_data(data, "use_dynamic_bsz", default=True):
            self._keep_groups_together(data)
        results = super().forward_backward_batch(data, loss_function, forward_only)
        if _on_cpu():
            give_back_freed_memory()
        return results

    def _keep_groups_together(self, data: Any) -> None:
        """Let verl cut a batch into micro-batches of whole groups, with a token budget that counts a prompt once.

        verl counts the prompt of a group once for each response, so the user's budget is multiplied by a factor. With
        this factor no micro-batch computes more tokens than the user's budget.
        """
        input_ids = data["input_ids"]  # nested, (rows, tokens)
        prompts = []
        for ids, mask in zip(input_ids.unbind(), data["response_mask"].unbind(), strict=True):
            prompt_length = len(ids) - len(mask)
            prompts.append(ids[:prompt_length].tolist())
        # verl needs groups of equal size. A prompt with more rows than this size becomes several groups.
        size = math.gcd(*(len(list(same)) for _, same in groupby(prompts)))
        row_tokens = input_ids.offsets().diff()  # (rows,)
        tokens = row_tokens.view(-1, size).sum(dim=1).float()  # (groups,)
        first_prompts = prompts[::size]
        repeated = tokens.new_tensor([(size - 1) * len(prompt) for prompt in first_prompts])  # (groups,)
        smallest_factor = (tokens / (tokens - repeated)).min()
        bounds = torch.stack((-smallest_factor, tokens.max()))
        if self.get_data_parallel_size() > 1:  # all ranks must have the same number of micro-batches
            distributed.all_reduce(bounds, distributed.ReduceOp.MAX, self.get_data_parallel_group())
        negative_factor, longest = bounds.tolist()
        budget = int(-negative_factor * data["max_token_len_per_gpu"])
        assign_non_tensor(
            data,
            force_group_size=size,
            max_token_len_per_gpu=max(budget, int(longest)),
        )

    @contextmanager
    def _gradient_sync_context(self, *, is_last_micro_batch: bool) -> Iterator[None]:
        # verl sums gradients over ranks only in the last micro-batch. A single sum saves traffic between cards, but
        # verl then holds gradients twice. On a CPU the last micro-batch may have no gradient.
        if _on_cpu() or self.get_data_parallel_size() == 1:
            yield
            return
        with super()._gradient_sync_context(is_last_micro_batch=is_last_micro_batch):
            yield

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        if forward_only:
            return super().forward_step(micro_batch, loss_function, forward_only)
        # With several ranks, all ranks must compute, since each pass gathers weights from all ranks.
        learns = self.get_data_parallel_size() > 1 or not has_no_gradient(loss_function, micro_batch)
        takes_own = get_non_tensor_data(micro_batch, own_log_probs.FLAG, default=False)
        if takes_own:
            keeps_entropy = get_non_tensor_data(micro_batch, "calculate_entropy", default=False)
            assign_non_tensor(micro_batch, calculate_entropy=True)
            loss_function = partial(
                own_log_probs.loss_with_own_log_probs,
                loss_function,
                keeps_entropy=keeps_entropy,
            )
        if learns:
            return super().forward_step(micro_batch, loss_function, forward_only)
        sums = {}
        if takes_own:  # metrics like the entropy count all rows, also rows that train nothing
            with torch.no_grad():
                _, output = super().forward_step(micro_batch, loss_function, forward_only)
            for name, value in output["metrics"].items():
                if name.startswith(own_log_probs.PREFIX):
                    sums[name] = value
        no_loss = torch.zeros((), requires_grad=True)
        return no_loss, {"loss": 0.0, "metrics": sums}

    def optimizer_step(self) -> Any:
        for parameter in self.module.parameters():
            if parameter.requires_grad and parameter.grad is None:
                # AdamW skips a parameter without a gradient, but the parameter's momentum should still move it.
                parameter.grad = torch.zeros_like(parameter)
        norm = super().optimizer_step()
        self.optimizer.zero_grad()  # verl would keep the memory of gradients until the next update
        if _on_cpu():
            give_back_freed_memory()
        return norm

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if not self._keeps_responses_only:
            return inputs, output_args
        ids = inputs["input_ids"]  # (1, tokens)
        offsets = micro_batch["input_ids"].offsets().cpu()  # (sequences + 1,)
        lengths = micro_batch["response_mask"].offsets().diff().cpu()  # (sequences,)
        kept, places, seen = share_prompts(ids[0].cpu(), offsets, lengths)
        log_probs_at = response_positions(offsets, lengths)
        inputs["segments"] = Segments.of(seen, device=ids.device)
        inputs["attention_mask"] = None
        kept = kept.to(ids.device)
        inputs["input_ids"] = ids[:, kept]
        inputs["position_ids"] = inputs["position_ids"][:, kept]
        inputs["log_probs_at"] = log_probs_at.to(ids.device)
        inputs["hidden_at"] = places[log_probs_at].to(ids.device)
        return inputs, output_args


def _on_cpu() -> bool:
    return bool(get_device_name() == PLATFORM_NAME)


def has_no_gradient(loss_function: Any, micro_batch: Any) -> bool:
    """Whether the loss of these rows is constant.

    The loss is constant if it is verl's clipped PPO loss without further terms, and all advantages are 0.
    """
    if getattr(loss_function, "func", None) is not ppo_loss:
        return False
    actor = loss_function.keywords["config"]
    loss_mode = actor.policy_loss.get("loss_mode", "vanilla")
    if actor.use_kl_loss or actor.entropy_coeff or loss_mode != "vanilla":
        return False
    return not micro_batch["advantages"].values().any()


def forward_with_log_probs(
    self: Any,
    *,
    hidden_at: Tensor,
    log_probs_at: Tensor,
    shift_labels: Tensor,
    temperature: float = 1.0,
    return_dict: bool = True,
    **inputs: Any,
) -> CausalLMOutputForPPO:
    """Replace the forward of a causal language model: return log-probabilities and entropies, not logits.

    Args:
        self: the model.
        hidden_at: among the computed tokens, the position before each token of a response; (responses' tokens,).
        log_probs_at: in the result, the position before each token of a response; (responses' tokens,). All other
            positions get 0.
        shift_labels: the token after each position, (1, tokens).
        temperature: divides the logits.
        return_dict: is passed on to the model below the head, like all further ``inputs``.

    Returns:
        ``log_probs`` and ``entropy`` in float32, each (1, tokens).
    """
    hidden = self.get_decoder()(return_dict=return_dict, **inputs)[0]  # (1, computed tokens, hidden size)
    # FSDP shards the head separately if the head shares no weight with the embedding.
    is_sharded = isinstance(self.lm_head, FSDPModule)
    if is_sharded:
        self.lm_head.unshard()
    weight = self.lm_head.weight  # (vocabulary, hidden size)
    chunk_size = logits_chunk(weight.shape[0], on_card=weight.is_cuda)
    head = FusedLinearForPPO(chunk_size=chunk_size)
    hidden_before = hidden[:, hidden_at]  # (1, responses' tokens, hidden size)
    labels = shift_labels[:, log_probs_at]  # (1, responses' tokens)
    log_probs, entropy = head(hidden_before, weight, labels, temperature)
    if is_sharded and not torch.is_grad_enabled():
        self.lm_head.reshard()  # with gradients the backward pass reshards the head
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)  # (1, tokens)
    return CausalLMOutputForPPO(
        log_probs=empty.index_copy(1, log_probs_at, log_probs.float()),
        entropy=empty.index_copy(1, log_probs_at, entropy.float()),
    )
