"""Every branch that only a machine with GPUs takes has a test that needs none, or a reason why it needs a card.

``tests/gpu_branches.toml`` lists them. A line of the packages, of their YAML or of ``run_codea1.sh`` that speaks of a
device must be claimed there, by a branch or as none.
"""

import ast
import re
import tomllib
from fnmatch import fnmatch
from functools import cache

import pytest

from .house_figures import PACKAGES, REPOSITORY

TABLE = tomllib.loads((REPOSITORY / "tests" / "gpu_branches.toml").read_text(encoding="utf-8"))
BRANCHES, NONE = TABLE["branch"], TABLE["none"]
SPEAKS_OF_A_DEVICE = re.compile(
    r"cuda|nvidia|flash_?attn|free_cache_engine|(?<!time\.)(?<!asyncio\.)\bsleeps?\b|\bwake|\bawake|offload|empty_cache"
    r"|OutOfMemory|\bdevice\b|on_gpu|on_cpu|\b_gpus\(|no_gpu|num_gpus"
    r"|[=!]= (SEPARATE|COLOCATED)|[\"']separate|full_determinism"
    r"|is_seeded|BATCH_INVARIANT|FLASHINFER|VERL_PLATFORM|PLATFORM_|STRICT_PACK|abort_replicas|abort_all_requests",
    re.IGNORECASE,
)
IN_THE_SCRIPT = re.compile(
    r"nvidia-smi|\bgpu\b|flash|nvcc|driver|capability|\$flavour|Python\.h|ensurepip", re.IGNORECASE
)
IN_YAML = re.compile(SPEAKS_OF_A_DEVICE.pattern + r"|bf16|bfloat16|fp32|enforce_eager|chunked_prefill", re.IGNORECASE)


@cache
def text_of(file):
    return (REPOSITORY / file).read_text(encoding="utf-8")


def lines_of_code(file):
    """Number and text of each line without comments, and of Python without docstrings."""
    text, docstrings = text_of(file), set()
    for node in ast.walk(ast.parse(text)) if file.endswith(".py") else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if number not in docstrings and not line.lstrip().startswith("#"):
            yield number, re.sub(r"(^|\s)#(?!\w*['\"]).*$", "", line)


def files():
    yield "run_codea1.sh", IN_THE_SCRIPT
    for pattern, speaks in (("*.py", SPEAKS_OF_A_DEVICE), ("*.yaml", IN_YAML)):
        for path in sorted(path for package in PACKAGES for path in (REPOSITORY / package).rglob(pattern)):
            yield str(path.relative_to(REPOSITORY)), speaks


def claims(entry):
    return [entry["text"], *entry.get("also", [])] if "text" in entry else entry["lines"]


def is_claimed(file, line):
    return any(
        fnmatch(file, entry["file"]) and any(piece in line or piece == "*" for piece in claims(entry))
        for entry in (*BRANCHES, *NONE)
    )


def test_every_line_that_speaks_of_a_device_is_claimed():
    missing = [
        f"{file}:{number}: {line.strip()}"
        for file, speaks in files()
        for number, line in lines_of_code(file)
        if speaks.search(line) and not is_claimed(file, line)
    ]
    assert missing == [], "\n".join(["say in tests/gpu_branches.toml what these lines are:", *missing])


def name_of(entry):
    return f"{entry['file']}: {claims(entry)[0]}"


@pytest.mark.parametrize("entry", [*BRANCHES, *NONE], ids=name_of)
def test_what_an_entry_names_still_stands_in_its_file(entry):
    code = [line for file, _ in files() if fnmatch(file, entry["file"]) for _, line in lines_of_code(file)]
    assert code
    assert [piece for piece in claims(entry) if piece != "*" and not any(piece in line for line in code)] == []


@cache
def functions_of(file):
    """Names of the test functions of a file."""
    return {node.name for node in ast.walk(ast.parse(text_of(file))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("entry", BRANCHES, ids=name_of)
def test_a_branch_has_a_test_or_a_reason_why_it_needs_a_card(entry):
    assert entry["what"]
    assert ("tests" in entry) != ("needs_a_card" in entry)
    for node in entry.get("tests", []):
        file, _, name = node.partition("::")
        assert name.startswith("test_")
        assert name in functions_of(file), node


def test_how_many_branches_are_proved_without_a_card(capsys):
    covered, number = sum("tests" in entry for entry in BRANCHES), len(BRANCHES)
    with capsys.disabled():
        print(f"\nbranches of the GPU path: {covered} of {number} have a test, {number - covered} need a card")
    assert covered + sum("needs_a_card" in entry for entry in BRANCHES) == number
