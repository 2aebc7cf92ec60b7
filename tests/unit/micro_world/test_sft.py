import math

import pytest
import torch

from code_a1_recipe.micro_world.settings import MicroSettings, ModelSettings
from code_a1_recipe.micro_world.sft import Example, response_loss, warm_start

SHORT = ModelSettings(hidden_size=32, num_layers=1, intermediate_size=64, num_steps=40, batch_size=8)
SHORT_SETTINGS = MicroSettings(num_train=60, num_heldout=5, code=SHORT, test=SHORT)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def losses_of(role, settings):
    losses = []
    model, tokenizer = warm_start(role, settings, on_step=lambda _step, loss: losses.append(loss))
    return losses, model, tokenizer


@pytest.mark.parametrize(("role", "last_loss"), [("code", 4.7459), ("test", 4.5906)])
def test_forty_steps_already_teach_something(role, last_loss):
    losses, model, tokenizer = losses_of(role, SHORT_SETTINGS)
    assert len(losses) == 40
    assert losses[0] == pytest.approx(math.log(len(tokenizer)), rel=0.05)
    changed = "training has changed: raise FORMAT_VERSION in settings.py, then run python tests/ship_models.py"
    assert sum(losses[-5:]) / 5 == pytest.approx(last_loss, rel=1e-3), changed
    assert not model.training


@pytest.mark.nightly
def test_the_same_settings_train_the_same_model():
    first, one, _ = losses_of("code", SHORT_SETTINGS)
    second, two, _ = losses_of("code", SHORT_SETTINGS)
    assert first == second
    for left, right in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(left, right)


def test_the_loss_counts_response_tokens_only_and_ignores_padding():
    _, model, _ = losses_of("code", MicroSettings(num_train=20, num_heldout=2, code=SHORT, test=SHORT))
    short, long = (
        Example(prompt_ids=[2, 9, 3], response_ids=[7, 1]),
        Example(prompt_ids=[2, 8, 8, 3], response_ids=[6, 5, 4, 1]),
    )
    with torch.no_grad():
        alone = [response_loss(model, [example]).item() for example in (short, long)]
        together = response_loss(model, [short, long]).item()
        by_hand = model(torch.tensor([[2, 9, 3, 7]])).logits[0, 2:].log_softmax(-1)
    assert alone[0] == pytest.approx(-(by_hand[0, 7] + by_hand[1, 1]).item() / 2, abs=1e-5)
    assert together == pytest.approx((2 * alone[0] + 4 * alone[1]) / 6, abs=1e-5)
