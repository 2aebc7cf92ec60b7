"""Extraction meets whatever a model writes."""

from hypothesis import given, strategies as st

from reward_fns import ExtractionFailure, extract_candidate, extract_suite

pieces = st.sampled_from(
    [
        "```python\n",
        "```",
        "```\n",
        "\n",
        "assert f(1) == 2\n",
        "assert f(",
        "def f(x):\n    return x\n",
        '"""',
        "'",
        "\\",
        ";",
    ]
)
responses = st.one_of(
    st.text(),
    st.text(alphabet=st.characters(codec=None, categories=None)),
    st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=12).map("".join),
)
literals = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.none(), st.text(alphabet=st.characters(codec="utf-8"), max_size=8)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(text=responses)
def test_of_any_text_a_piece_is_taken_as_program_and_what_begins_as_an_assert_as_suite(text):
    candidate = extract_candidate(text)
    suite = extract_suite(text)
    assert isinstance(candidate, ExtractionFailure) or candidate in text
    assert isinstance(suite, ExtractionFailure) or (suite and all(item.startswith("assert") for item in suite))


@given(values=st.lists(st.tuples(literals, literals), min_size=1, max_size=8), fenced=st.booleans())
def test_asserts_as_asked_for_come_back_word_for_word(values, fenced):
    lines = [f"assert f({given_!r}) == {answer!r}" for given_, answer in values]
    text = "\n".join(lines)
    response = f"Here:\n```python\n{text}\n```\n" if fenced else text
    assert extract_suite(response) == tuple(lines)


@given(body=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="`"), min_size=1))
def test_a_fenced_program_comes_back_word_for_word(body):
    found = extract_candidate(f"```python\n{body}\n```")
    assert found == body if body.strip() else isinstance(found, ExtractionFailure)
