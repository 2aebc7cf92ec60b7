"""Sequences of numbers: equal neighbours, stretches, pairs."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="longest-plateau",
        statement="The input holds several cases, each a line with n (0 to 1000) and then a line with n "
        "integers (empty for n = 0); a line with -1 ends it. For each case print the length of the longest run of "
        "neighbouring equal numbers and the position (from 1) at which the first run of that length begins, or `0 "
        "0` for n = 0.",
        reference="""
            while True:
                n = int(input())
                if n == -1:
                    break
                values = input().split()
                best = start = run = 0
                for i in range(n):
                    run = run + 1 if i and int(values[i]) == int(values[i - 1]) else 1
                    if run > best:
                        best, start = run, i - run + 2
                print(best, start)
        """,
        right="""
            import sys
            from itertools import groupby

            lines = sys.stdin.readlines()
            for head, body in zip(lines[::2], lines[1::2]):
                if head.strip() == "-1":
                    sys.exit()
                place, best = 1, (0, 0)
                for _, run in groupby(map(int, body.split())):
                    length = len(list(run))
                    best = max(best, (length, -place))
                    place += length
                print(best[0], -best[1])
        """,
        wrong={
            "edge": """
                while (n := int(input())) >= 0:
                    values = list(map(int, input().split()))
                    best = start = run = 1
                    for i in range(1, n):
                        run = run + 1 if values[i] == values[i - 1] else 1
                        if run > best:
                            best, start = run, i - run + 2
                    print(best, start)
            """,
            "logic": """
                from collections import Counter
                while (n := int(input())) >= 0:
                    values = list(map(int, input().split()))
                    if n == 0:
                        print(0, 0)
                    else:
                        value, count = Counter(values).most_common(1)[0]
                        print(count, values.index(value) + 1)
            """,
            "format": """
                while (n := int(input())) >= 0:
                    values = list(map(int, input().split()))
                    best = start = run = 0
                    for i in range(n):
                        run = run + 1 if i and values[i] == values[i - 1] else 1
                        if run > best:
                            best, start = run, i - run + 2
                    print([best, start])
            """,
            "crash": """
                while (n := int(input())) >= 0:
                    values = list(map(int, input().split()))
                    runs = [(1, 0)]
                    for i in range(1, n):
                        length, place = runs[-1]
                        runs.append((length + 1, place) if values[i] == values[place] else (1, i))
                    best = max(runs, key=lambda run: (run[0], -run[1]))
                    print(best[0] if values[best[1]] is not None else 0, best[1] + 1)
            """,
            "slow": """
                while (n := int(input())) != -1:
                    values = list(map(int, input().split()))
                    i, best, start = 0, 0, 0
                    while i != n:
                        j = i + 1
                        while j < n and values[j] == values[i]:
                            j += 1
                        if j - i > best:
                            best, start = j - i, i + 1
                        i = values.index(values[i]) + j - i
                    print(best, start)
            """,
        },
        inputs=(
            "5\n1 1 2 2 2\n-1\n",
            "0\n\n-1\n",
            "1\n42\n3\n-5 -5 -5\n-1\n",
            "6\n3 3 1 1 3 3\n-1\n",
            "4\n1 2 3 4\n0\n\n2\n7 7\n-1\n",
            "8\n0 0 0 0 0 0 0 0\n-1\n",
            "7\n9 1 9 1 9 1 1\n-1\n",
            "3\n10 010 10\n-1\n",
        ),
    ),
    Problem(
        id="best-stretch",
        statement="A diary lists gains and losses of n days (1 <= n <= 1000), each an integer with absolute "
        "value up to 10^12: n on the first line, then the numbers on any number of lines. Print the largest total "
        "of a stretch of one or more neighbouring days.",
        reference="""
            import sys

            numbers = [int(word) for word in sys.stdin.read().split()]
            best = current = numbers[1]
            for number in numbers[2:]:
                current = max(current + number, number)
                best = max(best, current)
            print(best)
        """,
        right="""
            import os
            from itertools import accumulate

            data = b""
            while chunk := os.read(0, 512):
                data += chunk
            n, *days = map(int, data.split())
            best, lowest = None, 0
            for total in accumulate(days[:n]):
                best = total - lowest if best is None else max(best, total - lowest)
                lowest = min(lowest, total)
            os.write(1, b"%d" % best)
        """,
        wrong={
            "edge": """
                import sys
                best = current = 0
                for number in map(int, sys.stdin.read().split()[1:]):
                    current = max(current + number, 0)
                    best = max(best, current)
                print(best)
            """,
            "logic": """
                import sys
                numbers = list(map(int, sys.stdin.read().split()[1:]))
                print(sum(number for number in numbers if number > 0) or max(numbers))
            """,
            "format": """
                import sys
                numbers = list(map(int, sys.stdin.read().split()[1:]))
                best = current = numbers[0]
                for number in numbers[1:]:
                    current = max(current + number, number)
                    best = max(best, current)
                print(f"{best:.1f}")
            """,
            "crash": """
                n = int(input())
                days = list(map(int, input().split()))
                best = current = days[0]
                for i in range(1, n):
                    current = max(current + days[i], days[i])
                    best = max(best, current)
                print(best)
            """,
            "slow": """
                import sys
                numbers = list(map(int, sys.stdin.read().split()[1:]))
                n, best = len(numbers), max(numbers)
                for first in range(n):
                    for last in range(first, n):
                        for other in range(n):
                            total = 0
                            for i in range(first, last + 1):
                                total += numbers[i]
                        best = max(best, total)
                print(best)
            """,
        },
        inputs=(
            "6\n1 -2 3 4 -1 2\n",
            "1\n-7\n",
            "1\n0\n",
            "4\n-3 -1 -2 -9\n",
            "5\n1000000000000 1000000000000\n-1 1000000000000\n-1000000000000\n",
            "3\n5\n-4\n5\n",
            "1000\n" + " ".join(str((i * 7919) % 2001 - 1000) for i in range(1000)) + "\n",
            "7\n2 -5 2 2 -1 -1 2\n",
        ),
    ),
    Problem(
        id="pairs-at-a-distance",
        statement="The first line holds n (1 to 2000) and d (0 to 10^9), the second n integers with absolute "
        "values up to 10^9. Print how many pairs of positions i < j there are whose numbers differ by exactly d.",
        reference="""
            import sys
            from bisect import bisect_left, bisect_right

            def main():
                data = list(map(int, sys.stdin.buffer.read().split()))
                n, d, numbers = data[0], data[1], sorted(data[2:])
                total = 0
                for i, number in enumerate(numbers):
                    total += bisect_right(numbers, number + d, i + 1) - bisect_left(numbers, number + d, i + 1)
                print(total)

            if __name__ == "__main__":
                main()
        """,
        right="""
            from collections import Counter

            n, d = map(int, input().split())
            seen = Counter()
            pairs = 0
            for number in map(int, input().split()):
                pairs += seen[number - d]
                if d:
                    pairs += seen[number + d]
                seen[number] += 1
            print(pairs)
        """,
        wrong={
            "edge": """
                from collections import Counter
                n, d = map(int, input().split())
                counts = Counter(map(int, input().split()))
                print(sum(count * counts[number + d] for number, count in list(counts.items())))
            """,
            "logic": """
                n, d = map(int, input().split())
                numbers = set(map(int, input().split()))
                print(sum(number + d in numbers for number in numbers))
            """,
            "format": """
                n, d = map(int, input().split())
                numbers = list(map(int, input().split()))
                for i in range(n):
                    for j in range(i + 1, n):
                        if abs(numbers[i] - numbers[j]) == d:
                            print(i + 1, j + 1)
            """,
            "crash": """
                n, d = map(int, input().split())
                counts = [0] * 5001
                pairs = 0
                for number in map(int, input().split()):
                    pairs += counts[number - d] + (counts[number + d] if d else 0)
                    counts[number] += 1
                print(pairs)
            """,
            "slow": """
                n, d = map(int, input().split())
                numbers = sorted(map(int, input().split()))
                pairs = left = right = 0
                while right < n:
                    gap = numbers[right] - numbers[left]
                    if gap < d:
                        right += 1
                    elif gap > d:
                        left += 1
                    else:
                        last = right
                        while last < n and numbers[last] == numbers[right]:
                            last += 1
                        first = left
                        while first < last and numbers[first] == numbers[left]:
                            first += 1
                        pairs += (last - right) * (first - left)
                        left, right = (first, last) if d else (left, right)
                print(pairs)
            """,
        },
        inputs=(
            "5 2\n1 3 5 3 1\n",
            "4 0\n7 7 7 7\n",
            "1 5\n9\n",
            "3 1000000000\n-500000000 500000000 500000000\n",
            "6 1\n10 9 8 7 6 5\n",
            "3 0\n1 2 3\n",
            "4 3\n-3 0 3 6\n",
            "5 4\n1 1 5 5 5\n",
            "500 10\n" + " ".join(str(i * i % 101) for i in range(500)) + "\n",
        ),
    ),
]
