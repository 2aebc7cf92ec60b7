"""Pictures of characters, where the layout counts: a diamond, bars."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="hollow-diamond",
        statement="The input holds one odd number n (1 to 39). Print the outline of a diamond that is n lines "
        "high and n characters wide: one or two `o` in each line, spaces before and between them, the corners in "
        "the middle of the four sides.",
        checker="exact",
        reference="""
            n = int(input())
            middle = n // 2
            for r in range(n):
                inner = middle - abs(middle - r)
                line = [" "] * n
                line[middle - inner] = line[middle + inner] = "o"
                print("".join(line).rstrip())
        """,
        right=r"""
            import sys

            def half(n):
                outer = n // 2
                yield " " * outer + "o"
                for gap in range(1, n - 1, 2):
                    outer -= 1
                    yield f"{'':{outer}}o{'':{gap}}o"

            lines = list(half(int(sys.stdin.read())))
            sys.stdout.write("\n".join(lines + lines[-2::-1]))
        """,
        wrong={
            "edge": """
                n = int(input())
                middle = n // 2
                for r in range(n):
                    inner = middle - abs(middle - r)
                    if r in (0, n - 1) and n > 1:
                        print(" " * middle + "o")
                    else:
                        print(" " * (middle - inner) + "o" + " " * (2 * inner - 1) + "o")
            """,
            "logic": """
                n = int(input())
                middle = n // 2
                for r in range(n):
                    inner = middle - abs(middle - r)
                    print(" " * (middle - inner) + "o" * (2 * inner + 1))
            """,
            "format": """
                n = int(input())
                middle = n // 2
                for r in range(n):
                    inner = middle - abs(middle - r)
                    line = [" "] * n
                    line[middle - inner] = line[middle + inner] = "o"
                    print(*line)
            """,
            "crash": """
                n = int(input())
                half = []
                for i in range(1, n // 2 + 1):
                    half.append(" " * (n // 2 - i) + "o" + " " * (2 * i - 1) + "o")
                middle = half.pop()
                tip = " " * (n // 2) + "o"
                print("\\n".join([tip, *half, middle, *half[::-1], tip]))
            """,
            "slow": """
                n = int(input())
                gap = rows = 1
                while True:
                    gap, rows = gap + 2, rows + 1
                    if gap == n:
                        break
                lines = [" " * (n // 2) + "o"]
                for i in range(1, rows):
                    lines.append(" " * (n // 2 - i) + "o" + " " * (2 * i - 1) + "o")
                print("\\n".join(lines + lines[-2::-1]))
            """,
        },
        inputs=("1\n", "3\n", "5\n", "7\n", "13\n", "39\n"),
    ),
    Problem(
        id="standing-bars",
        statement="The first line holds n (1 to 20), the second n heights from 0 to 15. Draw the heights as "
        "bars of `#` that stand side by side with one space between neighbours, as many lines as the highest bar "
        "is high, and below them a line of 2n - 1 characters `=`.",
        checker="exact",
        reference="""
            n = int(input())
            heights = list(map(int, input().split()))
            for level in range(max(heights), 0, -1):
                print(" ".join("#" if height >= level else " " for height in heights).rstrip())
            print("=" * (2 * n - 1))
        """,
        right="""
            import sys
            from itertools import zip_longest

            n, *heights = map(int, sys.stdin.read().split())
            columns = []
            for height in heights:
                columns += ["=" + "#" * height, "="]
            columns.pop()
            picture = ["".join(row) for row in zip_longest(*columns, fillvalue=" ")]
            for line in reversed(picture):
                print(line)
        """,
        wrong={
            "edge": """
                n = int(input())
                heights = list(map(int, input().split()))
                for level in range(max(max(heights), 1), 0, -1):
                    print(" ".join("#" if height >= level else " " for height in heights))
                print("=" * (2 * n - 1))
            """,
            "logic": """
                n = int(input())
                heights = list(map(int, input().split()))
                for level in range(1, max(heights) + 1):
                    print(" ".join("#" if height >= level else " " for height in heights))
                print("=" * (2 * n - 1))
            """,
            "format": """
                n = int(input())
                heights = list(map(int, input().split()))
                for level in range(max(heights), 0, -1):
                    print("".join("#" if height >= level else " " for height in heights))
                print("=" * n)
            """,
            "crash": """
                n = int(input())
                heights = list(map(int, input().split()))
                columns = [["#"] * height for height in heights]
                lines = []
                for _ in range(max(heights)):
                    lines.append(" ".join(column.pop() for column in columns))
                print("\\n".join([*lines, "=" * (2 * n - 1)]))
            """,
            "slow": """
                n = int(input())
                heights = list(map(int, input().split()))
                level = max(heights)
                while True:
                    if level > 0:
                        print(" ".join("#" if height >= level else " " for height in heights))
                    level -= 1
                    if level == 0:
                        break
                print("=" * (2 * n - 1))
            """,
        },
        inputs=(
            "5\n1 3 2 0 4\n",
            "1\n0\n",
            "1\n3\n",
            "3\n2 2 2\n",
            "4\n0 0 0 1\n",
            "3\n0 0 0\n",
            "6\n15 0 7 3 0 1\n",
            "2\n5 10\n",
        ),
    ),
]
