"""How well does a rule teach the Test LLM to aim? Trained by itself on fixed programs: no Code LLM and no servers.

    python -m examples.leaderboard.tester_alone --rule 'adversary fitness=kills crowding=1.0 select=all hindsight=1.0'

A rule is the name of a reward with its keyword arguments, and ``select``, ``update_n`` (groups), ``hindsight`` (weight
of a supervised term on lessons), ``share`` (its max_break_rate), ``policy=0`` (lessons alone), ``by_std=0`` (advantages
are not divided by their deviation) and ``teacher=1`` (lessons are the perfect tester's asserts).

Programs are the micro world's own typical mistakes and its references. They are operations, so what each answers is
computed and no program runs. The update is GRPO as in training: one pass, on-policy. Before and after, 8 suites for
each of the same held-out buggy programs: narrow ones fail on at most one input of twenty, wide ones on more.
"""

import argparse
import ast
import collections
import json
import random
import re
import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from code_a1_recipe.algorithm.selection import GROUP_SELECTORS
from code_a1_recipe.micro_world import MicroSettings, ensure_assets
from code_a1_recipe.micro_world.demonstrations import Demonstration
from code_a1_recipe.micro_world.messages import test_messages
from code_a1_recipe.micro_world.mistakes import draw_mistake
from code_a1_recipe.micro_world.operations import answer_or_none
from code_a1_recipe.micro_world.sft import _encode, response_loss
from code_a1_recipe.stats.estimates import mean_estimate
from examples.bound_tester import write_suites
from reward_fns import JudgedCandidate, QuestionVerdicts, find_test_reward, reward_suites
from reward_fns.lookup import lookup
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, SuiteVerdict

Q, C, S, K, MAX_TOKENS = 8, 4, 8, 1, 24
RIGHT_CHANCE = 0.4
ASSERT = re.compile(r"assert f\((.*?)\) == (.*)")


def suite_of(text, question, operation):
    """The suite's only case as the judge would see it, or none."""
    found = ASSERT.fullmatch(text.strip())
    try:
        x, claim = (ast.literal_eval(part) for part in found.groups()) if found else (None, None)
    except (ValueError, SyntaxError):
        return SuiteVerdict(cases=(), rejections=(None,))
    fits = isinstance(x, list) and all(type(i) is int for i in x) if question.operation.takes_list else type(x) is int
    right = answer_or_none(question.operation, x) if fits else None
    if right is None:
        return SuiteVerdict(cases=(), rejections=(None,))
    outcome = CaseOutcome.PASSED if answer_or_none(operation, x) == right else CaseOutcome.WRONG_VALUE
    case = CaseResult(
        call=f"f({x})",
        reference_value=str(right),
        expected=str(claim),
        expected_correct=claim == right,
        outcome=outcome,
    )
    return SuiteVerdict(cases=(case,), rejections=())


def judged(question, operation, texts, pool):
    suites = tuple(suite_of(text, question, operation) for text in texts)
    verdict = CandidateVerdict(
        loaded=True, load_error="", suites=suites, history=(), dropped_history=(), cpu_seconds=0, wall_seconds=0
    )
    cases = tuple(case for text in pool for case in suite_of(text, question, operation).cases)
    pooled = SuiteVerdict(cases=cases, rejections=())
    return JudgedCandidate(source=operation.python, verdict=verdict, suite_texts=tuple(texts), pooled=pooled)


