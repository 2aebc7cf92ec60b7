"""The modules that programs find already imported: importing them inside a function costs a program nothing."""

PRELOADED = (
    "abc bisect collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq io "
    "itertools json math numbers operator random re string struct time types typing warnings weakref"
)
"""What generated programs import most. Each further module makes every fork dearer: with asyncio, logging and
the like it takes twice as long."""
PACKAGES = frozenset(name.partition(".")[0] for name in PRELOADED.split()) | {"sys", "builtins", "__future__"}
"""Their names at top level."""
