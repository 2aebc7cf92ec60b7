"""Draw arguments by type, call the function, and print calls: those that reached new lines, and some others.

``python sample.py random|hypothesis SUBJECT.py FUNCTION CPU_SECONDS CALLS SEED``; runs in the confined process, on the
program under test. ``hypothesis`` needs the package Hypothesis, ``random`` only the standard library.
"""

import contextlib
import copy
import inspect
import os
import random
import signal
import sys
import time
import types
import typing

NEW, RETURNED, RAISED = "+", "=", "!"
CALL_SECONDS, HANG_SECONDS = 0.2, 0.6
MAX_CHARS = 2_000
ANY = int | float | bool | str | list[int] | list[str] | tuple[int, int] | dict[str, int] | None
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = LETTERS + LETTERS.upper() + "0123456789" + " .,-_!?:;()[]{}+*/=<>'\"\n"


class TooSlowError(BaseException):
    """A call that took its time, or all of ours is used."""


def main(kind, path, name, cpu_seconds, num_calls, seed):
    """Print calls, each after a mark, within the budget; start-up counts.

    A process that hangs in a call below Python, where no signal handler runs, is ended by the kernel, and another one
    continues with another seed.
    """
    while (used := sum(os.times()[:4])) < cpu_seconds:
        seed += 1_000_000
        child = os.fork()
        if not child:
            search_in_child(kind, path, name, cpu_seconds - used, num_calls, seed)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break


def search_in_child(kind, path, name, cpu_seconds, num_calls, seed):
    """Search until the budget is used; ends the process."""
    namespace = {"__name__": "subject"}
    with open(path, encoding="utf-8") as handle:
        exec(compile(handle.read(), path, "exec"), namespace)
    function = namespace[name]
    kinds = parameter_kinds(function, namespace)
    search = Search(function, name, path, deadline=cpu_seconds, num_calls=num_calls)
    with contextlib.suppress(TooSlowError):
        (draw_random if kind == "random" else draw_hypothesis)(kinds, search, seed)
    sys.stdout.flush()
    os._exit(0)


def parameter_kinds(function, namespace):
    """Parameter -> type, ``ANY`` where there is no annotation; parameters with defaults count too."""
    try:
        hints = typing.get_type_hints(function, namespace)
    except Exception:  # noqa: BLE001 - an annotation that does not evaluate is as good as none
        hints = {}
    parameters = inspect.signature(function).parameters.values()
    return [
        hints.get(one.name, ANY) for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]


class Search:
    """Calls made so far. Printed are those that reach a pair of lines, or an exception, for the first time, after
    NEW, and the first others that return or raise, after RETURNED and RAISED.
    """

    def __init__(self, function, name, path, *, deadline, num_calls):
        self.function, self.name, self.path = function, name, path
        self.deadline = deadline
        self.seen, self.texts = set(), set()
        self.left = {RETURNED: num_calls, RAISED: num_calls}

    def call(self, arguments):
        """Make one call; raises TooSlowError where the budget is used."""
        if time.process_time() > self.deadline:
            raise TooSlowError
        text = f"{self.name}({', '.join(map(repr, arguments))})"
        if text in self.texts or len(text) > MAX_CHARS:
            return
        self.texts.add(text)
        reached, mark = self.traced(copy.deepcopy(arguments))
        if reached - self.seen:
            self.seen |= reached
            print(NEW, text, flush=True)
        elif self.left[mark]:
            self.left[mark] -= 1
            print(mark, text, flush=True)

    def traced(self, arguments):
        """Pairs of lines in order, with how the call ended, and its mark."""
        reached, last = set(), 0

        def trace(frame, event, _):
            nonlocal last
            if frame.f_code.co_filename != self.path:
                return None
            if event == "line":
                reached.add((last, frame.f_lineno))
                last = frame.f_lineno
            return trace

        signal.setitimer(signal.ITIMER_VIRTUAL, CALL_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)  # no handler: the kernel ends the process
        mark = RAISED
        sys.settrace(trace)
        try:
            with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
                self.function(*arguments)
            mark = RETURNED
        except (Exception, SystemExit, TooSlowError) as error:  # noqa: BLE001 - whatever the program raises
            reached.add((last, type(error).__name__))
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        return reached, mark


def draw_random(kinds, search, seed):
    """Literals by type until the budget is used."""
    source = random.Random(seed)
    while True:
        search.call([random_value(kind, source) for kind in kinds])


def random_value(kind, source, depth=0):
    """A value of a type such as ``list[int]``; of a type that is not known, of ``ANY``."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    length = source.choice((0, 1, 1, 2, 2, 3, 4, 6, 9)) if depth < 2 else source.randrange(3)
    if origin in (typing.Union, types.UnionType):
        return random_value(source.choice(parts), source, depth)
    kind = origin or kind
    if kind in (list, set, frozenset):
        inner = parts[0] if parts else ANY
        return kind([random_value(inner, source, depth + 1) for _ in range(length)])
    if kind is tuple:
        inner = parts[:1] * length if parts[1:] == (...,) else parts
        return tuple(random_value(one, source, depth + 1) for one in inner)
    if kind is dict:
        key, value = parts or (str, ANY)
        return {random_value(key, source, 2): random_value(value, source, depth + 1) for _ in range(length)}
    return random_scalar(kind, source, length)


def random_scalar(kind, source, length):
    if kind is bool:
        return source.random() < 0.5
    if kind is int:
        return source.randint(*source.choice(((-10, 10), (-10, 10), (0, 3), (-1000, 1000))))
    if kind is float:
        return source.choice((float(source.randint(-10, 10)), round(source.uniform(-100, 100), 2)))
    if kind in (str, bytes):
        text = "".join(source.choice(source.choice((CHARACTERS, LETTERS, "abc"))) for _ in range(length))
        return text if kind is str else text.encode()
    if kind in (None, type(None)):
        return None
    return random_value(ANY, source, 2)


def draw_hypothesis(kinds, search, seed):
    """Examples of Hypothesis by type, in rounds, until the budget is used."""
    import hypothesis
    from hypothesis import strategies

    drawn = strategies.tuples(*(strategies.from_type(kind) for kind in kinds))
    quiet = hypothesis.settings(
        max_examples=1_000,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    while True:
        seed += 1
        hypothesis.seed(seed)(quiet(hypothesis.given(drawn)(lambda arguments: search.call(list(arguments)))))()


def too_slow(*_):
    raise TooSlowError


if __name__ == "__main__":
    signal.signal(signal.SIGVTALRM, too_slow)
    kind, path, name, cpu_seconds, num_calls, seed = sys.argv[1:]
    main(kind, path, name, float(cpu_seconds), int(num_calls), int(seed))
