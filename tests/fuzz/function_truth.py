"""Classes of cases with functions, for ``known_truth.py``. Each class is a function that returns a case with its truth.

The right values come from expressions in ``tests/data/known_truth.toml``, so no program runs here.
"""

import inspect
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

DATA = tomllib.loads((Path(__file__).resolve().parents[1] / "data" / "known_truth.toml").read_text("utf-8"))
HEAD = """import copy, ctypes, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
kept, number, table = {}, 0, {}
def fill(n):
    for k in range(n): table[k] = k
fill(50)
"""


@dataclass(frozen=True)
class Fact:
    """One assert and its truth."""

    text: str
    thing: str
    """What the reference reads. Two failures are one mistake if they have the same ``thing``."""
    passes: bool = True
    valid: bool | None = True
    """None if the judge may take or refuse the assert, such as another spelling of a call of the same suite."""
    claim: bool = True
    """The expected output of the assert is right."""


@dataclass(frozen=True)
class Case:
    reason: str
    reference: str
    candidate: str
    facts: list[Fact]
    kind: str = "functions"
    checker: str = "decimals"
    given: bool = False
    """The suite is a data set's own tests: every text counts, and mistakes are not counted."""


@dataclass(frozen=True)
class Problem:
    """A function ``f`` as expressions: its parameters, the right result, and a wrong one."""

    params: str
    right: str
    wrong: str

    @cached_property
    def functions(self):
        return {which: eval(f"lambda {self.params}: {getattr(self, which)}") for which in ("right", "wrong")}

    @cached_property
    def signature(self):
        return inspect.signature(self.functions["right"])

    def value(self, args, which="right"):
        return self.functions[which](*args)

    def is_wrong(self, args):
        return self.value(args) != self.value(args, "wrong")

    def thing(self, args):
        bound = self.signature.bind(*args)
        bound.apply_defaults()
        return repr(bound.arguments)

    def source(self, which="right", name="f"):
        return f"def {name}({self.params}):\n    return {getattr(self, which)}\n"

    def draws(self, rng, number, wanted=lambda args: True):
        """Draw inputs that the reference tells apart. There may be fewer if few inputs are wanted."""
        found = {}
        for _ in range(60 * number):
            args = []
            for parameter in self.signature.parameters.values():
                if parameter.default is not parameter.empty and rng.random() < 0.5:
                    break
                is_variadic = parameter.kind is parameter.VAR_POSITIONAL
                args += [draw_value(rng, parameter.name[0]) for _ in range(rng.randint(1, 3) if is_variadic else 1)]
            if len(found) < number and wanted(args):
                found.setdefault(self.thing(args), tuple(args))
        return list(found.values())


def draw_value(rng, letter):
    """Draw a value for a parameter whose name begins with this letter."""
    words = ["".join(rng.choices("abeiouxyz", k=rng.randint(1, 5))) for _ in range(rng.randint(1, 4))]
    numbers = [rng.randint(-9, 40) for _ in range(rng.randint(2, 6))]
    text, separator = rng.choice([" ", "  "]).join(words), rng.choice([".", "+", ", "])
    pairs = list(zip(words, map(abs, numbers), strict=False))
    drawn = {"x": numbers, "t": text, "s": separator, "d": dict(pairs), "p": pairs, "k": rng.randint(1, 3)}
    return drawn.get(letter, rng.randint(2, 60))


def problem_of(rng, table="problems"):
    return Problem(*rng.choice(DATA[table]))


def call_of(rng, problem, args):
    """Spell a call, sometimes with keywords and other spellings of numbers."""
    parts = list(map(repr, args))
    if "*" not in problem.params and rng.random() < 0.2:
        first = rng.randint(0, len(args))
        for place, (parameter, value) in enumerate(zip(problem.signature.parameters, args, strict=False)):
            if type(value) is int:
                parts[place] = rng.choice([f"+{value}", hex(value), f"{value + 3} - 3", f"({value})"])
            if place >= first:
                parts[place] = f"{parameter}={parts[place]}"
    return f"f({', '.join(parts)})"


def fact(rng, problem, args, passes=True, *, text="", **truth):
    value, claim = problem.value(args), rng.random() > 0.1
    text = f"assert {text or call_of(rng, problem, args)} == {value if claim else [value, 'wrong']!r}"
    return Fact(text, problem.thing(args), passes, claim=claim, **truth)


def mutants(rng, table="problems"):
    problem = problem_of(rng, table)
    facts = [fact(rng, problem, args, not problem.is_wrong(args)) for args in problem.draws(rng, rng.randint(3, 8))]
    return Case("a wrong expression", problem.source(), problem.source("wrong"), facts)


