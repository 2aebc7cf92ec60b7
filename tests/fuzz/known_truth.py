"""Judge cases whose truth is known by construction, from a seed: ``python tests/fuzz/known_truth.py --cases 3000``.

The truth of a case says which asserts are valid, which of them the program passes, and how many distinct mistakes the
suite shows: the inputs, as the reference reads them, on which the program is wrong. The command prints two rates:

- over-credited: the program passes a case that it fails, an invalid assert counts, or one mistake is counted twice;
- lost: the program fails a case that it passes, a valid assert is refused, or two mistakes are counted once.

``--stdin-mistakes`` measures mistakes of 60 programs that read standard input: twelve problems, read in five ways, each
with eight spellings of one input (one mistake) and eight different inputs (eight mistakes). ``--varying`` counts the
valid cases of references whose answer varies (0 are right), and of those that only look random (all are right).
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import function_truth as functions
import stdin_truth as stdin
from function_truth import DATA, Case, Fact

from sandbox import Judge, JudgeRequest, LocalRunner, SandboxUnavailableError

KNOWS_GIVEN = any(known.name == "given" for known in fields(JudgeRequest))


@dataclass
class Report:
    """What the judge got wrong in one case."""

    index: int
    name: str
    case: Case
    over: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def case_of(seed, index):
    rng = random.Random(f"{seed} {index}")
    name = rng.choices(list(DATA["weights"]), list(DATA["weights"].values()))[0]
    room = stdin if name.startswith("stdin") else functions
    if hasattr(room, name):
        return name, getattr(room, name)(rng)
    # Other names are tables of the data file.
    make = room.program if room is stdin or isinstance(DATA[name], dict) else functions.written
    return name, make(rng, name)


def judge(judge_, name, case, suites):
    options = {"given": case.given} if KNOWS_GIVEN else {}
    return judge_.judge(
        JudgeRequest(
            question_id=name, reference=case.reference, candidate=case.candidate, kind=case.kind, checker=case.checker,
            suites=tuple(tuple(fact.text for fact in facts) for facts in suites), **options,
        )
    ).suites  # fmt: skip


def num_mistakes(verdict):
    return len({case.family or case.call for case in verdict.cases if case.outcome.failed})


def paired(verdict, facts):
    """Pair each fact with its case, or with the reason why the assert was refused."""
    taken, refused = list(facts), []
    for rejection in verdict.rejections:
        number = max(number for number, fact in enumerate(taken) if fact.text == rejection.text)
        refused.append((taken.pop(number), rejection.reason.value))
    return list(zip(taken, verdict.cases, strict=True)), refused


def compare(report, verdict):
    case, over, lost = report.case, report.over, report.lost
    pairs, refused = paired(verdict, case.facts)
    for fact, reason in refused:
        if fact.valid:
            lost.append(f"refused, {reason}: {fact.text}")
    for fact, result in pairs:
        if fact.valid is False:
            over.append(f"an invalid assert counts: {fact.text}")
        elif fact.passes == result.outcome.failed:
            (lost if fact.passes else over).append(f"{result.outcome.value} {result.detail}: {fact.text}")
        elif fact.claim != result.expected_correct:
            (lost if fact.claim else over).append(f"the claim is {fact.claim}, {result.reference_value}: {fact.text}")
    is_wrong = any(fact.valid and not fact.passes for fact in case.facts)
    if case.given:
        if is_wrong and not any(result.outcome.failed for _, result in pairs):
            over.append("a wrong program passes all given tests that count")
        return
    # A refused assert that may be refused must not hide its mistake. Any other wrong verdict is counted above.
    shown = [fact for fact, _ in pairs] + [fact for fact, _ in refused if fact.valid is None]
    wanted, found = len({fact.thing for fact in shown if not fact.passes}), num_mistakes(verdict)
    if found != wanted and not over and all(text.startswith("refused") for text in lost):
        (over if found > wanted else lost).append(f"{found} mistakes counted, {wanted} shown")


def run(judge_, seed, index):
    name, case = case_of(seed, index)
    report = Report(index, name, case)
    try:
        (verdict,) = judge(judge_, f"{seed} {index}", case, [case.facts])
        compare(report, verdict)
    except (SandboxUnavailableError, ValueError) as error:
        report.lost.append(f"no verdict about each assert: {type(error).__name__} {error}")
    return report


def run_all(seed, indices, workers=1, tier=0):
    """Judge the cases of a seed, and return their reports in order."""
    with LocalRunner(num_workers=workers, tier=tier) as runner, ThreadPoolExecutor(workers) as pool:
        judge_ = Judge(runner)
        return list(pool.map(lambda index: run(judge_, seed, index), indices))


def show(reports):
    counts = defaultdict(Counter)
    for report in reports:
        for name in (report.name, "all"):
            counts[name].update(cases=1, over=bool(report.over), lost=bool(report.lost))
        for kind, texts in (("OVER", report.over), ("LOST", report.lost)):
            if texts:
                print(f"{kind} {report.index} {report.name} ({report.case.reason}): {texts[0][:300]}")
    print(f"{'class':20} {'cases':>6} {'over-credited':>14} {'lost':>14}")
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        cells = [f"{count[kind]:5} {100 * count[kind] / count['cases']:6.2f} %" for kind in ("over", "lost")]
        print(f"{name:20} {count['cases']:6} {cells[0]:>14} {cells[1]:>14}")


def stdin_mistakes(judge_, seed):
    """Print how many spellings are paid more than once, and how many mistakes of different inputs are merged."""
    results = []
    for problem in DATA["stdin_problems"]:
        for way in stdin.OPENERS:
            case = stdin.mistakes(random.Random(f"{seed} {problem} {way}"), problem, way, 8, 8)
            suites = case.facts[:8], [case.facts[0], *case.facts[8:]]
            spelled, different = map(num_mistakes, judge(judge_, case.reason, case, suites))
            results.append((spelled, different))
            if (spelled, different) != (1, 8):
                print(f"{case.reason}: spellings count as {spelled} of 1, different inputs as {different} of 8")
    number = len(results)
    paid = sum(spelled - 1 for spelled, _ in results) / (7 * number)
    merged = 1 - sum(different for _, different in results) / (8 * number)
    num_paid, num_merged = sum(spelled > 1 for spelled, _ in results), sum(different < 8 for _, different in results)
    print(f"{number} references: {paid:.1%} of spellings paid again, in {num_paid} references")
    print(f"{number} references: {merged:.1%} of different inputs merged, in {num_merged} references")


def varying(judge_):
    """Print how many calls of varying references count, and how many of steady ones do. Each call is asked alone."""
    for table in ("varying", "steady"):
        valid = failed = total = 0
        for row in DATA[table]:
            case = Case(row["name"], row["source"], row["source"], [])
            suites = [[Fact(f"assert {call} == 3", call)] for call in row["calls"]]
            found = [judge(judge_, f"{case.reason} {suite}", case, [suite])[0].cases for suite in suites]
            results = [result for cases in found for result in cases]
            total, valid = total + len(suites), valid + len(results)
            failed += sum(result.outcome.failed for result in results)
            if len(results) != len(suites) * (table == "steady"):
                print(f"{table}: {case.reason}: {len(results)} of {len(suites)} calls are valid")
        print(f"{table}: {valid} of {total} calls of {len(DATA[table])} references are valid;", end=" ")
        print(f"the reference itself fails {failed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tier", type=int, default=0)
    parser.add_argument("--only", type=int, help="index of the only case to judge")
    parser.add_argument("--out", help="JSON file for the failing cases")
    parser.add_argument("--stdin-mistakes", action="store_true")
    parser.add_argument("--varying", action="store_true")
    options = parser.parse_args()
    with LocalRunner(num_workers=options.workers, tier=options.tier) as runner:
        if options.stdin_mistakes:
            stdin_mistakes(Judge(runner), options.seed)
        if options.varying:
            varying(Judge(runner))
    if options.stdin_mistakes or options.varying:
        return
    indices = range(options.cases) if options.only is None else [options.only]
    reports = run_all(options.seed, indices, options.workers, options.tier)
    show(reports)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump([asdict(report) for report in reports if report.over or report.lost], file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
