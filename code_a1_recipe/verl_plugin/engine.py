"""verl's FSDP engine with packed rows, for CPUs and NVIDIA cards (through verl's ``EngineRegistry``)."""

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, distributed
from verl.utils.device import get_device_id, get_device_name
from verl.utils.tensordict_utils import assign_non_tensor, get_non_tensor_data, index_select_tensor_dict
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.utils.losses import ppo_loss

from ..errors import SettingsError
from .cpu.environment import PLATFORM_NAME, TRAINING_THREADS_VARIABLE, give_back_freed_memory
from .micro_batches import Row, micro_batches, split_to
from .model_check import most_difference, plain_log_probs, sample_sequences
from .packed_rows import Segments, attend_to_segments, forward_with_log_probs, response_positions, share_prompts

_PARTS = "micro_batches"
"""Key of a batch under which the engine tells verl's loop the rows of each micro-batch."""
_verls_micro_batches: Any = transformer_impl.prepare_micro_batches


def _prepare_micro_batches(data: Any, **options: Any) -> tuple[Any, Any]:
    """Select the micro-batches that the engine has chosen, in place of verl's, which count a prompt for each row."""
    parts = get_non_tensor_data(data, _PARTS, default=None)
    if parts is None:
        return _verls_micro_batches(data, **options)
    return [index_select_tensor_dict(data, list(part)) for part in parts], parts


vars(transformer_impl)["prepare_micro_batches"] = _prepare_micro_batches


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class PackedFSDPEngineWithLMHead(transformer_impl.FSDPEngineWithLMHead):
    """verl's language-model engine for groups of responses to one prompt.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` a group's prompt is computed once for all of its
    responses. Logits are computed only for responses, and only for some tokens at a time (``logits_chunk``). On one
    rank, an update skips rows whose advantages are all zero. Groups with equal rewards have such rows. If rows are
    split over ranks (``ulysses_sequence_parallel_size`` above 1), verl's own engine computes all rows.
    """

    @contextmanager
    def _with(self, block: str, **values: Any) -> Iterator[None]:
        """Change values of one of verl's frozen configurations for a while."""
        own = getattr(self, block)
        changed = copy.copy(own)
        for key, value in values.items():
            object.__setattr__(changed, key, value)
        setattr(self, block, changed)
        try:
            yield
        finally:
            setattr(self, block, own)

    def _build_fsdp_module(self, module: Any) -> Any:
        # For a forward-only engine verl asks for CPUOffloadPolicy(pin_memory=True). Pinned memory needs an accelerator,
        # and is useless on a CPU, since the parameters are in its memory already.
        with self._with("engine_config", forward_only=False) if _on_cpu() else nullcontext():
            return super()._build_fsdp_module(module)

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
        is_packed = self._keeps_responses_only
        # With fused kernels verl would replace the model's own forward, to which the start compares the engine's.
        with self._with("model_config", use_fused_kernels=False) if is_packed else nullcontext():
            module = super()._build_module()
        if is_packed:
            model_class = type(module)
            if model_class.forward is not _forward:  # a reference may have the same class
                model_class.plain_forward = model_class.forward
                model_class.forward = _forward
            module.config._attn_implementation = attend_to_segments.__name__
        self._config = module.config
        return module

    def initialize(self) -> None:
        """Load the model, and compare the engine's log-probabilities of 64 tokens with the model's own.

        Raises:
            SettingsError: they differ by more than the precision explains, or cannot be computed.
        """
        super().initialize()
        try:
            difference, most = self._difference_of_log_probs()
        except Exception as error:
            kind = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise SettingsError(f"{self.model_config.path}: the engine cannot compute this model: {kind}") from error
        if not difference <= most:  # also true for NaN
            hint = "choose another model"
            if self._keeps_responses_only:
                hint = "with `actor_rollout_ref.model.use_fused_kernels=false` verl's engine computes them"
            elif self.use_remove_padding:
                hint = "with `actor_rollout_ref.model.use_remove_padding=false` rows are padded, not packed"
            raise SettingsError(
                f"{self.model_config.path}: the engine's log-probabilities differ from the model's own by "
                f"{difference:.3g} on average, above {most:g}, so training would go wrong; {hint}"
            )

    def _difference_of_log_probs(self) -> tuple[float, float]:
        """Return the mean difference of log-probabilities, and the largest that this precision explains."""
        sequences = sample_sequences(self._config.get_text_config().vocab_size)
        precision = getattr(self, "_autocast_dtype", torch.bfloat16)
        with self.eval_mode(), torch.no_grad():
            output = self.forward_step(_rows_of(sequences, self.model_config), None, True)[1]["model_output"]
            attention = self._config._attn_implementation
            self._config._attn_implementation = "eager"
            autocast = nullcontext() if precision == torch.float32 else torch.autocast(get_device_name(), precision)
            try:
                with autocast:
                    expected = plain_log_probs(self.module, sequences, device=get_device_id())
            finally:
                self._config._attn_implementation = attention
        found = [
            row[len(prompt) - 1 : -1] for row, (prompt, _) in zip(output["log_probs"].unbind(), sequences, strict=True)
        ]
        difference = (torch.cat(found).cpu() - expected.cpu()).abs().mean()
        return float(difference), most_difference(precision)

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
            assign_non_tensor(data, **{_PARTS: self._micro_batches(data, loss_function, forward_only)})
        results = super().forward_backward_batch(data, loss_function, forward_only)
        if _on_cpu():
            give_back_freed_memory()
        return results

    def _micro_batches(self, data: Any, loss_function: Any, forward_only: bool) -> tuple[tuple[int, ...], ...]:
        num_ranks = self.get_data_parallel_size()
        learns = [True] * len(data)
        if num_ranks == 1 and not forward_only and loss_is_of_advantages(loss_function):
            learns = [bool(row.any()) for row in data["advantages"].unbind()]
        rows = []
        for ids, mask in zip(data["input_ids"].unbind(), data["response_mask"].unbind(), strict=True):
            prompt = tuple(ids[: len(ids) - len(mask)].tolist())
            rows.append(Row(prompt, len(prompt), len(mask)))
        parts: list[list[int]] = []
        # Rows that train nothing get micro-batches of their own, which are skipped. They come first, since verl may sum
        # gradients over ranks after the last micro-batch alone.
        for learning in (False, True):
            chosen = [row for row, learns_too in enumerate(learns) if learns_too is learning]
            cut = micro_batches([rows[row] for row in chosen], budget=data["max_token_len_per_gpu"])
            parts += [[chosen[row] for row in part] for part in cut]
        if num_ranks > 1:
            number = torch.tensor(len(parts))
            distributed.all_reduce(number, distributed.ReduceOp.MAX, self.get_data_parallel_group())
            parts = split_to(parts, rows, number=int(number))
        return tuple(map(tuple, parts))

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        # With several ranks, all ranks must compute, since each pass gathers weights from all ranks.
        if forward_only or self.get_data_parallel_size() > 1 or not has_no_gradient(loss_function, micro_batch):
            return super().forward_step(micro_batch, loss_function, forward_only)
        return torch.zeros((), requires_grad=True), {"loss": 0.0, "metrics": {}}

    def optimizer_step(self) -> Any:
        for parameter in self.module.parameters():
            if parameter.requires_grad and parameter.grad is None:
                # AdamW skips a parameter without a gradient, but the parameter's momentum should still move it.
                parameter.grad = torch.zeros_like(parameter)
        return super().optimizer_step()

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if not self._keeps_responses_only:
            return inputs, output_args
        ids = inputs["input_ids"]  # (1, tokens)
        offsets = micro_batch["input_ids"].offsets().cpu()  # (sequences + 1,)
        lengths = micro_batch["response_mask"].offsets().diff().cpu()  # (sequences,)
        kept, places, seen = share_prompts(ids[0].cpu(), offsets, lengths)
        log_probs_at = response_positions(offsets, lengths)
        at_once = ids.is_cuda and self._autocast_dtype in (torch.bfloat16, torch.float16)  # as flash attention needs
        inputs["segments"] = Segments.of(seen, device=ids.device, at_once=at_once)
        inputs["attention_mask"] = None
        kept = kept.to(ids.device)
        inputs["input_ids"] = ids[:, kept]
        inputs["position_ids"] = inputs["position_ids"][:, kept]
        inputs["log_probs_at"] = log_probs_at.to(ids.device)
        inputs["hidden_at"] = places[log_probs_at].to(ids.device)
        return inputs, output_args