def near_mutants(rng):
    """Inputs that differ from the first one in one argument, as careful suites have them, are mistakes of their own."""
    rows = [row for row in DATA["problems"] if "," in row[0]]
    problem = Problem(*rng.choice(rows))
    (first,), names = problem.draws(rng, 1, problem.is_wrong), list(problem.signature.parameters)
    inputs = {problem.thing(first): first}
    for _ in range(rng.randint(3, 9)):
        place = rng.randrange(len(first))
        letter = names[min(place, len(names) - 1)][0]
        args = (*first[:place], draw_value(rng, letter), *first[place + 1 :])
        inputs.setdefault(problem.thing(args), args)
    facts = [fact(rng, problem, args, not problem.is_wrong(args)) for args in inputs.values()]
    return Case(f"near inputs: {problem.right}, {problem.wrong}", problem.source(), problem.source("wrong"), facts)


def program(rng, table):
    """A program that computes the right value, and does something else beside it, or instead of it for some values."""
    problem, how = problem_of(rng), rng.choice(list(DATA[table]))
    inputs = problem.draws(rng, rng.randint(3, 6))
    values = [problem.value(args) for args in rng.sample(inputs, rng.randint(1, len(inputs)))]
    inside, below = DATA[table][how], ""
    is_right = table not in ("harms", "hangs")
    if table == "below":
        is_right, below = rng.random() < 0.7, inside
        needed = "late() == 1" if "def late" in below else "table[49] == 49"
        if how in ("sleeps", "computes_forever") and rng.random() < 0.5:  # then the definitions alone are enough
            needed, how = "right", f"{how}, but nothing is computed before"
        inside = f"assert {needed}" if is_right else DATA["harms"]["another_value"]
    if not is_right:
        inside = f"if value in VALUES:\n        {inside}"
    source = (
        f"{HEAD}{problem.source(name='right')}VALUES = {values}\ndef f(*args, **named):\n"
        f"    value = right(*copy.deepcopy(args), **named)\n    {inside}\n    return value\n{below}\n"
    )
    facts = [fact(rng, problem, args, is_right or problem.value(args) not in values) for args in inputs]
    sources = (source, problem.source()) if is_right and below and rng.random() < 0.3 else (problem.source(), source)
    role = "reference" if sources[0] == source else "right" if is_right else "wrong"
    return Case(f"{role}, {table}: {how}", *sources, facts)


def written(rng, table):
    """A row of the table with its own call and sources. Other values of parts that nothing reads are no new mistake."""
    row = rng.choice(DATA[table])
    problem = Problem(row["params"], row["right"], row["wrong"])
    facts = {}
    for args in problem.draws(rng, rng.randint(2, 4)):
        parts = dict(zip(problem.signature.parameters, map(repr, args), strict=True))
        for _ in range(rng.randint(1, 3)):
            parts["U"] = rng.choice(["'a'", "None", "61", "[]", "-3", "2.5", "'bc'", "(1, 2)"])
            parts["V"] = rng.choice(["a", "17", "", "x y", "-", "0"])
            parts["Z"] = rng.choice(["", "0", "00", "+", " ", "+0"])
            text = row["call"]
            for name, part in parts.items():
                text = text.replace(f"<{name}>", part)
            facts.setdefault(text, fact(rng, problem, args, not problem.is_wrong(args), text=text))
    sources = row.get("reference", problem.source()), row.get("candidate", problem.source("wrong"))
    options = {name: row[name] for name in ("kind", "checker") if name in row}
    return Case(f"{row['call']}: {row['right']}, {row['wrong']}", *sources, list(facts.values()), **options)


def spellings(rng):
    """One input in several spellings is one mistake; truly different inputs are further ones."""
    iterates = rng.random() < 0.6
    problem = problem_of(rng, "iterates" if iterates else "compares")
    first, *others = problem.draws(rng, rng.randint(1, 4), problem.is_wrong)
    if iterates:
        if rng.random() < 0.3:
            first = (list(range(2, rng.randint(10, 20))),)
        items = first[0]
        texts = [str(tuple(items)), f"deque({items})", f"xs={items}", f"[{items[0] + 1} - 1, {str(items[1:])[1:]}"]
        if len(set(items)) == len(items):
            texts += [str(dict.fromkeys(items, 7)), str(dict.fromkeys(items, "a"))]
        if items == list(range(2, len(items) + 2)):  # a set of other numbers has another order, so it is another input
            texts += [str(set(items)), f"range(2, {len(items) + 2})"]
        if min(items) >= 0:
            texts.append(f"{bytes(items)}")
    else:
        n = first[0]
        texts = [f"{n}.0", f"+{n}", f"n={n}", f"{n + 1} - 1", f"Fraction({n})", f"Decimal({n})", f"{n}e0"]
    facts = [fact(rng, problem, first, False)]
    for text in rng.sample(texts, rng.randint(2, len(texts))):
        facts.append(fact(rng, problem, first, False, text=f"f({text})", valid=None))
    facts += [fact(rng, problem, args, False) for args in others if problem.thing(args) != facts[0].thing]
    return Case(f"spellings: {problem.right}", problem.source(), problem.source("wrong"), facts)


