"""What the command that runs tests against mutants names: modules, their tests, mutants that change nothing."""

from .run import TESTS, function_spans, read_equivalents


def test_every_listed_file_and_equivalent_is_there(repository):
    for module, files in TESTS.items():
        assert (repository / module).is_file(), module
        assert [name for name in files if not (repository / name).is_file()] == []
    for module, function, before, _ in read_equivalents(repository / "tests/mutation/equivalent.toml"):
        source = (repository / module).read_text()
        assert function in {name for _, _, name in function_spans(source)}, (module, function)
        flat = " ".join(line.strip() for line in source.splitlines())
        assert before in flat, (module, before)
