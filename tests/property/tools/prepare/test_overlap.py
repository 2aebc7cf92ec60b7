"""Laws of the texts that questions are compared by, and of the comparison."""

from hypothesis import given, settings, strategies as st

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.overlap import EvalIndex, check_duplicates
from code_a1_recipe.tools.prepare.rows import Dropped, Entry
from code_a1_recipe.tools.prepare.texts import content_words, statement_words, words_of

words_of_lists = st.sampled_from([f"w{number}" for number in range(12)])
word_lists = st.lists(words_of_lists, max_size=30)
prompts = st.text(st.sampled_from("abc \n`\"'>def(:#.1"), max_size=200)


def entry_of(row, prompt, *, reference):
    return Entry(file="a", row=row, question=Question(id=str(row), prompt=prompt, reference=reference))


@given(prompt=prompts)
def test_a_statement_is_made_of_words_of_its_prompt_in_their_order(prompt):
    rest = iter(words_of(prompt.replace('"""', " ").replace("'''", " ")))
    assert all(word in rest for word in statement_words(prompt))
    assert bool(content_words(prompt)) == bool(words_of(prompt))


@settings(max_examples=40)
@given(texts=st.lists(word_lists.filter(lambda words: len(words) > 3), max_size=8))
def test_whatever_stays_has_no_equal_prompt_before_it(texts):
    entries = [entry_of(row, " ".join(words), reference=f"def f(): return {row}") for row, words in enumerate(texts)]
    found = list(check_duplicates(entries))
    assert [row.row for row in found] == [entry.row for entry in entries]
    kept = [row.question.prompt for row in found if isinstance(row, Entry)]
    assert len(set(kept)) == len(kept)
    assert not found or isinstance(found[0], Entry)


@settings(max_examples=40)
@given(words=st.lists(st.sampled_from(["alpha", "bravo", "charlie", "delta", "echo", "golf"]), min_size=4, max_size=25))
def test_a_question_repeats_itself(words):
    prompt = " ".join(words)
    question = Question(data_source="e", id="e/1", prompt=prompt, reference="", tests=())
    entry = entry_of(0, prompt, reference="def f(): pass")
    (row,) = EvalIndex([question]).check([entry])
    assert isinstance(row, Dropped)
    assert [(one.id, one.how) for one in row.overlaps] == [("e/1", "prompt")]