def types(rng):
    """Equal numbers of other types that the reference answers differently are inputs of their own."""
    problem = problem_of(rng, "tells_types")
    inputs = rng.sample([(1,), (1.0,), (True,), (0,), (False,), (0.0,), (5,), (5.0,), (2.0,), (2,)], rng.randint(3, 8))
    # Equal numbers with one answer, such as 1 and 1.0 for isinstance(n, bool), are one input.
    different = {(float(args[0]), repr(problem.value(args))): args for args in inputs}
    facts = [fact(rng, problem, a, not problem.is_wrong(a), text=f"f({a[0]})") for a in different.values()]
    return Case("the reference tells types apart", problem.source(), problem.source("wrong"), facts)


def readers(rng):
    """Asserts that read a result differently share a call: a mistake that only one of them shows is not hidden."""
    problem, given, facts = problem_of(rng, "lists"), rng.random() < 0.7, []
    for args in problem.draws(rng, rng.randint(1, 2)):
        forms = rng.sample(
            ["len(CALL)", "CALL", "sum(CALL)", "max(CALL)", "CALL[0]", "sorted(CALL)"], rng.randint(2, 4)
        )
        for number, form in enumerate(forms):
            read = eval(f"lambda CALL: {form}")
            value, other = read(problem.value(args)), read(problem.value(args, "wrong"))
            text = f"assert {form.replace('CALL', f'f({args[0]})')} == {value!r}"
            facts.append(Fact(text, problem.thing(args), value == other, True if given or not number else None))
    return Case(f"readers of one call, given: {given}", problem.source(), problem.source("wrong"), facts, given=given)


def given_spellings(rng):
    """Given tests all count, also if they make one call with equal numbers of several types."""
    problem, facts, seen = problem_of(rng, "compares"), [], set()
    (n,), (m,) = problem.draws(rng, 2)
    texts = ["N", "N.0", "+N", "n=N", "N.0 + 0", "M", "M.0", "Fraction(N)", "Decimal(N)"]
    for text in rng.sample(texts, rng.randint(2, 9)):
        number, kind = m if "M" in text else n, ".0" if ".0" in text else text.rstrip("N)").lstrip("+n=M")
        line = f"assert f({text.replace('N', str(n)).replace('M', str(m))}) == {problem.value((number,))!r}"
        # No program can tell f(+3) from f(3), so it may count or not.
        facts.append(Fact(line, text, passes=not kind, valid=None if (number, kind) in seen else True))
        seen.add((number, kind))
    again = Fact(facts[0].text, facts[0].thing, facts[0].passes, valid=False)
    wrong = f"def f(n):\n    return ({problem.right}) if type(n) is int else 'other'\n"
    return Case("given spellings of one call", problem.source(), wrong, [*facts, again], given=True)


def equal_values(rng):
    facts, rows = [], rng.sample(DATA["values"], 6)
    for number, (right, _, equal) in enumerate(rows):
        is_literal = "nan" not in right and "inf" not in right
        facts.append(
            Fact(f"assert f({number}) == {eval(right) if is_literal else 0!r}", str(number), equal, claim=is_literal)
        )
    sources = [f"def f(n):\n    return [{', '.join(row[place] for row in rows)}][n]\n" for place in (0, 1)]
    return Case("equal and unequal values", *sources, facts)


def forms(rng):
    """Asserts that are no cases, and other spellings of asserts that are."""
    problem, facts = problem_of(rng), []
    for args in problem.draws(rng, 4):
        is_valid = rng.random() < 0.4
        text = rng.choice(DATA["claims" if is_valid else "invalid"]).replace("CALL", call_of(rng, problem, args))
        facts.append(Fact(text.replace("VALUE", repr(problem.value(args))), problem.thing(args), valid=is_valid))
    nothing = ", ".join(["None"] * sum(p.default is p.empty for p in problem.signature.parameters.values()))
    facts += [Fact(f"assert f({text}) == 3", text, valid=False) for text in (nothing, f"{nothing}, unknown=3")]
    return Case("forms of asserts", problem.source(), problem.source(), facts)


def varying(rng):
    """A reference whose answer varies has no valid case; one that only looks random has."""
    table = "varying" if rng.random() < 0.7 else "steady"
    row = rng.choice(DATA[table])
    calls = rng.sample(row["calls"], rng.randint(1, len(row["calls"])))
    facts = [Fact(f"assert {call} == 3", call, valid=table == "steady", claim=False) for call in calls]
    return Case(f"{table}: {row['name']}", row["source"], row["source"], facts)