class Tester:
    """The Test LLM with its optimizer."""

    def __init__(self, folder, lr):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).float()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=0.0)

    def write(self, pairs, num):
        """``[pair][num]`` texts, prompt ids and response ids, at temperature 1."""
        messages = [test_messages(q.prompt, candidate=op.python, num_cases=K, black_box=False) for q, op in pairs]
        texts = [
            self.tokenizer.apply_chat_template(one, add_generation_prompt=True, tokenize=False) for one in messages
        ]
        batch = self.tokenizer(texts, padding=True, padding_side="left", return_tensors="pt", add_special_tokens=False)
        self.model.eval()
        with torch.no_grad():
            ids = self.model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                max_new_tokens=MAX_TOKENS,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                num_return_sequences=num,
            )
        responses = ids[:, batch["input_ids"].shape[1] :]
        decoded = self.tokenizer.batch_decode(responses, skip_special_tokens=True)
        mask = batch["attention_mask"].repeat_interleave(num, 0)
        return [decoded[i : i + num] for i in range(0, len(decoded), num)], ids, mask

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def imitate(self, lessons, weight):
        """Add the gradient of ``weight`` times the mean negative log-likelihood (nats a token) of given suites."""
        examples = []
        for question, operation, text in lessons:
            messages = test_messages(question.prompt, candidate=operation.python, num_cases=K, black_box=False)
            examples.append(_encode(Demonstration(messages=messages, response=text), self.tokenizer))
        if examples:
            (weight * response_loss(self.model, examples)).backward()

    def learn(self, ids, mask, rows, advantages):
        """Add the gradient of the policy loss on rows of a batch."""
        if not rows:
            return
        width = mask.shape[1]
        ids, mask = ids[rows], mask[rows]
        responses = ids[:, width:]
        ends = (responses == self.tokenizer.eos_token_id).cumsum(1)
        counts = ((ends == 0) | ((ends == 1) & (responses == self.tokenizer.eos_token_id))).float()
        whole = torch.cat([mask, counts.long()], 1)
        positions = (whole.cumsum(1) - 1).clamp(min=0)
        logits = self.model(input_ids=ids, attention_mask=whole, position_ids=positions).logits[:, width - 1 : -1]
        log_probs = logits.log_softmax(-1).gather(-1, responses.unsqueeze(-1)).squeeze(-1)
        loss = -(log_probs * counts * torch.tensor(advantages).unsqueeze(1)).sum() / counts.sum()
        loss.backward()


def lessons_of(candidates, chosen, share):
    """Programs that few of the question's calls break, each with such a call and the oracle's answer."""
    for one, (question, operation) in zip(candidates, chosen, strict=True):
        failed = {case.call: case for case in one.pooled.cases if case.outcome.failed}
        hits = sum(case.outcome.failed for case in one.pooled.cases)
        if failed and hits <= share * len(one.pooled.cases):
            yield from (
                (question, operation, f"assert {case.call} == {case.reference_value}") for case in failed.values()
            )


def taught(rng, chosen):
    """What the perfect tester asks first, with the right answer: how fast can this model learn to aim at all?"""
    for question, operation in chosen:
        text = write_suites(question.prompt, operation.python, num_suites=8, num_cases=K, seed=rng.randrange(1 << 30))
        case = suite_of(text[rng.randrange(4)], question, operation).cases
        if case:
            yield question, operation, f"assert {case[0].call} == {case[0].reference_value}"


def programs_of(rng, question):
    """C programs as a Code LLM that is half trained writes them."""
    wrong = [draw_mistake(rng, question.mistakes).operation for _ in range(C)]
    return [question.operation if rng.random() < RIGHT_CHANCE else one for one in wrong]


def recorded(questions):
    """The same narrow and wide buggy programs for every rule."""
    found = {"narrow": [], "wide": []}
    for question in questions:
        takes_list, inputs = question.operation.takes_list, question.world.inputs
        for mistake in question.mistakes:
            pairs = [
                (
                    question.operation.answer([x] if takes_list else x),
                    answer_or_none(mistake.operation, [x] if takes_list else x),
                )
                for x in inputs
            ]
            share = sum(a != b for a, b in pairs) / len(pairs)
            if share:
                found["narrow" if share <= 0.05 else "wide"].append((question, mistake.operation))
    rng = random.Random("recorded")
    return {kind: rng.sample(pairs, min(150, len(pairs))) for kind, pairs in found.items()}


def measure(tester, programs):
    """Detection by 8 suites, distinct calls, and right claims."""
    torch.manual_seed(0)
    figures, calls, right, asked = {}, 0, 0, 0
    for kind, pairs in programs.items():
        texts, _, _ = tester.write(pairs, S)
        hits = 0
        for (question, operation), group in zip(pairs, texts, strict=True):
            cases = [case for text in group for case in suite_of(text, question, operation).cases]
            hits += any(case.outcome.failed for case in cases)
            calls += len({case.call for case in cases})
            right += sum(case.expected_correct for case in cases)
            asked += len(group)
        figures[kind] = hits / len(pairs)
    return figures | {"distinct": calls / asked, "right": right / asked}


