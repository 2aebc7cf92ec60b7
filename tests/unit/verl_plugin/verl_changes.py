"""What another verl changes for this recipe: its configuration keys, and the names that the recipe uses.

Run as a program it prints the installed verl's keys, counted by what they do here; ``describe FILE`` writes what the
recipe sees of the installed verl as JSON, and ``compare OLD NEW TESTS.xml`` says in plain words what changed, with the
exit status 1 where something did.

``tests/verl_main.sh`` runs it before and after it puts another verl in the place of the installed one.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import re
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
TRAINER = "verl.trainer.ppo.v1.trainer_base.PPOTrainer"
LOOPS = ("fit", "step", "_step_once")
"""Methods of verl's trainer whose calls the recipe answers (``CodeA1Trainer``) or repeats (``Policy.update``)."""
BY_HANDLE = {
    "verl.workers.engine_workers.ActorRolloutRefWorker": ("init_model", "load_checkpoint", "save_checkpoint"),
    "transfer_queue.KVBatchMeta": ("select_keys",),
}
"""Methods called on objects whose class does not show in the source."""


# ------------------------------ what the recipe uses, from its source ------------------------------


def used_names(sources: list[Path]) -> set[str]:
    """Dotted names of verl's and TransferQueue's that the files import, and what they use of classes and modules."""
    names = {f"{owner}.{name}" for owner, used in BY_HANDLE.items() for name in used}
    for path in sources:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = dict(_imports(tree))
        names |= set(imported.values())
        names |= {f"{imported[name]}.{used}" for name, used in _attributes(tree) if name in imported}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names |= set(_of_class(node, imported))
    return names


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Local name and dotted name of each import, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [(one.asname or one.name, one.name) for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = [(one.asname or one.name, f"{node.module}.{one.name}") for one in node.names]
        else:
            continue
        yield from (pair for pair in found if pair[1].split(".")[0] in ("verl", "transfer_queue"))


def _attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr


def _of_class(node: ast.ClassDef, imported: dict[str, str]) -> Iterator[str]:
    """What a class overrides of verl's, uses of itself, and calls on the objects of verl's that it makes."""
    made = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Call):
            maker = inner.value.func
            maker = maker.value if isinstance(maker, ast.Attribute) else maker  # Class(...) or Class.create(...)
            if isinstance(maker, ast.Name) and maker.id in imported and isinstance(inner.targets[0], ast.Attribute):
                made[inner.targets[0].attr] = imported[maker.id]
    own = {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            owner = inner.value
            if (isinstance(owner, ast.Name) and owner.id == "self") or (
                isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            ):
                own.add(inner.attr)
            elif isinstance(owner, ast.Attribute) and owner.attr in made:
                yield f"{made[owner.attr]}.{inner.attr}"
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in imported:
            yield from (f"{imported[base.id]}.{name}" for name in own)


# ------------------------------ what the installed verl has of it ------------------------------


def describe() -> dict[str, Any]:
    """What this recipe sees of the verl that Python finds first."""
    sources = [path for part in ("code_a1_recipe", "reward_fns") for path in sorted((REPOSITORY / part).rglob("*.py"))]
    known = {name: form for name in sorted(used_names(sources)) if (form := form_of(name))}
    return {
        "version": importlib.metadata.version("verl"),
        "needs": sorted(one for one in importlib.metadata.requires("verl") or () if "extra ==" not in one),
        "keys": {key: repr(value) for key, value in verl_keys().items()},
        "names": known,
        "calls": {f"{TRAINER}.{loop}": calls_of(f"{TRAINER}.{loop}") for loop in LOOPS},
    }


def verl_keys() -> dict[str, Any]:
    """Each key of verl's own configuration with its value, nothing of the recipe's."""
    from omegaconf import OmegaConf

    from code_a1_recipe.config import compose, verl_keys

    tree = compose._composed_by_hydra(compose._verl_config_dir(), "ppo_trainer", ())
    found = dict(verl_keys._leaves(OmegaConf.to_container(tree, resolve=False)))
    return {key: value for key, value in found.items() if not key.endswith("_target_")}


def counts(keys: Any) -> str:
    """How many of verl's keys are honoured, refused and without effect here."""
    from code_a1_recipe.config.verl_keys import rule_of

    kinds = Counter(rule.kind if (rule := rule_of(key)) else "without a rule" for key in keys)
    words = {"no_effect": "without effect"}
    return f"{len(keys)} keys: " + ", ".join(
        f"{number} {words.get(kind, kind)}" for kind, number in kinds.most_common()
    )


def form_of(name: str) -> str:
    """Arguments of what a dotted name stands for, or what else it is; empty where there is no such thing."""
    try:
        found = _resolve(name)
    except (ImportError, AttributeError) as error:
        owner, _, attribute = name.rpartition(".")
        try:
            return "attribute of its objects" if _is_set(_resolve(owner), attribute) else ""
        except (ImportError, AttributeError):
            return f"cannot be imported: {error}" if not isinstance(error, ModuleNotFoundError | AttributeError) else ""
    if inspect.ismodule(found):
        return "module"
    if not callable(found):
        return type(found).__name__
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return "callable"
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return re.sub(r" at 0x\w+", "", str(inspect.Signature(plain)))


def _resolve(name: str) -> Any:
    """The object of a dotted name; the longest part that is a module is imported."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise ImportError(str(error)) from error
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def _is_set(owner: Any, attribute: str) -> bool:
    """Whether a class or one above it sets the attribute on its objects."""
    above = [one for one in getattr(owner, "__mro__", ()) if one.__module__.split(".")[0] == "verl"]
    return any(re.search(rf"\bself\.{attribute}\b[^=\n]*=[^=]", inspect.getsource(one)) for one in above)


def calls_of(name: str) -> list[str]:
    """Methods that a method of verl's calls on itself, in the order of its lines."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(_resolve(name))))
    except (ImportError, AttributeError):
        return []
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    own = [one for one in called if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)]
    ordered = sorted((one.lineno, one.attr) for one in own if one.value.id == "self")
    return list(dict.fromkeys(attribute for _, attribute in ordered))


