"""Which demonstrations are written, as which messages, and which are held out."""

from collections import Counter
from pathlib import Path

from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.demonstrations import MAX_CHARS, SuiteDemonstration, held_out, select
from code_a1_recipe.tools.prepare.options import SftOptions
from reward_fns import extract_suite
from sandbox import Kind


def shown(program="def f(x): return 0", *asserts, question="q", breaking=0):
    about = Question(id=question, prompt="Return x.", reference="def f(x): return x")
    return SuiteDemonstration(about, "mutant", program, asserts or ("assert f(1) == 1",), breaking)


def chosen(*demonstrations, **options):
    """Those that are kept, and counts of the others by reason."""
    counts = Counter()
    options = SftOptions(files=(), output=Path("d.parquet"), **{"prompt": "micro", "max_per_question": 99, **options})
    return select(demonstrations, options, counts=counts), +counts


def test_a_row_holds_the_prompt_of_an_episode_and_the_suite_in_a_block():
    one = shown("def f(x): return 0", "assert f(1) == 1", "assert f(2) == 2", breaking=2)
    row = one.row("chat_v2")
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
        "question": "q", "data_source": "", "shown": "mutant", "num_cases": 2, "num_breaking": 2
    }  # fmt: skip


def test_the_prompt_is_the_questions_own_and_tiny_models_get_bare_asserts():
    about = Question(
        id="q", prompt="Turn x.", reference="def f(x): x.reverse()", entry_points=("f",), kind=Kind.IN_PLACE
    )
    program = "def helper(x): return x\n\ndef f(x): helper(x)"
    one = SuiteDemonstration(about, "mutant", program, ("assert f([1, 2]) == [2, 1]",), 1)
    asked = render("micro_test", **about.prompt_fields, candidate=program, num_cases=1)
    bare = {"role": "assistant", "content": "assert f([1, 2]) == [2, 1]"}
    assert one.row("micro")["messages"] == [*asked, bare]


def test_the_same_suite_for_the_same_prompt_is_written_once_in_whatever_order():
    two = ("assert f(1) == 1", "assert f(2) == 2")
    kept, counts = chosen(shown("a", *two), shown("a", *two[::-1]), shown("b", *two))
    assert [one.program for one in kept] == ["a", "b"]
    assert counts == {"repeats another": 1}


def test_of_a_question_the_suites_that_break_their_program_come_first():
    found = [shown("a"), shown("b", breaking=1), shown("c"), shown("d", question="other")]
    kept, counts = chosen(*found, max_per_question=2)
    assert [one.program for one in kept] == ["b", "a", "d"]
    assert counts == {"beyond the most of a question": 1}


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
