"""Two dozen small questions for the benchmark, like the questions on which code models train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseQuestion:
    """One question: a reference, another correct program, a wrong program, and a function that draws arguments."""

    name: str
    reference: str
    alternative: str
    wrong: str
    draw: Draw


def _ints(rng: Random, low: int = -50, high: int = 50, longest: int = 9) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(0, longest))]


def _word(rng: Random, letters: str = "abcde ", longest: int = 12) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, longest)))


def _question(name: str, draw: Draw, reference: str, alternative: str, wrong: str) -> BaseQuestion:
    """Make a question from the bodies of three functions. The first line of ``reference`` has the parameters of all
    three functions."""
    signature, _, body = reference.partition("\n")
    return BaseQuestion(
        name=name,
        reference=f"def {name}({signature}):\n{body}",
        alternative=f"def {name}({signature}):\n{alternative}",
        wrong=f"def {name}({signature}):\n{wrong}",
        draw=draw,
    )


QUESTIONS: tuple[BaseQuestion, ...] = (
    _question(
        "running_max",
        lambda rng: (_ints(rng),),
        "xs\n    best, out = None, []\n    for x in xs:\n"
        "        best = x if best is None or x > best else best\n        out.append(best)\n    return out\n",
        "    from itertools import accumulate\n    return list(accumulate(xs, max))\n",
        "    return sorted(xs)\n",
    ),
    _question(
        "two_sum",
        lambda rng: (_ints(rng, 0, 20), rng.randint(0, 40)),
        "xs, target\n    seen = {}\n    for i, x in enumerate(xs):\n        if target - x in seen:\n"
        "            return [seen[target - x], i]\n        seen.setdefault(x, i)\n    return []\n",
        "    for j in range(len(xs)):\n        for i in range(j):\n            if xs[i] + xs[j] == target:\n"
        "                return [i, j]\n    return []\n",
        "    for i in range(len(xs)):\n        for j in range(i, len(xs)):\n"
        "            if xs[i] + xs[j] == target:\n                return [i, j]\n    return []\n",
    ),
    _question(
        "count_vowels",
        lambda rng: (_word(rng, "abcdeioux Y"),),
        "text\n    return sum(1 for c in text.lower() if c in 'aeiou')\n",
        "    n = 0\n    for c in text:\n        if c in 'aeiouAEIOU':\n            n += 1\n    return n\n",
        "    return sum(text.count(v) for v in 'aeio')\n",
    ),
    _question(
        "is_palindrome",
        lambda rng: (_word(rng, "ab ", 8),),
        "text\n    kept = [c.lower() for c in text if c.isalnum()]\n    return kept == kept[::-1]\n",
        "    s = ''.join(filter(str.isalnum, text)).lower()\n"
        "    return all(s[i] == s[-1 - i] for i in range(len(s) // 2))\n",
        "    return text == text[::-1]\n",
    ),
    _question(
        "gcd_list",
        lambda rng: ([rng.randint(1, 400) * 6 for _ in range(rng.randint(1, 6))],),
        "xs\n    from math import gcd\n    total = 0\n    for x in xs:\n        total = gcd(total, x)\n"
        "    return total\n",
        "    a = 0\n    for b in xs:\n        while b:\n            a, b = b, a % b\n    return a\n",
        "    return min(xs)\n",
    ),
    _question(
        "primes_below",
        lambda rng: (rng.randint(0, 400),),
        "n\n    sieve = [True] * max(n, 2)\n    out = []\n    for i in range(2, n):\n        if sieve[i]:\n"
        "            out.append(i)\n            for j in range(i * i, n, i):\n"
        "                sieve[j] = False\n    return out\n",
        "    return [i for i in range(2, n) if all(i % j for j in range(2, int(i ** 0.5) + 1))]\n",
        "    return [i for i in range(2, n + 1) if all(i % j for j in range(2, int(i ** 0.5) + 1))]\n",
    ),
    _question(
        "word_count",
        lambda rng: (_word(rng, "ab c", 20),),
        "text\n    counts = {}\n    for word in text.split():\n        counts[word] = counts.get(word, 0) + 1\n"
        "    return counts\n",
        "    from collections import Counter\n    return dict(Counter(text.split()))\n",
        "    return {word: text.count(word) for word in text.split()}\n",
    ),
    _question(
        "flatten",
        lambda rng: ([rng.choice([rng.randint(0, 9), _ints(rng, 0, 9, 3)]) for _ in range(rng.randint(0, 6))],),
        "items\n    out = []\n    for item in items:\n        if isinstance(item, list):\n"
        "            out.extend(flatten(item))\n        else:\n            out.append(item)\n    return out\n",
        "    stack, out = list(items), []\n    while stack:\n        top = stack.pop()\n"
        "        if isinstance(top, list):\n            stack.extend(top)\n        else:\n"
        "            out.append(top)\n    return out[::-1]\n",
        "    return [x for item in items if isinstance(item, list) for x in item]\n",
    ),
    _question(
        "rotate",
        lambda rng: (_ints(rng), rng.randint(-9, 20)),
        "xs, k\n    if not xs:\n        return []\n    k %= len(xs)\n"
        "    return xs[-k:] + xs[:-k] if k else list(xs)\n",
        "    from collections import deque\n    d = deque(xs)\n    d.rotate(k)\n    return list(d)\n",
        "    return xs[-k:] + xs[:-k]\n",
    ),
    _question(
        "longest_run",
        lambda rng: (_word(rng, "ab", 14),),
        "text\n    best = run = 0\n    last = None\n    for c in text:\n"
        "        run = run + 1 if c == last else 1\n        last = c\n        best = max(best, run)\n"
        "    return best\n",
        "    from itertools import groupby\n"
        "    return max((len(list(g)) for _, g in groupby(text)), default=0)\n",
        "    return max((text.count(c) for c in text), default=0)\n",
    ),
    _question(
        "to_roman",
        lambda rng: (rng.randint(1, 3999),),
        "n\n"
        "    table = [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (5"
        "0, 'L'), (40, 'XL'),\n"
        "             (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]\n    out = ''\n"
        "    for value, sign in table:\n        while n >= value:\n            out += sign\n"
        "            n -= value\n    return out\n",
        "    def digit(d, one, five, ten):\n"
        "        return ['', one, one * 2, one * 3, one + five, five, five + one,\n"
        "                five + one * 2, five + one * 3, one + ten][d]\n"
        "    return 'M' * (n // 1000) + digit(n // 100 % 10, 'C', 'D', 'M') + digit(n // 10 % 10, '"
        "X', 'L', 'C') + digit(n % 10, 'I', 'V', 'X')\n",
        "    out = ''\n"
        "    for value, sign in [(1000, 'M'), (500, 'D'), (100, 'C'), (50, 'L'), (10, 'X'), (5, 'V'), (1, 'I')]:\n"
        "        out += sign * (n // value)\n        n %= value\n    return out\n",
    ),
    _question(
        "merge_sorted",
        lambda rng: (sorted(_ints(rng)), sorted(_ints(rng))),
        "a, b\n    out, i, j = [], 0, 0\n    while i < len(a) and j < len(b):\n        if a[i] <= b[j]:\n"
        "            out.append(a[i])\n            i += 1\n        else:\n            out.append(b[j])\n"
        "            j += 1\n    return out + a[i:] + b[j:]\n",
        "    import heapq\n    return list(heapq.merge(a, b))\n",
        "    return sorted(set(a) | set(b))\n",
    ),
    _question(
        "balanced",
        lambda rng: (_word(rng, "()[]", 8),),
        "text\n    pairs, stack = {')': '(', ']': '['}, []\n    for c in text:\n        if c in '([':\n"
        "            stack.append(c)\n        elif not stack or stack.pop() != pairs[c]:\n"
        "            return False\n    return not stack\n",
        "    while '()' in text or '[]' in text:\n        text = text.replace('()', '').replace('[]', '')\n"
        "    return not text\n",
        "    return text.count('(') == text.count(')') and text.count('[') == text.count(']')\n",
    ),
    _question(
        "fibonacci",
        lambda rng: (rng.randint(0, 600),),
        "n\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
        "    def pair(k):\n        if not k:\n            return 0, 1\n        a, b = pair(k // 2)\n"
        "        c, d = a * (2 * b - a), a * a + b * b\n        return (d, c + d) if k % 2 else (c, d)\n"
        "    return pair(n)[0]\n",
        "    a, b = 1, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
    ),
    _question(
        "transpose",
        lambda rng: ([[rng.randint(0, 99) for _ in range(3)] for _ in range(rng.randint(0, 5))],),
        "rows\n    if not rows:\n        return []\n"
        "    return [[row[i] for row in rows] for i in range(len(rows[0]))]\n",
        "    return [list(column) for column in zip(*rows)]\n",
        "    return [row[::-1] for row in rows]\n",
    ),
    _question(
        "edit_distance",
        lambda rng: (_word(rng, "abc", 7), _word(rng, "abc", 7)),
        "a, b\n    row = list(range(len(b) + 1))\n    for i, x in enumerate(a, 1):\n"
        "        last, row[0] = row[0], i\n        for j, y in enumerate(b, 1):\n"
        "            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))\n"
        "    return row[-1]\n",
        "    from functools import lru_cache\n\n    @lru_cache(None)\n    def go(i, j):\n"
        "        if i == 0 or j == 0:\n            return i + j\n"
        "        return min(go(i - 1, j) + 1, go(i, j - 1) + 1, go(i - 1, j - 1) + (a[i - 1] != b[j - 1]))\n\n"
        "    return go(len(a), len(b))\n",
        "    return sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))\n",
    ),
    _question(
        "mean_and_spread",
        lambda rng: ([rng.randint(0, 99) / 4 for _ in range(rng.randint(1, 8))],),
        "xs\n    mean = sum(xs) / len(xs)\n"
        "    return mean, (sum((x - mean) ** 2 for x in xs) / len(xs)) ** 0.5\n",
        "    import statistics\n    return statistics.fmean(xs), statistics.pstdev(xs)\n",
        "    mean = sum(xs) // len(xs)\n    return mean, max(xs) - min(xs)\n",
    ),
    _question(
        "group_anagrams",
        lambda rng: ([_word(rng, "ab", 3) for _ in range(rng.randint(0, 7))],),
        "words\n    groups = {}\n    for word in words:\n"
        "        groups.setdefault(''.join(sorted(word)), []).append(word)\n"
        "    return sorted(groups.values())\n",
        "    from itertools import groupby\n    ordered = sorted(words, key=sorted)\n"
        "    return sorted([w for w in words if sorted(w) == k] for k, _ in groupby(ordered, key=sorted))\n",
        "    return sorted([w] for w in words)\n",
    ),
    _question(
        "binary_search",
        lambda rng: (sorted(_ints(rng)), rng.randint(-50, 50)),
        "xs, target\n    low, high = 0, len(xs)\n    while low < high:\n        middle = (low + high) // 2\n"
        "        if xs[middle] < target:\n            low = middle + 1\n        else:\n"
        "            high = middle\n    return low\n",
        "    import bisect\n    return bisect.bisect_left(xs, target)\n",
        "    return xs.index(target) if target in xs else -1\n",
    ),
    _question(
        "compress",
        lambda rng: (_word(rng, "aab", 14),),
        "text\n    out, i = [], 0\n    while i < len(text):\n        j = i\n"
        "        while j < len(text) and text[j] == text[i]:\n            j += 1\n"
        "        out.append((text[i], j - i))\n        i = j\n    return out\n",
        "    from itertools import groupby\n    return [(c, len(list(run))) for c, run in groupby(text)]\n",
        "    return [(c, text.count(c)) for c in sorted(set(text))]\n",
    ),
    _question(
        "digits_sum",
        lambda rng: (rng.randint(-(10**9), 10**9),),
        "n\n    total, n = 0, abs(n)\n    while n:\n        n, digit = divmod(n, 10)\n        total += digit\n"
        "    return total\n",
        "    return sum(int(c) for c in str(abs(n)))\n",
        "    return sum(int(c) for c in str(n) if c.isdigit()) % 9\n",
    ),
    _question(
        "knapsack",
        lambda rng: ([(rng.randint(1, 9), rng.randint(1, 30)) for _ in range(rng.randint(0, 6))], rng.randint(0, 25)),
        "items, room\n    best = [0] * (room + 1)\n    for weight, value in items:\n"
        "        for left in range(room, weight - 1, -1):\n"
        "            best[left] = max(best[left], best[left - weight] + value)\n    return best[room]\n",
        "    def go(i, left):\n        if i == len(items):\n            return 0\n"
        "        weight, value = items[i]\n        skip = go(i + 1, left)\n"
        "        return max(skip, value + go(i + 1, left - weight)) if weight <= left else skip\n"
        "    return go(0, room)\n",
        "    total = 0\n    for weight, value in sorted(items, key=lambda item: -item[1]):\n"
        "        if weight <= room:\n            total, room = total + value, room - weight\n    return total\n",
    ),
    _question(
        "intersection",
        lambda rng: (_ints(rng, 0, 15), _ints(rng, 0, 15)),
        "a, b\n    return set(a) & set(b)\n",
        "    return {x for x in a if x in b}\n",
        "    return set(a) | set(b)\n",
    ),
    _question(
        "caesar",
        lambda rng: (_word(rng, "abcXYZ ,"), rng.randint(-30, 30)),
        "text, shift\n    out = []\n    for c in text:\n        if c.isalpha():\n"
        "            base = 65 if c.isupper() else 97\n"
        "            c = chr((ord(c) - base + shift) % 26 + base)\n        out.append(c)\n"
        "    return ''.join(out)\n",
        "    import string\n    k = shift % 26\n    low, up = string.ascii_lowercase, string.ascii_uppercase\n"
        "    return text.translate(str.maketrans(low + up, low[k:] + low[:k] + up[k:] + up[:k]))\n",
        "    return ''.join(chr(ord(c) + shift) if c.islower() else c for c in text)\n",
    ),
)  # fmt: skip
