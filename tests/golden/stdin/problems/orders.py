"""Sequences and their order: swaps, hours of duty, rising heights."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="swaps-of-neighbours",
        statement="The first line holds t (1 to 10); each case is a line with n (1 to 1000) and a line with n "
        "integers. Print for each case how many swaps of neighbouring numbers are needed at least to bring its "
        "numbers into ascending order.",
        reference="""
            import sys
            from bisect import bisect_right, insort

            def main():
                lines = sys.stdin.read().splitlines()
                for case in range(int(lines[0])):
                    before, swaps = [], 0
                    for number in map(int, lines[2 * case + 2].split()):
                        swaps += len(before) - bisect_right(before, number)
                        insort(before, number)
                    print(swaps)

            if __name__ == "__main__":
                main()
        """,
        right="""
            from sys import stdin, stdout

            def sort(numbers):
                if len(numbers) < 2:
                    return numbers, 0
                middle = len(numbers) // 2
                (left, a), (right, b) = sort(numbers[:middle]), sort(numbers[middle:])
                merged, i, swaps = [], 0, a + b
                for number in right:
                    while i < len(left) and left[i] <= number:
                        merged.append(left[i])
                        i += 1
                    swaps += len(left) - i
                    merged.append(number)
                return merged + left[i:], swaps

            for _ in range(int(stdin.readline())):
                stdin.readline()
                stdout.write("%d " % sort([int(word) for word in stdin.readline().split()])[1])
        """,
        wrong={
            "edge": """
                from bisect import bisect_left, insort
                for _ in range(int(input())):
                    input()
                    before, swaps = [], 0
                    for number in map(int, input().split()):
                        swaps += len(before) - bisect_left(before, number)
                        insort(before, number)
                    print(swaps)
            """,
            "logic": """
                for _ in range(int(input())):
                    n, numbers = int(input()), list(map(int, input().split()))
                    swaps = 0
                    for i in range(n):
                        smallest = min(range(i, n), key=numbers.__getitem__)
                        if smallest != i:
                            numbers[i], numbers[smallest] = numbers[smallest], numbers[i]
                            swaps += 1
                    print(swaps)
            """,
            "format": """
                from bisect import bisect_right, insort
                results = []
                for _ in range(int(input())):
                    input()
                    before, swaps = [], 0
                    for number in map(int, input().split()):
                        swaps += len(before) - bisect_right(before, number)
                        insort(before, number)
                    results.append(swaps)
                print(*results, sep=", ", end=".")
            """,
            "crash": """
                for _ in range(int(input())):
                    n, numbers = int(input()), list(map(int, input().split()))
                    tree, swaps = [0] * (n + 1), 0
                    for seen, number in enumerate(numbers):
                        i, smaller = number, 0
                        while i > 0:
                            smaller += tree[i]
                            i -= i & -i
                        swaps += seen - smaller
                        i = number
                        if i <= 0:
                            raise ValueError(f"no rank: {number}")
                        while i <= n:
                            tree[i] += 1
                            i += i & -i
                    print(swaps)
            """,
            "slow": """
                for _ in range(int(input())):
                    n, numbers = int(input()), list(map(int, input().split()))
                    swaps, is_sorted = 0, False
                    while not is_sorted:
                        is_sorted = True
                        for i in range(n - 1):
                            if numbers[i] >= numbers[i + 1]:
                                numbers[i], numbers[i + 1] = numbers[i + 1], numbers[i]
                                swaps += 1
                                is_sorted = False
                    print(swaps)
            """,
        },
        inputs=(
            "2\n3\n3 1 2\n4\n1 2 3 4\n",
            "1\n1\n5\n",
            "1\n5\n5 4 3 2 1\n",
            "1\n4\n2 2 1 1\n",
            "2\n2\n-1 -2\n3\n0 -7 0\n",
            "1\n6\n99 98 97 96 95 100\n",
            "3\n1\n1\n1\n1\n2\n2 1\n",
            "1\n300\n" + " ".join(str(i * 211 % 307) for i in range(1, 301)) + "\n",
            "1\n7\n4 1 5 2 7 3 6\n",
        ),
    ),
    Problem(
        id="watched-hours",
        statement="Guards are on duty from hour a to hour b, 0 <= a < b <= 10^9, one `a b` a line until the "
        "end of the input (at most 200 lines). Print two numbers: how many hours someone is on duty, and how many "
        "hours nobody is, between the first hour of duty and the last.",
        reference="""
            import sys

            shifts = sorted(tuple(map(int, line.split())) for line in sys.stdin)
            watched, end = 0, shifts[0][0]
            for a, b in shifts:
                watched += max(0, b - max(a, end))
                end = max(end, b)
            print(watched, end - shifts[0][0] - watched)
        """,
        right="""
            events = []
            try:
                while True:
                    a, b = map(int, input().split())
                    events += [(a, 1), (b, -1)]
            except EOFError:
                pass
            events.sort()
            hours, guards, before = {True: 0, False: 0}, 0, events[0][0]
            for hour, change in events:
                hours[guards > 0] += hour - before
                guards, before = guards + change, hour
            print(hours[True], hours[False])
        """,
        wrong={
            "edge": """
                import sys
                shifts = sorted(tuple(map(int, line.split())) for line in sys.stdin)
                watched, end = 0, shifts[0][0]
                for a, b in shifts:
                    watched += max(0, b - max(a, end))
                    end = b
                print(watched, end - shifts[0][0] - watched)
            """,
            "logic": """
                import sys
                shifts = [tuple(map(int, line.split())) for line in sys.stdin]
                watched = sum(b - a for a, b in shifts)
                total = max(b for _, b in shifts) - min(a for a, _ in shifts)
                print(watched, max(0, total - watched))
            """,
            "format": """
                import sys
                shifts = sorted(tuple(map(int, line.split())) for line in sys.stdin)
                watched, end = 0, shifts[0][0]
                for a, b in shifts:
                    watched += max(0, b - max(a, end))
                    end = max(end, b)
                print(f"{watched}h", f"{end - shifts[0][0] - watched}h")
            """,
            "crash": """
                import sys
                shifts = [tuple(map(int, line.split())) for line in sys.stdin]
                busy = bytearray(10**5)
                for a, b in shifts:
                    for hour in range(a, b):
                        busy[hour] = 1
                first, last = min(a for a, _ in shifts), max(b for _, b in shifts)
                print(busy.count(1), last - first - busy.count(1))
            """,
            "slow": """
                import sys
                shifts = sorted(tuple(map(int, line.split())) for line in sys.stdin)
                hour, end = shifts[0][0], max(b for _, b in shifts)
                watched = free = 0
                while hour < end:
                    if any(a <= hour < b for a, b in shifts):
                        watched += 1
                    else:
                        free += 1
                    hour += 1
                print(watched, free)
            """,
        },
        inputs=(
            "0 4\n2 6\n8 10\n",
            "5 6\n",
            "0 1000000000\n",
            "1 3\n3 5\n",
            "10 20\n12 14\n30 31\n",
            "0 9\n1 2\n3 4\n",
            "7 8\n1 2\n4 5\n1 2\n",
            "3 900\n100 1000\n",
        ),
    ),
    Problem(
        id="rising-photos",
        statement="People stand in a row; the input holds their heights as decimal numbers with at most two "
        "digits after the point, any number of them in each line, ended by a lone `#`; there are at most 300. "
        "Print how many can stay at most if the others step back and those that stay must be strictly taller from "
        "left to right.",
        reference="""
            import sys
            from bisect import bisect_left

            ends = []
            for word in sys.stdin.read().split():
                if word == "#":
                    break
                height = float(word)
                place = bisect_left(ends, height)
                ends[place : place + 1] = [height]
            print(len(ends))
        """,
        right="""
            from decimal import Decimal

            heights = []
            while (line := input().strip()) != "#":
                heights += [Decimal(word) for word in line.split()]
            best = []
            for i, height in enumerate(heights):
                best.append(1 + max((best[j] for j in range(i) if heights[j] < height), default=0))
            print(max(best, default=0))
        """,
        wrong={
            "edge": """
                import sys
                from bisect import bisect_right
                ends = []
                for word in sys.stdin.read().split()[:-1]:
                    place = bisect_right(ends, float(word))
                    ends[place : place + 1] = [float(word)]
                print(len(ends))
            """,
            "logic": """
                import sys
                heights = [float(word) for word in sys.stdin.read().split()[:-1]]
                best = run = min(len(heights), 1)
                for left, right in zip(heights, heights[1:]):
                    run = run + 1 if left < right else 1
                    best = max(best, run)
                print(best)
            """,
            "format": """
                import sys
                heights = [float(word) for word in sys.stdin.read().split()[:-1]]
                best = [[]]
                for i, height in enumerate(heights):
                    best.append(max((row for row in best if not row or row[-1] < height), key=len) + [height])
                print(*max(best, key=len))
            """,
            "crash": """
                import sys
                from bisect import bisect_left
                ends = []
                for word in sys.stdin.read().split()[:-1]:
                    height = int(word)
                    place = bisect_left(ends, height)
                    ends[place : place + 1] = [height]
                print(len(ends))
            """,
            "slow": """
                import sys
                heights = [float(word) for word in sys.stdin.read().split()[:-1]]
                def most(i, least):
                    if i == len(heights):
                        return 0
                    without = most(i + 1, least)
                    return max(without, 1 + most(i + 1, heights[i])) if heights[i] > least else without
                print(most(0, -1.0))
            """,
        },
        inputs=(
            "1.80 1.65 1.70 1.90\n1.75\n#\n",
            "#\n",
            "2\n#\n",
            "1.5 1.50 1.5\n#\n",
            "3 2 1\n#\n",
            " ".join(str(i) for i in range(1, 61)) + "\n#\n",
            "10 9 2 5 3 7 101 18\n#\n",
            "0.1 0.25\n0.3 0.2\n\n0.35\n#\n",
        ),
    ),
]
