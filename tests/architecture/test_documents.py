"""What the READMEs name exists: links, paths, commands with their options, configuration keys, metrics."""

import ast
import importlib.util
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
import typer
from omegaconf import OmegaConf

from code_a1_recipe.cli.app import app
from code_a1_recipe.config.compose import compose_config, preset_names

REPOSITORY = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=REPOSITORY,
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()
DOCUMENTS = sorted(name for name in TRACKED if name.endswith(".md") and not name.endswith("tables.md"))
FOLDERS = ("code_a1_recipe", "constraints", "examples", "reward_fns", "sandbox", "studies", "tests")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*[\w/*}}]")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
METRIC = re.compile(r"(?:val/)?(?:code|test|judge|book|hindsight|time_frac|episode|progress)/[\w@]+")
SETTING = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+=|[a-z_]+(\.[a-z_0-9]+)+$")

pytestmark = pytest.mark.parametrize("document", DOCUMENTS)


@cache
def text_of(document):
    return (REPOSITORY / document).read_text(encoding="utf-8")


def code_of(document):
    """Inline code and the lines of code blocks, continued lines joined."""
    for found in CODE.findall(text_of(document)):
        block = found.startswith("```")
        lines = found.strip("`").replace("\\\n", " ").split("\n") if block else [" ".join(found.strip("`").split())]
        yield from (line.split(" #")[0].strip() for line in lines[1 if block else 0 :])


def headings(document):
    """Anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text_of(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings(document):
    wrong = []
    for link in LINK.findall(text_of(document)):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (REPOSITORY / document).parent / name if name else REPOSITORY / document
        if not target.exists() or (anchor and anchor not in headings(str(target.resolve().relative_to(REPOSITORY)))):
            wrong.append(link)
    assert wrong == []


def test_paths_of_the_repository_exist(document):
    named = {path for path in PATH.findall(text_of(document)) if "ROOM" not in path and "_results" not in path}
    names = {re.sub(r"\{.*\}", "*", path) for path in named}
    assert sorted(path for path in names if not any(REPOSITORY.glob(path.rstrip("/")))) == []


def test_python_files_that_are_named_alone_exist(document):
    files = {Path(name).name for name in TRACKED}
    named = {code for code in code_of(document) if re.fullmatch(r"\w+\.py", code)}
    assert (
        sorted(named - files - {"my_rewards.py", "median.py", "slow.py", "short.py", "newest.py", "focus.py"}) == []
    )  # a reader's own


def test_modules_that_are_run_exist(document):
    modules = {
        found
        for line in code_of(document)
        for found in re.findall(r"python -m ((?:sandbox|examples|studies)[\w.]*)", line)
    }
    assert sorted(module for module in modules if importlib.util.find_spec(module) is None) == []
    parts = {part for line in code_of(document) for part in re.findall(r"python -m sandbox (\w+)", line)}
    parser = (REPOSITORY / "sandbox" / "__main__.py").read_text(encoding="utf-8")
    assert sorted(part for part in parts if f'"{part}"' not in parser) == []


def commands_of(document):
    for line in code_of(document):
        for start in re.finditer(r"(?:^|[ (&])(?:bash run_codea1\.sh|code-a1|python -m code_a1_recipe)(?= |$)", line):
            yield shlex.split(line[start.end() :].split(" && ")[0].replace("...", ""))


def test_commands_and_their_options_exist(document):
    wrong = [f"{shlex.join(words)}: {what}" for words in commands_of(document) for what in what_is_wrong(words)]
    assert wrong == []


def what_is_wrong(words):
    """What the application does not know of a command line, or misses in it."""
    command, rest = typer.main.get_command(app), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    if hasattr(command, "commands"):
        return [] if words[:1] == ["setup"] or not rest or is_training(rest[0]) else ["unknown command"]
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    known = {"--help"}.union(*((*option.opts, *option.secondary_opts) for option in options))
    needed = [option.opts[0] for option in options if option.required and rest and given.isdisjoint(option.opts)]
    return sorted(given - known) + [f"lacks {name}" for name in needed if "--help" not in given]


def is_training(word):
    """The word of a command line that may stand where ``train`` is left out."""
    return word in preset_names() or "=" in word or word.endswith(".yaml") or word[0] in "-[<" or word.isupper()


@cache
def configuration():
    return compose_config("cpu", [])


def test_settings_are_keys_of_the_configuration(document):
    words = {word.strip("'[],") for line in code_of(document) for word in line.split()}
    blocks = set(configuration())
    keys = {found[0].rstrip("=") for word in words if (found := SETTING.match(word))}
    keys = {key for key in keys if key.split(".")[0] in blocks and Path(key).suffix not in (".json", ".py", ".sh")}
    if document == "CHANGELOG.md":
        keys.clear()  # it names keys that have left
    missing = [key for key in keys if not has_key(key) and not is_module(key)]
    assert sorted(missing) == []


def is_module(name):
    return name.startswith("sandbox.") and importlib.util.find_spec(name) is not None


def has_key(key):
    head, *rest = key.split(".")
    if head == "policies" and len(rest) > 1:
        return has_key(".".join(("actor_rollout_ref", *rest[1:])))
    *path, last = (head, *rest)
    parent = OmegaConf.select(configuration(), ".".join(path)) if path else configuration()
    return parent is not None and (last in parent or "override_config" in path)


@cache
def written_words():
    """Every string constant of the recipe and its rewards, split at slashes."""
    paths = [path for package in ("code_a1_recipe", "reward_fns") for path in (REPOSITORY / package).rglob("*.py")]
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {part for text in texts if isinstance(text, str) for part in text.split("/")}


def test_metrics_are_written_by_the_recipe(document):
    named = {code for code in code_of(document) if METRIC.fullmatch(code)}
    metrics = {name for name in named if not (REPOSITORY / "tests" / name.removeprefix("test/")).exists()}
    assert (
        sorted(name for name in metrics if name.split("/")[-1].removeprefix("buggy_programs_") not in written_words())
        == []
    )