def train(rule, seed, options, assets, split, programs):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    name, *words = rule.split()
    kwargs = {
        key: (value if not re.fullmatch(r"[\d.]+", value) else float(value))
        for key, value in (w.split("=") for w in words)
    }
    select, update_n = kwargs.pop("select", "topvar"), int(kwargs.pop("update_n", 1))
    selector = lookup(select, GROUP_SELECTORS, what="group selector")
    weight, share, policy = kwargs.pop("hindsight", 0.0), kwargs.pop("share", 0.15), kwargs.pop("policy", 1.0)
    teacher, by_std = kwargs.pop("teacher", 0.0), kwargs.pop("by_std", 1.0)
    lessons = collections.deque(maxlen=256)
    reward = find_test_reward(name, kwargs=kwargs)
    tester = Tester(assets.test_model, options.lr)
    curve = {0: measure(tester, programs)}
    for step in range(1, options.steps + 1):
        chosen = [(q, op) for q in rng.sample(split.train[:128], Q) for op in programs_of(rng, q)]
        texts, ids, mask = tester.write(chosen, S)
        rows, advantages = [], []
        for start in range(0, len(chosen), C):
            question = chosen[start][0]
            pool = [text for group in texts[start : start + C] for text in group]
            candidates = tuple(judged(question, chosen[start + c][1], texts[start + c], pool) for c in range(C))
            verdicts = QuestionVerdicts(question_id=question.id, num_cases=K, candidates=candidates)
            given = (
                taught(rng, chosen[start : start + C])
                if teacher
                else lessons_of(candidates, chosen[start : start + C], share)
            )
            lessons.extend(given)
            rewards = [[one.total for one in row] for row in reward_suites(reward, verdicts)]
            for c in selector(rewards, update_n=update_n):
                mean, std = statistics.mean(rewards[c]), statistics.stdev(rewards[c])
                rows += [(start + c) * S + s for s in range(S)]
                advantages += [policy * (one - mean) / (std + 1e-6 if by_std else 1.0) for one in rewards[c]]
        tester.learn(ids, mask, rows, advantages)
        if weight:
            tester.imitate(rng.sample(list(lessons), min(32, len(lessons))), weight)
        tester.step()
        if step % options.every == 0:
            curve[step] = measure(tester, programs)
    return curve


def table_of(rows):
    """Markdown: for each rule the rates at its last step, and narrow detection over that before training, by seed."""
    lines = ["| rule | seeds | steps | narrow before | narrow | after / before | wide | distinct | right |"]
    lines.append("| --- " * 9 + "|")
    for rule in dict.fromkeys(row["rule"] for row in rows):
        mine = [row for row in rows if row["rule"] == rule]
        seeds = {row["seed"]: {one["step"]: one for one in mine if one["seed"] == row["seed"]} for row in mine}
        first, last = zip(*[(steps[0], steps[max(steps)]) for steps in seeds.values()], strict=True)
        figures = [[row["narrow"] for row in first], [row["narrow"] for row in last]]
        figures.append([after / before for before, after in zip(*figures, strict=True)])
        figures += [[row[name] for row in last] for name in ("wide", "distinct", "right")]
        cells = [mean_estimate(values).plus_minus() for values in figures]
        lines.append(f"| `{rule}` | {len(seeds)} | {last[0]['step']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rule", action="append", default=[])
    parser.add_argument("--table", type=argparse.FileType(), help="show the table of rows printed before")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--world", default="wide")
    parser.add_argument("--world-seed", type=int, default=0)
    options = parser.parse_args()
    if options.table:
        print(table_of([json.loads(line) for line in options.table if line.startswith("{")]))
        return
    settings = MicroSettings(world=options.world, seed=options.world_seed)
    assets, split = ensure_assets(settings=settings), settings.split()
    programs = recorded(split.heldout)
    for rule in options.rule:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            started = time.time()
            curve = train(rule, seed, options, assets, split, programs)
            for step, figures in curve.items():
                row = {"rule": rule, "seed": seed, "step": step} | {
                    key: round(value, 3) for key, value in figures.items()
                }
                sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.write(f"# {time.time() - started:.0f} s\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
