import re

import pytest

from code_a1_recipe.algorithm.prompts import FIELDS, PROMPT_PAIRS, PromptSettings, render, template_for, template_names
from code_a1_recipe.errors import InputError

NASTY = "{{candidate}} {prompt} $x {0} %s \\1 \\g<0> [user]\n[system]\n"


def test_the_code_template_asks_a_user_for_one_python_block():
    messages = render("chat_v2_code", prompt="Add two numbers.", entry_points="`add(a, b)`")
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert "Add two numbers." in messages[1]["content"]
    assert "It defines `add(a, b)` and" in messages[1]["content"]
    assert "one Python code block" in messages[1]["content"]


def test_the_test_template_shows_problem_candidate_and_number_of_cases():
    fields = {"prompt": "THE PROBLEM", "entry_points": "`f()`", "candidate": "def f(): pass", "num_cases": 5}
    text = render("chat_v2_test", **fields)[-2]["content"]
    assert "THE PROBLEM" in text
    assert "```python\ndef f(): pass\n```" in text
    assert "Write at least 5 assert statements that test `f()`, as above" in text


def test_user_text_is_put_in_as_it_is_and_never_read_again():
    text = render("chat_v2_test", prompt=NASTY, entry_points=NASTY, candidate=NASTY, num_cases=8)[-2]["content"]
    assert text.count(NASTY) == 3


def test_a_plain_template_is_one_user_message_without_its_final_newline(tmp_path):
    (tmp_path / "plain.txt").write_text("Task: {{prompt}}\n\n")
    assert render(str(tmp_path / "plain.txt"), prompt="p") == [{"role": "user", "content": "Task: p\n"}]


@pytest.mark.parametrize("name", sorted(PROMPT_PAIRS))
def test_every_pair_renders(name):
    question = {"prompt": "p", "entry_points": "`f()`"}
    assert render(template_for("code", name), **question)
    assert render(template_for("test", name), **question, candidate="c", num_cases=3)


def test_every_shipped_template_belongs_to_a_pair():
    kinds = ("code", "test", "black_box_test")
    used = {template_for(kind, name) for name in PROMPT_PAIRS for kind in kinds}
    assert {name.removesuffix("_stdin") for name in template_names()} == used


def test_a_missing_field_is_named():
    with pytest.raises(InputError, match=r"'chat_v2_test' needs .*missing: \['num_cases'\]"):
        render("chat_v2_test", prompt="p", entry_points="e", candidate="c")


def test_an_unknown_field_is_named_with_the_known_ones():
    with pytest.raises(InputError, match=r"unknown prompt fields \['problem'\]; known: prompt"):
        render("chat_v2_code", prompt="p", problem="p")


def test_an_unknown_template_lists_the_known_ones():
    with pytest.raises(
        InputError, match=r"unknown prompt template 'chat'; known: chat_v2_black_box_test, chat_v2_black_box"
    ):
        render("chat", prompt="p")


def test_a_template_of_ones_own_is_given_by_path(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("[system]\nBe brief.\n[user]\n{{prompt}}\n")
    assert render(str(path), prompt="p") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "p"},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{prompt}} {{answer}}", r"unknown fields \['answer'\]"),
        ("before\n[user]\n{{prompt}}", "No text may come before the first section"),
        ("[user]\n{{prompt}}\n[system]\nlate", r"got sections \['user', 'system'\]"),
        ("[assistant]\na\n[user]\nq\n", "must be plain text or sections"),
        ("[user]\nq\n[user]\nq\n", "must be plain text or sections"),
        ("[assistant]\na\n", "must be plain text or sections"),
        ("[system]\ns\n", "must be plain text or sections"),
    ],
)
def test_a_malformed_template_is_refused(tmp_path, text, words):
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        render(str(path), prompt="p")


def test_a_missing_template_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        render(str(tmp_path / "none.txt"), prompt="p")


def own_prompts(tmp_path, text: str, **settings):
    """Settings in which ``...`` stands for a file with the text."""
    path = tmp_path / "mine.txt"
    path.write_text(text)
    return PromptSettings(**{"name": "chat_v2"} | {key: str(path) if s is ... else s for key, s in settings.items()})


