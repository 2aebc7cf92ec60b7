import pytest

from code_a1_recipe.algorithm.case_kinds import cell_of


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("f(-1, 0, 2.5)", "int neg, int zero, float pos"),
        (
            "f([], [1], (1, 2), '', b'a', {1: 2, 3: 4})",
            "list empty, list one, tuple many, str empty, bytes one, dict many",
        ),
        ("f(True, None, n=-0.5, z=1 + 2j)", "bool, NoneType, float neg, complex"),
        ("f(set(), collections.deque([1]), 2 ** 70)", "set empty, collections.deque, expression"),
        ("f()", "no argument"),
        ("sorted(f([2, 1])[0], reverse=True)", "list many"),
        ("list(set([1]))", "list one"),
        ("await f(1)", "int pos"),
        ("abs(-1)", "int neg"),
        ("Stack([1]).push(2).top()", "list one, int pos"),
        ("", "unreadable"),
        ("f(", "unreadable"),
        ("a = 1", "unreadable"),
        ("f(1); f(2)", "unreadable"),
        ("f('\ud800')", "unreadable"),
        ("(" * 10_000, "unreadable"),
    ],
)
def test_a_cell_says_what_a_call_is_given_and_how_it_is_failed(call, kind):
    assert cell_of(call, "raised") == f"{kind} / raised"


def test_nothing_is_run_and_equal_cells_are_one_object(tmp_path):
    cell_of(f"f(open({str(tmp_path / 'made')!r}, 'w'))", "raised")
    assert list(tmp_path.iterdir()) == []
    assert cell_of("f(1)", "raised") is cell_of("g(2)", "raised")
