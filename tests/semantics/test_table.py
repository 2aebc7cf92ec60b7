"""Each row of the tables in sandbox/README.md and sandbox/RULES.md has exactly one test."""

import ast
import re
from collections import Counter
from pathlib import Path


def table_rows(repository: Path) -> Counter[str]:
    documents = [repository / "sandbox" / name for name in ("README.md", "RULES.md")]
    text = "".join(document.read_text(encoding="utf-8") for document in documents)
    return Counter(re.findall(r"^\| (S\d{2,3}) \|", text, flags=re.MULTILINE))


def rows_with_tests(folder: Path) -> Counter[str]:
    return Counter(
        found[1].upper()
        for path in folder.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and (found := re.match(r"test_(s\d{2,3})_", node.name))
    )


def test_every_row_of_the_table_has_one_test_and_every_test_one_row(repository):
    rows, tests = table_rows(repository), rows_with_tests(Path(__file__).parent)
    assert sorted(rows) == sorted(tests)
    assert max(rows.values()) == max(tests.values()) == 1


def test_the_ten_line_example_prints_what_the_text_says(repository, capsys):
    text = (repository / "sandbox" / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {})
    assert [f"`{line}`" in text for line in capsys.readouterr().out.splitlines()] == [True, True]
