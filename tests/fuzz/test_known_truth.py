"""Judge some cases whose truth is known by construction; ``known_truth.py`` judges thousands."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import known_truth


def test_few_cases_are_over_credited_or_lost(pytestconfig):
    num_cases = 600 if pytestconfig.getoption("--all") else 60
    reports = known_truth.run_all("test", range(num_cases))
    over = [f"{report.index} {report.name}: {report.over}" for report in reports if report.over]
    lost = [f"{report.index} {report.name}: {report.lost}" for report in reports if report.lost]
    assert len(over) <= 0.01 * num_cases, over
    assert len(lost) <= 0.02 * num_cases, lost


def test_wrong_verdicts_are_noticed():
    cases = (known_truth.case_of(4, index) for index in range(99))
    name, case = next(found for found in cases if len({fact.passes for fact in found[1].facts}) == 2)
    report, flipped = known_truth.Report(0, name, case), [replace(fact, passes=not fact.passes) for fact in case.facts]
    with known_truth.LocalRunner(num_workers=1) as runner:
        (verdict,) = known_truth.judge(known_truth.Judge(runner), name, case, [case.facts])
    known_truth.compare(report, verdict)
    assert not report.over
    known_truth.compare(known_truth.Report(0, name, replace(case, facts=flipped), report.over, report.lost), verdict)
    assert report.over
    assert report.lost
    assert known_truth.case_of(4, 7) == known_truth.case_of(4, 7)
