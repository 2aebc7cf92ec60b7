"""Small buggy programs with a reference, a question and a scripted suite each: what an attack must find.

The suites are what a Test LLM might write: mostly plain calls, some with an incorrect assertion, some that are no test.
Not every suite meets its bug; then a small change of its calls does.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackProgram:
    """One buggy program."""

    entry: str
    bug: str
    """What is wrong, in a few words."""
    question: str
    reference: str
    buggy: str
    asserts: tuple[str, ...]
    hangs: bool = False


def program(entry, bug, question, reference, buggy, *asserts, hangs=False):
    return AttackProgram(
        entry=entry,
        bug=bug,
        question=question,
        reference=textwrap.dedent(reference).strip() + "\n",
        buggy=textwrap.dedent(buggy).strip() + "\n",
        asserts=tuple(f"assert {text}" for text in asserts),
        hangs=hangs,
    )


PROGRAMS = (
    program(
        "total_below",
        "off by one at the end of a range",
        "total_below(n): the sum of the whole numbers from 1 to n, n included; 0 for n below 1.",
        "def total_below(n):\n    return sum(range(1, n + 1))",
        "def total_below(n):\n    return sum(range(1, n))",
        "total_below(10) == 55",
        "total_below(100) == 5050",
        "total_below(-3) == 0",
        "total_below(x) == 1",
    ),
    program(
        "mean",
        "empty input",
        "mean(numbers): the average of a list of numbers, 0.0 for an empty list.",
        "def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0.0",
        "def mean(numbers):\n    return sum(numbers) / len(numbers)",
        "mean([1, 2, 3, 4]) == 2.5",
        "mean([10.5]) == 10.5",
    ),
    program(
        "magnitude",
        "sign: only one negative case is handled",
        "magnitude(a, b): the larger one of the distances of a and b from 0.",
        "def magnitude(a, b):\n    return max(abs(a), abs(b))",
        "def magnitude(a, b):\n    return max(abs(a), b)",
        "magnitude(17, 4) == 17",
        "magnitude(-17, 4) == 17",
        "magnitude(0, 0) == 1",
    ),
    program(
        "join_ids",
        "type: numbers are joined as they are",
        "join_ids(ids): the ids, numbers or texts, joined by '-'.",
        "def join_ids(ids):\n    return '-'.join(str(one) for one in ids)",
        "def join_ids(ids):\n    return '-'.join(ids)",
        "join_ids(['a', 'b', 'c']) == 'a-b-c'",
        "join_ids(['x', 15, 'y', 2]) == 'x-15-y-2'",
    ),
    program(
        "without_zeros",
        "removes from the list it goes through",
        "without_zeros(numbers): the numbers that are not 0, in order.",
        "def without_zeros(numbers):\n    return [number for number in numbers if number != 0]",
        """
        def without_zeros(numbers):
            for number in numbers:
                if number == 0:
                    numbers.remove(number)
            return numbers
        """,
        "without_zeros([4, 0, 7, 0, 9]) == [4, 7, 9]",
        "without_zeros([4, 8, 0, 0, 9, 12]) == [4, 8, 9, 12]",
    ),
    program(
        "most_common",
        "wrong tie: the last of the most frequent, not the first",
        "most_common(words): the word that occurs most often; of several the one that comes first.",
        "def most_common(words):\n    return max(words, key=words.count)",
        """
        def most_common(words):
            best = words[0]
            for word in words:
                if words.count(word) >= words.count(best):
                    best = word
            return best
        """,
        "most_common(['fig', 'date', 'fig', 'plum']) == 'fig'",
        "most_common(['fig', 'date', 'plum', 'date', 'fig']) == 'date'",
    ),
    program(
        "digit_sum",
        "hangs on negative numbers",
        "digit_sum(n): the sum of the decimal digits of a whole number, its sign left out.",
        "def digit_sum(n):\n    return sum(int(digit) for digit in str(abs(n)))",
        """
        def digit_sum(n):
            total = 0
            while n != 0:
                total += n % 10
                n //= 10
            return total
        """,
        "digit_sum(1234) == 10",
        "digit_sum(907) == 16",
        "digit_sum(-44) == 8",
        hangs=True,
    ),
    program(
        "reverse_words",
        "unicode: letters are reversed as bytes",
        "reverse_words(text): every word of a text spelled backwards, words separated by single spaces.",
        "def reverse_words(text):\n    return ' '.join(word[::-1] for word in text.split(' '))",
        """
        def reverse_words(text):
            return ' '.join(word.encode()[::-1].decode(errors='replace') for word in text.split(' '))
        """,
        "reverse_words('hello big world') == 'olleh gib dlrow'",
        "reverse_words('') == ''",
    ),
    program(
        "depth",
        "recursion: an empty list inside a list counts nothing",
        "depth(tree): how deep the lists of a list are nested; 1 for a list without lists.",
        """
        def depth(tree):
            return 1 + max((depth(part) for part in tree if isinstance(part, list)), default=0)
        """,
        """
        def depth(tree):
            if not tree:
                return 0
            return 1 + max((depth(part) for part in tree if isinstance(part, list)), default=0)
        """,
        "depth([1, [2, [3, 4]], 5]) == 3",
        "depth([7, [8], [9, []]]) == 3",
    ),
    program(
        "count_up",
        "recursion without an end below 0",
        "count_up(n): the list [1, ..., n]; empty for n below 1.",
        "def count_up(n):\n    return list(range(1, n + 1))",
        "def count_up(n):\n    return [] if n == 0 else count_up(n - 1) + [n]",
        "count_up(5) == [1, 2, 3, 4, 5]",
        "count_up(12)[-1] == 12",
    ),
    program(
        "to_cents",
        "float rounding: cut instead of rounded",
        "to_cents(amount): an amount of money as whole cents, rounded to the nearest.",
        "def to_cents(amount):\n    return round(amount * 100)",
        "def to_cents(amount):\n    return int(amount * 100)",
        "to_cents(12.5) == 1250",
        "to_cents(19.99) == 1999",
        "to_cents(1.1) == 110",
    ),
    program(
        "collect",
        "mutable default argument",
        "collect(item, into): the list `into` (empty where none is given) with the item behind it.",
        "def collect(item, into=None):\n    return [*(into or []), item]",
        "def collect(item, into=[]):\n    into.append(item)\n    return into",
        "collect(5) == [5]",
        "collect(17) == [17]",
        "collect(3, [1, 2]) == [1, 2, 3]",
    ),
    program(
        "is_leap",
        "a rule forgotten: centuries",
        "is_leap(year): whether a year of the Gregorian calendar has a 29th of February.",
        "def is_leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
        "def is_leap(year):\n    return year % 4 == 0",
        "is_leap(2024) is True",
        "is_leap(2023) == False",
        "is_leap(1900) == False",
        "is_leap(2000) == True",
    ),
    program(
        "clamp",
        "wrong order of bounds",
        "clamp(value, low, high): the value, or the bound that it lies beyond; low is at most high.",
        "def clamp(value, low, high):\n    return low if value < low else high if value > high else value",
        "def clamp(value, low, high):\n    return max(min(value, low), high)",
        "clamp(15, 0, 10) == 10",
        "clamp(5, 0, 10) == 5",
    ),
    program(
        "initials",
        "index error on double spaces",
        "initials(name): the first letter of every word of a name, as capitals.",
        "def initials(name):\n    return ''.join(word[0].upper() for word in name.split())",
        "def initials(name):\n    return ''.join(word[0].upper() for word in name.split(' '))",
        "initials('grace brewster hopper') == 'GBH'",
        "initials('ada  lovelace') == 'AL'",
    ),
    program(
        "invert",
        "a later key overwrites an earlier one",
        "invert(table): a dict from each value of a dict to the sorted list of its keys.",
        """
        def invert(table):
            found = {}
            for key, value in table.items():
                found.setdefault(value, []).append(key)
            return {value: sorted(keys) for value, keys in found.items()}
        """,
        "def invert(table):\n    return {value: [key] for key, value in table.items()}",
        "invert({'a': 1, 'b': 2, 'c': 1}) == {1: ['a', 'c'], 2: ['b']}",
        "invert({}) == {}",
    ),
    program(
        "second_largest",
        "repeated values",
        "second_largest(numbers): the second largest of the different values; None where there are fewer than two.",
        """
        def second_largest(numbers):
            different = sorted(set(numbers))
            return different[-2] if len(different) > 1 else None
        """,
        "def second_largest(numbers):\n    return sorted(numbers)[-2] if len(numbers) > 1 else None",
        "second_largest([3, 9, 12, 4]) == 9",
        "second_largest([30, 70, 70, 15]) == 30",
        "second_largest([]) == None",
    ),
    program(
        "transpose",
        "rows of an empty table",
        "transpose(rows): a table, a list of rows of one length, with rows and columns exchanged; [] for [].",
        "def transpose(rows):\n    return [list(column) for column in zip(*rows)]",
        "def transpose(rows):\n    return [[row[i] for row in rows] for i in range(len(rows[0]))]",
        "transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]",
        "transpose([[7]]) == [[7]]",
    ),
    program(
        "dot",
        "stops before the last pair",
        "dot(left, right): the sum of the products of two lists of the same length.",
        """
        def dot(left, right):
            if len(left) != len(right):
                raise ValueError('lengths differ')
            return sum(a * b for a, b in zip(left, right))
        """,
        """
        def dot(left, right):
            total = 0
            for i in range(max(len(left) - 1, 0)):
                total += left[i] * right[i]
            return total
        """,
        "dot([1, 2, 3, 4], [5, 6, 7, 8]) == 70",
        "dot([], []) == 0",
        "dot([1], [1, 2]) == 1",
    ),
    program(
        "window_max",
        "the last window is missing",
        "window_max(numbers, k): the largest number of every run of k neighbours, in order; k is at least 1.",
        """
        def window_max(numbers, k):
            if k < 1:
                raise ValueError('k')
            return [max(numbers[i : i + k]) for i in range(len(numbers) - k + 1)]
        """,
        "def window_max(numbers, k):\n    return [max(numbers[i : i + k]) for i in range(len(numbers) - k)]",
        "window_max([5, 3, 8, 6, 2, 9], 3) == [8, 8, 8, 9]",
        "window_max([4, 4], 1) == [4, 4]",
    ),
    program(
        "is_palindrome",
        "capital letters count",
        "is_palindrome(text): whether the letters of a text, capitals and other signs aside, read the same backwards.",
        """
        def is_palindrome(text):
            letters = [letter.lower() for letter in text if letter.isalnum()]
            return letters == letters[::-1]
        """,
        """
        def is_palindrome(text):
            letters = [letter for letter in text if letter.isalnum()]
            return letters == letters[::-1]
        """,
        "is_palindrome('never odd or even') == True",
        "is_palindrome('Was it a car or a cat I saw') == True",
        "is_palindrome('ab') == True",
    ),
    program(
        "primes_up_to",
        "1 and 9 pass for primes",
        "primes_up_to(n): the primes that are at most n, in order.",
        """
        def primes_up_to(n):
            return [k for k in range(2, n + 1) if all(k % d for d in range(2, int(k**0.5) + 1))]
        """,
        """
        def primes_up_to(n):
            return [k for k in range(2, n + 1) if all(k % d for d in range(2, int(k**0.5)))]
        """,
        "primes_up_to(30) == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]",
        "primes_up_to(1) == []",
    ),
    program(
        "merge",
        "forgets what is left of the second list",
        "merge(left, right): two sorted lists as one sorted list.",
        "def merge(left, right):\n    return sorted([*left, *right])",
        """
        def merge(left, right):
            merged, i, j = [], 0, 0
            while i < len(left) and j < len(right):
                if left[i] <= right[j]:
                    merged.append(left[i])
                    i += 1
                else:
                    merged.append(right[j])
                    j += 1
            return merged + left[i:]
        """,
        "merge([1, 4, 9], [2, 3, 10, 11]) == [1, 2, 3, 4, 9, 10, 11]",
        "merge([], []) == []",
    ),
    program(
        "common",
        "returns a list where a set is asked for",
        "common(left, right): the set of the items that two lists share.",
        "def common(left, right):\n    return set(left) & set(right)",
        "def common(left, right):\n    return [item for item in left if item in right]",
        "common([1, 2, 3], [2, 3, 4]) == {2, 3}",
        "len(common([1, 1], [1])) == 1",
    ),
    program(
        "find",
        "-1 for a missing item is an index too",
        "find(items, wanted): the last item before the first `wanted`; None where there is none.",
        """
        def find(items, wanted):
            return items[items.index(wanted) - 1] if wanted in items[1:] and items[0] != wanted else None
        """,
        "def find(items, wanted):\n    return items[items.index(wanted) - 1] if wanted in items else None",
        "find(['p', 'q', 'r'], 'r') == 'q'",
        "find(['p', 'q', 'r'], 'z') == None",
    ),
    program(
        "collatz",
        "hangs on 0",
        "collatz(n): steps of the Collatz sequence from n to 1; 0 for n below 2.",
        """
        def collatz(n):
            steps = 0
            while n > 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
            return steps
        """,
        """
        def collatz(n):
            steps = 0
            while n != 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
            return steps
        """,
        "collatz(6) == 8",
        "collatz(27) == 111",
        hangs=True,
    ),
    program(
        "Counter2",
        "a class: two steps down stop at 0 one early",
        "Counter2(start): a counter with up(), down() (never below 0) and value(); up and down return the new value.",
        """
        class Counter2:
            def __init__(self, start=0):
                self.count = start

            def up(self):
                self.count += 1
                return self.count

            def down(self):
                self.count = max(0, self.count - 1)
                return self.count

            def value(self):
                return self.count
        """,
        """
        class Counter2:
            def __init__(self, start=0):
                self.count = start

            def up(self):
                self.count += 1
                return self.count

            def down(self):
                self.count = max(1, self.count - 1)
                return self.count

            def value(self):
                return self.count
        """,
        "Counter2(7).up() == 8",
        "Counter2(9).down() == 8",
        "Counter2(3).value() == 3",
    ),
    program(
        "weekday",
        "exits instead of answering",
        "weekday(number): the English name of a day, 0 for Monday to 6 for Sunday; '' for other numbers.",
        """
        NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

        def weekday(number):
            return NAMES[number] if 0 <= number < 7 else ''
        """,
        """
        import sys
        NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

        def weekday(number):
            if number not in range(7):
                sys.exit('no such day')
            return NAMES[number]
        """,
        "weekday(3) == 'Thursday'",
        "weekday(6) == 'Sunday'",
        "weekday(9) == ''",
    ),
)
