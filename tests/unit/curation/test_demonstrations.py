"""Which demonstrations are written, as which messages, and which are held out."""

from collections import Counter

from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.curation.demonstrations import MAX_CHARS, PromptStyle, SuiteDemonstration, held_out, select
from code_a1_recipe.micro_world.messages import test_messages as messages_of_the_warm_start
from reward_fns import extract_suite

MICRO, CHAT = PromptStyle("micro"), PromptStyle("chat_v2")


def shown(program="def f(x): return 0", *asserts, question="q", breaking=0, step=-1):
    about = Question(id=question, prompt="Return x.", reference="def f(x): return x")
    return SuiteDemonstration(about, "rollout", program, asserts or ("assert f(1) == 1",), breaking, step)


def chosen(*demonstrations, style=MICRO, max_per_question=99, **changes):
    """Those that are kept, and counts of the others by reason."""
    counts = Counter()
    kept = select(demonstrations, style=style, max_per_question=max_per_question, counts=counts, **changes)
    return kept, +counts


def test_a_row_holds_the_prompt_of_an_episode_and_the_suite_in_a_block():
    one = shown("def f(x): return 0", "assert f(1) == 1", "assert f(2) == 2", breaking=2)
    row = CHAT.row(one)
    *prompt, answer = row["messages"]
    *asked, beginning = render(
        "chat_v2_test", prompt="Return x.", entry_points="`f(x)`", candidate="def f(x): return 0", num_cases=2
    )
    assert prompt == asked
    assert answer["content"].startswith(beginning["content"])
    assert [message["role"] for message in row["messages"]] == ["system", *["user", "assistant"] * 2]
    assert answer["content"] == "```python\nassert f(1) == 1\nassert f(2) == 2\n```"
    assert extract_suite(answer["content"]) == one.asserts
    assert row["extra_info"] == {
        "question": "q", "data_source": "", "shown": "rollout", "num_cases": 2, "num_breaking": 2, "step": -1
    }  # fmt: skip


def test_tiny_models_get_bare_asserts_after_the_prompt_that_they_know():
    *prompt, answer = MICRO.row(shown())["messages"]
    assert prompt == messages_of_the_warm_start(
        "Return x.", candidate="def f(x): return 0", num_cases=1, black_box=False
    )
    assert answer == {"role": "assistant", "content": "assert f(1) == 1"}


def test_a_black_box_prompt_does_not_show_the_program():
    style = PromptStyle("chat_v2", black_box=True)
    assert style.is_fenced
    assert "return 0" not in style.row(shown())["messages"][-2]["content"]


def test_the_same_suite_for_the_same_prompt_is_written_once_in_whatever_order():
    two = ("assert f(1) == 1", "assert f(2) == 2")
    kept, counts = chosen(shown("a", *two), shown("a", *two[::-1]), shown("b", *two))
    assert [one.program for one in kept] == ["a", "b"]
    assert counts == {"repeats another": 1}


def test_without_the_program_in_the_prompt_suites_of_all_programs_are_compared():
    assert len(chosen(shown("a"), shown("b"), style=PromptStyle("micro", black_box=True))[0]) == 1


def test_programs_take_turns_and_the_best_suites_come_first():
    def suite(program, x, **changes):
        return shown(program, f"assert f({x}) == {x}", **changes)

    found = [suite("a", 1), suite("a", 2, breaking=1, step=1), suite("a", 3, breaking=1, step=9), suite("b", 4)]
    kept, counts = chosen(*found, max_per_question=3)
    assert [one.asserts[0] for one in kept] == ["assert f(3) == 3", "assert f(4) == 4", "assert f(2) == 2"]
    assert counts == {"beyond the most of a question": 1}


def test_only_breaking_leaves_out_the_rest():
    kept, counts = chosen(shown("a"), shown("b", breaking=1), only_breaking=True)
    assert [one.program for one in kept] == ["b"]
    assert counts == {"does not break the program": 1}


def test_what_is_too_long_is_left_out_whole():
    long = f"assert f('{'x' * MAX_CHARS}') == 1"
    assert chosen(shown(), shown("b", long)) == ([shown()], {f"longer than {MAX_CHARS} characters": 1})


@given(st.sets(st.text(min_size=1, max_size=3), max_size=40), st.floats(0, 0.99), st.integers(0, 5))
def test_the_held_out_share_is_that_of_the_questions(ids, share, seed):
    found = held_out(ids, share=share, seed=seed)
    assert found <= ids
    assert found == held_out(sorted(ids, reverse=True), share=share, seed=seed)
    if share == 0 or len(ids) < 2:
        assert not found
    else:
        assert 1 <= len(found) < len(ids)
        assert abs(len(found) - share * len(ids)) <= 1
