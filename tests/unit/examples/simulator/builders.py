"""Rates and workloads of which a test states only what matters to it."""

from dataclasses import replace

from examples.simulator.rates import rates_from, read_rates
from examples.simulator.workload import Generation, Program, StepWork

FREE_SERVER = {
    "iteration_seconds": 1.0,
    "request_seconds": 0.0,
    "context_token_seconds": 0.0,
    "prefill_token_seconds": 0.0,
    "admission_seconds": 0.0,
    "demand": 1.0,
    "max_num_seqs": 1000,
    "max_num_batched_tokens": 10**9,
    "kv_tokens": 10**9,
    "cache_block_tokens": 1,
}
"""An iteration takes a second, whatever it does."""


def rates(*, code=None, test=None, client=None, judge=None, **machine):
    """Everything is free but the servers' iterations."""
    raw = rates_from(read_rates("paper_1.5b")).plain()
    update = dict.fromkeys(raw["code"]["update"], 0.0)
    for name, server in (("code", code), ("test", test)):
        server = FREE_SERVER | (server or {})
        raw[name] = {"server": server, "update": update, "sync_seconds": 0.0, "sleep_seconds": 0.0}
    nothing = {"send_seconds": 0.0, "receive_seconds": 0.0, "question_seconds": 0.0}
    raw["client"] = {"workers": 1} | nothing | (client or {})
    raw["judge"] = {
        "workers": 1,
        "programs_per_worker": 1,
        "question_seconds": 0.0,
        "program_seconds": 0.0,
        "case_seconds": 0.0,
    } | (judge or {})
    raw["machine"] |= machine
    raw["step_seconds"] = 0.0
    return rates_from(raw)


def program(tokens, suites=(), *, prompt=1, suite_prompt=1, judged=0, **fields):
    """A program of so many tokens with suites of these many."""
    return Program(
        written=Generation(prompt_tokens=prompt, response_tokens=tokens),
        suites=tuple(Generation(prompt_tokens=suite_prompt, response_tokens=suite) for suite in suites),
        judged=judged,
        **fields,
    )


def step(*questions, mini_batch_groups=1):
    """A step of these questions; question q goes to judge q."""
    return StepWork(
        questions=tuple(tuple(question) for question in questions),
        judges=tuple(range(len(questions))),
        mini_batch_groups=mini_batch_groups,
    )


def shaped(source, **shape):
    """The same rates with another workload."""
    return replace(source, workload=replace(source.workload, **shape))