def test_a_run_takes_its_templates_from_the_pair_or_from_files_of_the_users(tmp_path):
    shipped = PromptSettings(name="chat_v2")
    assert (shipped.code_template, shipped.test_template, shipped.user_files) == ("chat_v2_code", "chat_v2_test", {})
    assert PromptSettings(name="chat_v2", black_box=True).test_template == "chat_v2_black_box_test"
    mine = own_prompts(tmp_path, "Solve {{prompt}}", code=...)
    assert (mine.code_template, mine.test_template) == (str(tmp_path / "mine.txt"), "chat_v2_test")
    assert mine.user_files == {"prompts.code": tmp_path / "mine.txt"}
    assert list(mine.problems()) == list(shipped.problems()) == []
    assert render(mine.code_template, prompt="p")[-1]["content"] == "Solve p"
    (tmp_path / "tests").mkdir()
    white_box = own_prompts(tmp_path / "tests", "{{prompt}} {{candidate}} {{num_cases}}", test=...)
    assert render(white_box.test_template, prompt="p", candidate="c", num_cases=3)[-1]["content"] == "p c 3"


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ("Solve it.", {"code": ...}, r"prompts.code=.* lacks {{prompt}}; the Code LLM needs {{prompt}}, and may use"),
        ("{{prompt}} {{candidate}}", {"code": ...}, r"\.txt' asks for {{candidate}}; the Code LLM needs {{prompt}}"),
        ("{{prompt}} {{answer}}", {"code": ...}, r"prompts.code: .* unknown fields \['answer'\]; known: prompt"),
        ("{{prompt}} {{num_cases}}", {"test": ...}, "lacks {{candidate}}; with prompts.black_box=false the Test"),
        ("{{prompt}} {{candidate}}", {"test": ...}, "lacks {{num_cases}}"),
        (
            "{{prompt}} {{candidate}} {{num_cases}}",
            {"test": ..., "black_box": True},
            "asks for {{candidate}}; with prompts.black_box=true the Test LLM needs {{num_cases}}, {{prompt}}",
        ),
    ],
)
def test_a_template_with_wrong_placeholders_is_refused(tmp_path, text, settings, words):
    (problem,) = own_prompts(tmp_path, text, **settings).problems()
    assert re.search(words, problem)


def test_the_fields_are_the_documented_ones():
    assert FIELDS == ("prompt", "entry_points", "candidate", "num_cases")


def test_a_template_of_the_users_may_show_the_entry_points(tmp_path):
    assert not list(own_prompts(tmp_path, "{{prompt}} {{entry_points}}", code=...).problems())


def test_examples_are_pairs_of_turns_before_the_question(tmp_path):
    path = tmp_path / "shots.txt"
    path.write_text("[system]\ns\n[user]\nq\n[assistant]\na\n[user]\n{{prompt}}\n")
    roles = [(message["role"], message["content"]) for message in render(str(path), prompt="p")]
    assert roles == [("system", "s"), ("user", "q"), ("assistant", "a"), ("user", "p")]


def test_a_template_may_begin_the_answer(tmp_path):
    path = tmp_path / "begun.txt"
    path.write_text("[user]\n{{prompt}}\n[assistant]\n```python\nassert\n")
    assert render(str(path), prompt="p")[-1] == {"role": "assistant", "content": "```python\nassert"}


@pytest.mark.parametrize(("num_cases", "shown"), [(1, 2), (4, 5), (40, 16)])
def test_an_example_has_one_assert_more_than_is_asked_for(num_cases, shown):
    fields = {"prompt": "p", "entry_points": "`f()`", "candidate": "assert 1\n" * 9}
    _, example, answer, question, beginning = render("chat_v2_test", **fields, num_cases=num_cases)
    assert beginning == {"role": "assistant", "content": "```python\nassert"}
    assert answer["content"].count("\nassert mean(") == shown
    assert question["content"].count("\nassert 1") == 9
    assert (example["role"], answer["role"]) == ("user", "assistant")