# ------------------------------ two of them compared ------------------------------


def changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[str]]:
    """A line for each change, by heading; what both lack is none."""
    from code_a1_recipe.config.verl_keys import rule_of

    rules = {key: rule.kind.replace("_", " ") if (rule := rule_of(key)) else "no rule" for key in new["keys"]}
    defaults = old["keys"].keys() & new["keys"].keys()
    names = {name for name in old["names"] if name in new["names"]}
    of_keys = {
        "keys that are new": [
            f"{key} = {new['keys'][key]} ({rules[key]})" for key in sorted(new["keys"].keys() - old["keys"].keys())
        ],
        "keys that are gone": sorted(old["keys"].keys() - new["keys"].keys()),
        "keys with another value": [
            f"{key} = {new['keys'][key]}, was {old['keys'][key]}"
            for key in sorted(defaults)
            if new["keys"][key] != old["keys"][key]
        ],
    }
    of_names = {
        "names we use that are gone": sorted(old["names"].keys() - new["names"].keys()),
        "names we use with other arguments": [
            f"{name}: {new['names'][name]}, was {old['names'][name]}"
            for name in sorted(names)
            if new["names"][name] != old["names"][name]
        ],
        "names we define that verl now has too": sorted(new["names"].keys() - old["names"].keys()),
        "calls in verl's loop": [
            f"{method} {verb} self.{call}()"
            for method in old["calls"]
            for verb, first, second in (("now calls", "new", "old"), ("no longer calls", "old", "new"))
            for sides in [{"old": old["calls"][method], "new": new["calls"][method]}]
            for call in sides[first]
            if call not in sides[second]
        ],
        "what verl needs": [f"no longer {one}" for one in old["needs"] if one not in new["needs"]]
        + [f"now {one}" for one in new["needs"] if one not in old["needs"]],
    }
    return of_names | of_keys


def failed_tests(report: Path) -> list[str]:
    """A line for each test of a JUnit report that failed; one that says so where there is no report."""
    if not report.is_file():
        return ["the tests did not run"]
    lines = []
    for case in ElementTree.parse(report).iter("testcase"):
        for problem in (*case.iter("failure"), *case.iter("error")):
            raised = re.findall(r"^E +(.+)", problem.text or "", re.MULTILINE)
            message = problem.get("message") or ""
            # A file that cannot be imported has its reason in the last line of what was raised.
            reason = raised[-1] if raised and message == "collection failure" else message.partition("\n")[0]
            lines.append(f"{case.get('classname')}.{case.get('name')}: {reason[:200]}".lstrip("."))
    return lines


def compare(old: dict[str, Any], new: dict[str, Any], report: Path) -> bool:
    """Print what changed; whether anything did."""
    print(f"verl {old['version']} -> {new['version']}\n  then {counts(old['keys'])}\n  now  {counts(new['keys'])}")
    found = {"tests that failed": failed_tests(report)} | changes(old, new)
    for heading, lines in found.items():
        if lines:
            print(f"\n{heading} ({len(lines)}):")
            print("\n".join(f"  {line}" for line in lines))
    changed = ", ".join(f"{len(lines)} {heading}" for heading, lines in found.items() if lines)
    print(f"\nchanged: {changed}" if changed else "\nnothing changed for this recipe")
    return bool(changed)


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(REPOSITORY))
    if not arguments:
        print(f"verl {importlib.metadata.version('verl')}, {counts(verl_keys())}")
    elif arguments[0] == "describe":
        Path(arguments[1]).write_text(json.dumps(describe(), indent=1), encoding="utf-8")
    else:
        old, new = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments[1:3])
        return int(compare(old, new, Path(arguments[3])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