def _on_cpu() -> bool:
    return bool(get_device_name() == PLATFORM_NAME)


def loss_is_of_advantages(loss_function: Any) -> bool:
    """Whether the loss is verl's clipped PPO loss without further terms."""
    if getattr(loss_function, "func", None) is not ppo_loss:
        return False
    actor = loss_function.keywords["config"]
    loss_mode = actor.policy_loss.get("loss_mode", "vanilla")
    return not (actor.use_kl_loss or actor.entropy_coeff) and loss_mode == "vanilla"


def has_no_gradient(loss_function: Any, micro_batch: Any) -> bool:
    """Whether the loss of these rows is constant, because all of their advantages are 0."""
    return loss_is_of_advantages(loss_function) and not micro_batch["advantages"].values().any()


def _forward(self: Any, **inputs: Any) -> Any:
    """Replace the forward of a causal language model: packed rows give log-probabilities and no logits."""
    return forward_with_log_probs(self, **inputs) if "segments" in inputs else self.plain_forward(**inputs)


def _rows_of(sequences: list[tuple[Tensor, Tensor]], model: Any) -> TensorDict:
    """Make rows with the columns that a forward pass of verl's engine reads."""
    whole = [torch.cat(pair) for pair in sequences]
    columns = {
        "input_ids": whole,
        "position_ids": [torch.arange(len(ids)) for ids in whole],
        "response_mask": [torch.ones_like(response) for _, response in sequences],
    }
    nested = {name: torch.nested.as_nested_tensor(rows, layout=torch.jagged) for name, rows in columns.items()}
    flags = {key: getattr(model, key) for key in ("use_remove_padding", "use_fused_kernels")}
    return assign_non_tensor(TensorDict(nested, batch_size=[len(whole)]), temperature=1.0, **flags)
