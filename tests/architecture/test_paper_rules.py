"""The table of the paper's rules names what exists, and the trainer's step follows it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from code_a1_recipe.config.compose import compose_config

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "code_a1_recipe" / "algorithm" / "README.md"
EXTENSIONS = REPOSITORY / "code_a1_recipe" / "extensions" / "README.md"
COLUMNS = ["Rule", "Equation", "File", "Function", "Key"]
RULES = ("Oracle", "Mistake Book, store", "Mistake Book, retrieve", "White-box prompt", "Code LLM's reward")
RULES += ("Test LLM's composite reward", "Validity", "Adversarial term", "Mistake Book, update", "TOPVAR")
RULES += ("GRPO groups", "Alternation of the two updates")

TESTS = tomllib.loads(Path(__file__).with_name("paper_rules.toml").read_text(encoding="utf-8"))
"""A test of each rule, by the first words of its row."""


def rows():
    """Rows of the paper, then those beyond it, each with the README that it stands in."""
    of_the_paper, beyond, *_ = README.read_text(encoding="utf-8").split("\n## ")
    extensions = EXTENSIONS.read_text(encoding="utf-8")
    sections = ((README, of_the_paper), (README, beyond), (EXTENSIONS, extensions))
    return [row | {"README": readme} for readme, section in sections for row in rows_of(section)]


def rows_of(section):
    lines = [line for line in section.splitlines() if line.startswith("|")]
    columns, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert columns in (COLUMNS, [*COLUMNS, "Result"])
    return [dict(zip(columns, row, strict=True)) for row in cells]


def names_in(path):
    """Functions, classes and methods (``Class.method``) of a file."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name")}
        names.add(getattr(node, "name", ""))
    return names


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "_", row["Rule"].split(":")[0]).strip("_"))
def test_what_a_rule_names_exists(row):
    (link,) = re.findall(r"\]\(([^)]+)\)", row["File"])
    file = row["README"].parent / link
    assert file.is_file()
    assert file.resolve().relative_to(REPOSITORY).as_posix().endswith(re.findall(r"`([^`]+)`", row["File"])[0])
    functions = re.findall(r"`([^`]+)`", row["Function"])
    assert functions
    assert set(functions) <= names_in(file)
    (key,) = re.findall(r"`([^`]+)`", row["Key"])
    config = compose_config("cpu", [])
    assert OmegaConf.select(config, key, default=config) is not config
    (test,) = [test for rule, test in TESTS.items() if re.match(rf"(\*\*)?{re.escape(rule)}(\*\*|$)", row["Rule"])]
    path, name = test.split("::")
    assert name in names_in(REPOSITORY / path)


def test_a_rule_beyond_the_paper_says_what_came_of_it():
    beyond = [row for row in rows() if "Result" in row]
    silent = [row["Rule"] for row in beyond if "no result yet" not in row["Result"] and "](" not in row["Result"]]
    assert (len(beyond), silent) == (5, [])


def test_every_rule_of_the_paper_has_its_row():
    text = "\n".join(row["Rule"] for row in rows())
    assert [rule for rule in RULES if f"**{rule}**" not in text] == []


def test_the_first_line_of_a_rules_file_has_the_papers_word():
    words = {
        "episode.py": "Episode",
        "mistake_book.py": "Mistake Book",
        "prompts.py": "White-box prompt",
        "book_update.py": "Mistake Book",
        "rewards.py": "Composite reward",
        "schedule.py": "Alternation",
        "selection.py": "TOPVAR",
        "question.py": "Question",
    }
    first = {name: (README.parent / name).read_text(encoding="utf-8").splitlines()[0] for name in words}
    assert [name for name, word in words.items() if not first[name].startswith(f'"""{word}')] == []


def test_the_trainers_step_takes_the_rules_in_their_order():
    source = (REPOSITORY / "code_a1_recipe" / "training" / "step.py").read_text(encoding="utf-8")
    (step,) = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "step"
    ]
    rules = ["_run_episodes", "_update_mistake_book", "_collect_grpo_groups", "_alternate_updates"]
    calls = {node.func.attr: node.lineno for node in ast.walk(step) if isinstance(node, ast.Call) and is_own(node.func)}
    assert sorted((name for name in calls if name in rules), key=calls.get) == rules


def is_own(function):
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self"
