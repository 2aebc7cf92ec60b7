"""The card of a set of demonstrations: what is in it, what is not, and how to train on it."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .demonstrations import SHOWN, Selection

if TYPE_CHECKING:
    from .command import Made
    from .options import SftOptions


def card(
    made: "Made", selection: Selection, *, options: "SftOptions", num_train: int, num_val: int, command: str
) -> str:
    """Markdown."""
    kept = selection.kept
    shown = Counter(one.shown for one in kept)
    breaking = Counter(one.shown for one in kept if one.num_breaking)
    sizes = Counter(str(len(one.asserts)) for one in kept)
    rows = [
        f"| {name} | {shown[name]} | {breaking[name]} | {meaning} |" for name, meaning in SHOWN.items() if shown[name]
    ]
    left_out = made.left_out + selection.dropped
    return "\n".join(
        [
            f"# {options.output.name}",
            "",
            "Demonstrations for a cold start of a Test LLM, made by `code-a1 data sft`. Every assert is a valid case",
            "whose expected output equals the return value of the question's reference.",
            "",
            f"- source: {made.source}",
            f"- {num_train} demonstrations for training, {num_val} for validation "
            f"({options.val_output.name}), split by question, seed {options.seed}",
            f"- {len({one.question_id for one in kept})} of {made.num_questions} questions, at most "
            f"{options.max_per_question} demonstrations each",
            f"- prompts: `{made.style.template}` (`prompts.name={made.style.pair}`"
            f"{', black box' if made.style.black_box else ''}); answers are "
            + ("one ```python block" if made.style.is_fenced else "bare asserts"),
            f"- asserts in a suite: {_counted(sizes)}",
            f"- outages of the sandbox: {made.num_outages}",
            "",
            "| Program shown | Demonstrations | whose suite breaks it | |",
            "| --- | ---: | ---: | --- |",
            *rows,
            "",
            "## Left out",
            "",
            *([f"- {reason}: {count}" for reason, count in left_out.most_common()] or ["- nothing"]),
            "",
            "## Train",
            "",
            "```bash",
            command,
            "```",
            "",
            "The last step's folder `huggingface` is the model: give it as `policies.test.model.path`, with `arm=sft`",
            "for a Test LLM that learns nothing more, or without for one that begins there.",
            "",
        ]
    )


def _counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: int(item[0]))
    return ", ".join(f"{size} ({count} times)" for size, count in ordered)
