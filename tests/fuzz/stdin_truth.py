"""Classes of cases with standard input for ``known_truth.py``: twelve problems, each in five ways of reading.

A spelling of an input has other blanks, line ends, spellings of numbers, or more text behind what the reference reads.
It is only drawn if the reference's way of reading cannot tell it apart. Different inputs have different values.
"""

from dataclasses import replace

from function_truth import DATA, Case, Fact

PRELUDE = "import ctypes, os, sys, threading, time\n"
OPENERS = {
    "words": "w = sys.stdin.read().split()\n",
    "tokens": "def tokens():\n    for line in sys.stdin:\n        yield from line.split()\nit = tokens()\n",
    "input": "",
    "fixed": "lines = iter([sys.stdin.readline() for _ in range(COUNT)])\n",
    "lines": "lines = iter(sys.stdin.read().splitlines())\n",
}
COUNTS = {"counted": 2, "text": 2, "tests": 12, "grid": 12}
"""Number of lines that a program reads if it reads a fixed number of lines; otherwise one."""


def source(layout, way, end):
    reading = DATA["layouts"][layout][["words", "tokens"].index(way) if way in ("words", "tokens") else 2]
    reading = reading.replace("LINE", "input()" if way == "input" else "next(lines)")
    return f"{PRELUDE}{OPENERS[way].replace('COUNT', str(COUNTS.get(layout, 1)))}{reading}\n{end}\n"


def draw_lines(rng, layout, near=None):
    """Draw the words of each line; numbers are ints. With ``near``, one word of its last line is another one."""
    if near:
        *start, last = near
        place = rng.randrange(len(last))
        word = rng.randint(1, 30) if isinstance(last[place], int) else "".join(rng.choices("#.", k=len(last[place])))
        return [*start, [*last[:place], word, *last[place + 1 :]]]
    count = rng.randint(2, 6)
    numbers, others = ([rng.randint(1, 30) for _ in range(count)] for _ in "ab")
    letters, cells = ("".join(rng.choices(signs, k=count)) for signs in ("abc", "#."))
    names = {"a": numbers, "b": others, "count": count, "letters": letters, "cells": cells}
    return eval(DATA["drawn"][layout], names)


def plain(lines):
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def output(layout, expression, lines):
    """Return what a program prints for an input. The code comes from the data file."""
    names = {"w": plain(lines).split()}
    exec(f"{DATA['layouts'][layout][0]}\nprinted = [{expression}]", names)
    return " ".join(map(str, names["printed"]))


def spelling(rng, layout, way, lines):
    """Write an input so that a reference with this way of reading reads the same words."""
    is_free = way in ("words", "tokens")
    reads_all = is_free and layout in ("numbers", "floats")
    numbers = ["{}", "{}", "0{}", "+{}", "00{}"] + ["{}.0", "{}e0"] * (layout == "floats")
    words = [[word if isinstance(word, str) else rng.choice(numbers).format(word) for word in line] for line in lines]
    if is_free and rng.random() < 0.5:
        flat = [word for line in words for word in line]
        words = [flat] if rng.random() < 0.5 else [[word] for word in flat]
    space, edge = rng.choice([" ", " ", "  ", "\t", " \t "]), rng.choice(["", "", " ", "  ", "\t"])
    end = rng.choice(["\n", "\n", "\r\n", " \n", *["\n\n", "\n \n"] * is_free])
    text = end.join(edge + space.join(line) for line in words) + rng.choice(["", end, end + "\n\n", "  " + end])
    if not reads_all and rng.random() < 0.6:
        junk = rng.choice(["0", "zz", "-7 zz 1", "5 5", "3\n1 2 9", "\n\nx", "#", "1.5", "a b c\nd", "'", "0\n0\n0"])
        text += (" " if is_free and rng.random() < 0.5 else "\n" * (not text.endswith("\n"))) + junk
    return text


def draw_inputs(rng, layout, number, wanted=lambda lines: True):
    """Draw different inputs. Half of them are near the first one."""
    found = {}
    for attempt in range(400 * number):
        lines = draw_lines(rng, layout, near=next(iter(found.values()), None) if attempt % 2 else None)
        if len(found) < number and wanted(lines):
            found.setdefault(plain(lines), lines)
    return list(found.values())


def fact(layout, expression, lines, passes, text=""):
    printed = output(layout, expression, lines) + "\n"
    return Fact(f"assert run({text or plain(lines)!r}) == {printed!r}", plain(lines), passes)


def program(rng, table):
    """A program that prints the right output, and does something else beside it, or instead of it for some outputs."""
    layout, right, wrong = rng.choice(DATA["stdin_problems"])
    way, other_way = rng.choices(list(OPENERS), k=2)
    inputs = draw_inputs(rng, layout, rng.randint(3, 8))
    rights, wrongs = ([output(layout, expression, lines) for lines in inputs] for expression in (right, wrong))
    chosen = rng.sample(rights, rng.randint(1, len(rights)))
    end, how = f"print({wrong})", ""
    if table != "stdin_mutants":
        how = rng.choice(list(DATA[table]))
        end = DATA[table][how].replace("X", right)
    if table == "stdin_harms":
        harm = end.replace("\n", "\n    ")
        end = f"if ' '.join(map(str, [{right}])) in {chosen}:\n    {harm}\nelse:\n    print({right})"
    passes = {
        "stdin_keepers": [True] * len(inputs),
        "stdin_harms": [printed not in chosen for printed in rights],
        "stdin_mutants": [printed == other for printed, other in zip(rights, wrongs, strict=True)],
    }[table]
    facts = [fact(layout, right, *pair) for pair in zip(inputs, passes, strict=True)]
    sources = source(layout, way, f"print({right})"), source(layout, other_way, end)
    return Case(f"{table}, {how}, {way}, {right}", *sources, facts, kind="stdin")


def mistakes(rng, problem, way, num_things, num_spellings):
    """Return a suite of the first input in several spellings, and further inputs, all of which the program fails."""
    layout, right, wrong = problem
    first, *others = draw_inputs(
        rng, layout, num_things, lambda x: output(layout, right, x) != output(layout, wrong, x)
    )
    texts = dict.fromkeys([plain(first)])
    while len(texts) < num_spellings:
        texts[spelling(rng, layout, way, first)] = None
    facts = [fact(layout, right, first, False, text) for text in texts]
    facts += [fact(layout, right, lines, False) for lines in others]
    sources = source(layout, way, f"print({right})"), source(layout, way, f"print({wrong})")
    return Case(f"spellings, {way}, {right}", *sources, facts, kind="stdin")


def stdin_spellings(rng):
    way = rng.choice(list(OPENERS))
    return mistakes(rng, rng.choice(DATA["stdin_problems"]), way, rng.randint(1, 4), rng.randint(2, 6))


def stdin_given(rng):
    """Given tests of programs that read standard input: all count, only the same text twice is one."""
    case = stdin_spellings(rng)
    again = replace(case.facts[0], valid=False)
    return replace(case, reason=f"given, {case.reason}", facts=[*case.facts, again], given=True)


def stdin_checkers(rng):
    """Printed outputs that are equal or not, by each checker."""
    checker = rng.choice(DATA["printed"])["checker"]
    rows = [row for row in DATA["printed"] if row["checker"] == checker]
    facts = []
    for number, row in enumerate(rows):
        facts.append(Fact(f"assert run('{number}') == {row['right'].partition('---')[0]!r}", str(number), row["equal"]))
    sources = [f"print({[row[name] for row in rows]!r}[int(input())])\n" for name in ("right", "other")]
    return Case(f"checker {checker}", *sources, facts, kind="stdin", checker=checker)
