"""What ``tests/verl_main.sh`` says of another verl: all that the recipe uses is seen, each kind of change named."""

import ast
import copy
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from . import verl_changes

pytestmark = pytest.mark.nightly  # a process that imports all of verl; `test_verl_contract.py` is quicker

BASE = "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync"


@pytest.fixture(scope="module")
def seen(repository, tmp_path_factory):
    """In a process of its own, as the script asks: some of the modules silence the loggers that exist."""
    file = tmp_path_factory.mktemp("verl") / "seen.json"
    command = [sys.executable, verl_changes.__file__, "describe", str(file)]
    subprocess.run(command, cwd=repository, env={**os.environ, "PYTHONPATH": str(repository)}, check=True, timeout=240)
    return json.loads(file.read_text())


def test_what_the_recipe_uses_is_there_with_its_arguments(seen):
    names = seen["names"]
    assert names[f"{BASE}.step"] == "(self, metrics, timing_raw)"
    assert names[f"{BASE}.prepare_step"] == "(self)"
    assert names[f"{BASE}.timing_raw"] == "attribute of its objects"
    assert names["verl.checkpoint_engine.CheckpointEngineManager.sleep_replicas"] == "(self)"
    assert names["verl.trainer.ppo.utils.Role.ActorRollout"] == "Role"
    assert names["transfer_queue.kv_clear"] == "(keys, partition_id)"
    assert "on_step_end" in seen["calls"][f"{verl_changes.TRAINER}.fit"]


def test_all_that_is_imported_of_verls_exists(repository, seen):
    sources = list((repository / "code_a1_recipe").rglob("*.py"))
    imported = {name for path in sources for _, name in verl_changes._imports(ast.parse(path.read_text()))}
    assert len(imported) > 40
    assert imported - seen["names"].keys() == set()


def test_the_counts_are_those_of_the_table(seen):
    from code_a1_recipe.config.verl_keys import rule_of

    kinds = Counter(rule_of(key).kind for key in seen["keys"])
    assert verl_changes.counts(seen["keys"]) == (
        f"{len(seen['keys'])} keys: {kinds['honoured']} honoured, {kinds['refused']} refused, "
        f"{kinds['no_effect']} without effect"
    )


def test_the_same_verl_changes_nothing(seen, tmp_path, capsys):
    report = tmp_path / "tests.xml"
    report.write_text("<testsuites><testsuite><testcase classname='a' name='b'/></testsuite></testsuites>")
    assert not verl_changes.compare(seen, copy.deepcopy(seen), report)
    assert capsys.readouterr().out.endswith("nothing changed for this recipe\n")


def test_each_change_has_a_line_of_its_own(seen, tmp_path, capsys):
    new = copy.deepcopy(seen)
    new["keys"]["trainer.v1.sync.next"] = new["keys"]["another.key"] = "1"
    del new["keys"]["trainer.save_freq"]
    new["keys"]["trainer.nnodes"] = "'many'"
    del new["names"][f"{BASE}._balance_batch"]
    new["names"][f"{BASE}.step"] = "(self, batch)"
    new["calls"][f"{verl_changes.TRAINER}.fit"] += ["prepare_step"]
    new["calls"][f"{verl_changes.TRAINER}.fit"].remove("on_step_end")
    new["needs"] = [*new["needs"], "neo-queue"]
    report = tmp_path / "tests.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='tests.unit.a' name='test_b'>"
        "<failure message='assert 1 == 2&#10;more'/></testcase>"
        "<testcase classname='' name='tests.unit.c'><error message='collection failure'>import verl.x\n"
        "E   ModuleNotFoundError: no verl.x</error></testcase></testsuite></testsuites>"
    )
    assert verl_changes.compare(seen, new, report)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for line in (
        "tests.unit.a.test_b: assert 1 == 2",
        "tests.unit.c: ModuleNotFoundError: no verl.x",
        f"{BASE}._balance_batch",
        f"{BASE}.step: (self, batch), was (self, metrics, timing_raw)",
        f"{verl_changes.TRAINER}.fit now calls self.prepare_step()",
        f"{verl_changes.TRAINER}.fit no longer calls self.on_step_end()",
        "now neo-queue",
        "another.key = 1 (no rule)",
        "trainer.v1.sync.next = 1 (refused)",
        "trainer.save_freq",
        f"trainer.nnodes = 'many', was {seen['keys']['trainer.nnodes']}",
    ):
        assert line in lines, line


def test_a_report_that_is_missing_is_a_change(tmp_path):
    assert verl_changes.failed_tests(tmp_path / "none.xml") == ["the tests did not run"]
