import hashlib
import json
from unittest.mock import Mock

import pytest

from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.micro_world.mistakes import draw_mistake, misread, mistakes_of
from code_a1_recipe.micro_world.operations import Action, Condition, Decision, Selection, answer_or_none, conditions_of
from code_a1_recipe.micro_world.settings import MicroSettings
from code_a1_recipe.micro_world.world import draw_questions, write_rows

ADD_ONE = Action(kind="add", amount=1)
FIVE = Action(kind="constant", amount=5)
AT_MOST_THREE = Condition(relation="<=", bound=3)
DECISION = Decision(condition=AT_MOST_THREE, then=ADD_ONE, otherwise=FIVE)


@pytest.fixture(scope="module")
def split():
    return MicroSettings(seed=0, num_train=2000, num_heldout=100).split()


def test_in_the_wide_world_half_of_the_mistakes_show_on_few_inputs():
    def narrow_share(world):
        shares = []
        for question in draw_questions(seed=0, num_questions=200, world=world):
            if not question.operation.takes_list:
                for mistake in question.mistakes:
                    pairs = [(question.operation.answer(x), mistake.operation.answer(x)) for x in question.world.inputs]
                    shares += [sum(a != b for a, b in pairs) / len(pairs)] * mistake.weight
        return sum(share <= 0.05 for share in shares) / len(shares)

    assert narrow_share("wide") > 0.5
    assert narrow_share("narrow") == 0


def test_an_operation_reads_and_computes_as_written():
    assert DECISION.english == "If x is at most 3, return x plus 1, otherwise 5."
    assert DECISION.python == "def f(x):\n    if x <= 3:\n        return x + 1\n    return 5"
    assert [DECISION.answer(x) for x in (2, 3, 4)] == [3, 4, 5]


def test_the_largest_of_nothing_is_the_default_and_without_one_an_error():
    guarded = Selection(kind="max", condition=Condition(relation="even"), default=7)
    assert guarded.english == "Return the largest of all x in v that are even, or 7 if there are none."
    assert guarded.python.endswith("return max(w) if w else 7")
    assert [guarded.answer(v) for v in ([], [1], [2, 4, 5])] == [7, 7, 4]
    bare = Selection(kind="max", condition=Condition(relation="even"))
    assert answer_or_none(bare, [1]) is None


def test_a_second_decision_comes_after_the_first():
    second = Decision(condition=Condition(relation=">", bound=4), then=ADD_ONE, otherwise=Action(kind="negate"))
    operation = Decision(condition=Condition(relation="<", bound=2), then=FIVE, otherwise=second)
    assert [operation.answer(x) for x in (1, 2, 4, 5)] == [5, -2, -4, 6]


def test_a_collected_list_is_put_in_order_after_the_change():
    operation = Selection(kind="sorted", action=Action(kind="negate"), condition=AT_MOST_THREE)
    assert operation.answer([1, 9, 3, -2]) == [-3, -1, 2]


def test_the_questions_of_seed_0_are_the_same_everywhere(split):
    rows = json.dumps([question.row() for question in split.heldout], sort_keys=True)
    assert split.heldout[0].prompt == ("Return the smallest of all x in v that are at least 6, or 0 if there are none.")
    assert split.heldout[0].id == "micro-833c952f39ad"
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == "a1ecc0d8ed4d72f4"


def test_another_seed_draws_other_questions():
    one, two = (draw_questions(seed=seed, num_questions=20) for seed in (0, 1))
    assert {question.prompt for question in one} != {question.prompt for question in two}


def test_ids_and_prompts_of_both_parts_are_distinct_and_ids_hold_no_underscore(split):
    assert (len(split.train), len(split.heldout)) == (2000, 100)
    id_of = {question.prompt: question.id for question in (*split.train, *split.heldout)}
    assert len(id_of) == len(set(id_of.values())) == 2100
    assert "_" not in "".join(id_of.values())


def test_asking_for_more_questions_than_there_are_says_so(monkeypatch):
    monkeypatch.setattr("code_a1_recipe.micro_world.world._draw_operation", lambda _rng, _world: DECISION)
    with pytest.raises(ValueError, match="only 1 distinct micro questions found, 3 asked for; ask for fewer"):
        draw_questions(seed=0, num_questions=3)


def test_references_pass_their_own_hidden_tests(split):
    for question in split.heldout:
        scope = {}
        exec(compile("\n".join([question.reference, *question.hidden_tests]), "own", "exec"), scope)


def test_hidden_tests_are_few_distinct_and_touch_every_boundary(split):
    for question in split.train:
        assert 12 <= len(question.hidden_tests) <= 16
        assert len(set(question.hidden_tests)) == len(question.hidden_tests)
        for condition in conditions_of(question.operation):
            bound = condition.bound
            for x in () if bound is None else (bound - 1, bound, bound + 1):
                assert ([x] if question.operation.takes_list else x) in question.hidden_inputs


def test_hidden_tests_catch_every_mistake_of_a_question(split):
    for question in split.train:
        assert question.mistakes
        for mistake in question.mistakes:
            assert any(
                answer_or_none(mistake.operation, x) != question.operation.answer(x) for x in question.hidden_inputs
            ), (question.prompt, mistake)


def test_the_mistakes_of_a_guarded_maximum():
    operation = Selection(kind="max", condition=Condition(relation=">", bound=2), default=0)
    assert [mistake.operation.python.splitlines()[1:] for mistake in mistakes_of(operation)] == [
        ["    w = [x for x in v if x >= 2]", "    return max(w) if w else 0"],
        ["    w = [x for x in v if x > 2]", "    return min(w) if w else 0"],
        ["    w = [x for x in v if x > 2]", "    return max(w)"],
        ["    w = [x for x in v if x > 2]", "    return max(w) if w else 1"],
    ]


def test_boundary_mistakes_are_drawn_most_often():
    mistakes = tuple(mistakes_of(DECISION))
    assert [mistake.weight for mistake in mistakes] == [6, 1, 1, 1, 1]
    assert mistakes[0].operation.condition.relation == "<"  # the bound on the wrong side
    always_first = Mock(choices=Mock(return_value=mistakes[:1]))
    assert draw_mistake(always_first, mistakes) is mistakes[0].operation
    always_first.choices.assert_called_once_with(mistakes, [6, 1, 1, 1, 1])


def test_misreading_makes_bounds_strict_and_forgets_the_guard():
    surely = Mock(random=lambda: 0.0)
    operation = Selection(kind="min", condition=AT_MOST_THREE, default=4)
    misunderstood = misread(surely, operation, chance=0.5)
    assert misunderstood.python == "def f(v):\n    w = [x for x in v if x < 3]\n    return min(w)"
    assert misread(surely, operation, chance=0.0) == operation


def test_rows_are_written_in_the_native_columns(tmp_path, split):
    path = tmp_path / "rows.jsonl"
    write_rows(split.heldout[:2], path)
    row, other = iter_rows(path)
    columns = "buggy_programs data_source entry_points golden_tests id prompt reference tests"
    assert " ".join(sorted(row)) == " ".join(sorted(other)) == columns
    assert (row["data_source"], row["entry_points"]) == ("micro", ["f"])
    assert row["tests"][:2] == ["assert f([]) == 0", "assert f([5]) == 0"]
