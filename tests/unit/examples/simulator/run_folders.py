"""Run folders as the trainer writes them, made by simulating steps with known rates."""

import json
from dataclasses import replace

import yaml

from code_a1_recipe.runs.rollout_record import encode_records
from examples.simulator.recorded import FIRST_STEP, judge_number
from examples.simulator.simulator import BARRIER, POLICIES, Layout, simulate_episodes, update_seconds
from examples.simulator.workload import sample_step

from ...conftest import case, loaded, rollout, suite


def write_run(
    folder, rates, *, mode="streaming", num_steps=3, other_seconds=0.05, updated=POLICIES, layout="colocated", **tests
):
    """``num_steps`` steps beside the first one, each with its own lengths, to the second as simulated.

    ``tests``: ``hidden`` and ``pooled`` asserts for every program.
    """
    (folder / "rollouts").mkdir(parents=True)
    shape = rates.workload
    config = {
        "episode": {
            "num_candidates": shape.num_candidates,
            "num_suites": shape.num_suites,
            "cases_per_suite": shape.cases_per_suite,
            "num_workers": rates.client.workers,
            "barrier": mode == BARRIER,
        },
        "selection": {"update_n": shape.update_n},
        "sandbox": {"num_workers": rates.judge.workers, "programs_per_worker": rates.judge.programs_per_worker},
        "data": {
            "train_batch_size": shape.questions,
            "max_prompt_length": shape.question_tokens.cap,
            "max_response_length": shape.program_tokens.cap,
        },
        "actor_rollout_ref": {
            "actor": {"ppo_mini_batch_size": shape.mini_batch_groups},
            "rollout": {
                "max_num_seqs": rates.code.server.max_num_seqs,
                "max_num_batched_tokens": rates.code.server.max_num_batched_tokens,
            },
        },
        "policies": {policy: {"model": {"path": "tiny"}} for policy in POLICIES},
        "layout": layout,
        "pools": {policy: {"n_gpus_per_node": 1, "nnodes": 1} for policy in POLICIES},
        "trainer": {"device": "cpu", "n_gpus_per_node": 1, "nnodes": 1},
    }
    (folder / "resolved_config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    rows = []
    for step in range(1, FIRST_STEP + num_steps):
        work = _work(replace(shape, seed=step), tests)
        own = Layout.separate(1, 1) if layout == "separate" else Layout.colocated(1)
        records, episodes = _records(rates, work, step, mode, own)
        updates = {policy: update_seconds(rates, work, policy=policy, gpus=1) for policy in updated}
        sync = rates.code.sync_seconds + rates.test.sync_seconds
        whole = episodes + own.joined(updates.values()) + sync + other_seconds
        if step < FIRST_STEP:
            episodes, whole = episodes + 100, whole + 100  # what starts up is not to be learned from
        rows.append(
            {
                "step": step,
                "timing_s/episodes": episodes,
                **{f"timing_s/update_{policy}": seconds for policy, seconds in updates.items()},
                "timing_s/update_weights": sync,
                "timing_s/save_checkpoint": 7.0,
                "timing_s/step": whole + 7.0,
                "timing_s/testing": 4.0,  # verl validates when it has stopped the step's timer
            }
        )
        (folder / "rollouts" / f"train_{step:06d}.jsonl").write_bytes(encode_records(records))
    _write_lines(folder / "metrics.jsonl", rows)
    return folder


def question_id(q):
    return f"question {q}"


def _work(shape, tests):
    work = sample_step(shape)
    questions = tuple(tuple(replace(one, **tests) for one in question) for question in work.questions)
    judges = tuple(judge_number(question_id(q)) for q in range(shape.questions))
    return replace(work, questions=questions, judges=judges)


def _tests(number):
    return None if number is None else suite(*[case()] * number)["verdict"]


def _records(rates, work, step, mode, layout):
    times = simulate_episodes(rates, work, layout=layout, mode=mode)
    records = [
        rollout(
            index=q,
            step=step,
            question=question_id(q),
            candidate=c,
            prompt_tokens=one.written.prompt_tokens,
            response_tokens=one.written.response_tokens,
            verdict=loaded(),
            hidden_tests=_tests(one.hidden),
            pooled_tests=_tests(one.pooled),
            selected=one.trains_test,
            span=[0.0, times.written[q][c]],
            judge_span=[times.tested[q][c], times.judged[q][c]],
            suites=[
                suite(
                    *[case()] * (one.judged // len(one.suites)),
                    prompt_tokens=written.prompt_tokens,
                    response_tokens=written.response_tokens,
                    span=[times.written[q][c], times.tested[q][c]],
                )
                for written in one.suites
            ],
        )
        for q, question in enumerate(work.questions)
        for c, one in enumerate(question)
    ]
    return records, times.seconds


def _write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
