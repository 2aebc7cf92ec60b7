"""Boards on which every square depends on its neighbours."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="colony-on-a-torus",
        statement="The first line holds h, w (3 to 20) and g (0 to 200), then come h lines of w characters, "
        "`*` for a living cell and `.` for an empty place. Every square has eight neighbours, since left and right "
        "edge are joined and so are top and bottom. In each of g rounds, all squares at once: a cell stays alive "
        "with 2 or 3 living neighbours and dies otherwise, and in an empty place with exactly 3 a cell is born. "
        "Print the board after them.",
        checker="exact",
        reference="""
            import sys

            lines = sys.stdin.read().splitlines()
            h, w, rounds = map(int, lines[0].split())
            board = [[c == "*" for c in line] for line in lines[1 : h + 1]]
            for _ in range(rounds):
                nearby = [
                    [sum(board[(r + i) % h][(c + j) % w] for i in (-1, 0, 1) for j in (-1, 0, 1)) for c in range(w)]
                    for r in range(h)
                ]
                board = [[n == 3 or (alive and n == 4) for n, alive in zip(*rows)] for rows in zip(nearby, board)]
            for row in board:
                print("".join(".*"[alive] for alive in row))
        """,
        right="""
            from collections import Counter

            h, w, g = map(int, input().split())
            alive = frozenset((r, c) for r in range(h) for c, square in enumerate(input()) if square == "*")
            for _ in range(g):
                counts = Counter(
                    ((r + i) % h, (c + j) % w)
                    for r, c in alive for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
                )
                following = frozenset(p for p, n in counts.items() if n == 3 or (n == 2 and p in alive))
                if following == alive:
                    break
                alive = following
            for r in range(h):
                print(*(("*" if (r, c) in alive else ".") for c in range(w)), sep="")
        """,
        wrong={
            "edge": """
                h, w, g = map(int, input().split())
                alive = {(r, c) for r in range(h) for c, square in enumerate(input()) if square == "*"}
                for _ in range(g):
                    counts = {}
                    for r, c in alive:
                        for i in (-1, 0, 1):
                            for j in (-1, 0, 1):
                                if (i or j) and 0 <= r + i < h and 0 <= c + j < w:
                                    counts[r + i, c + j] = counts.get((r + i, c + j), 0) + 1
                    alive = {p for p, n in counts.items() if n == 3 or (n == 2 and p in alive)}
                for r in range(h):
                    print("".join("*" if (r, c) in alive else "." for c in range(w)))
            """,
            "logic": """
                h, w, g = map(int, input().split())
                board = [list(input()) for _ in range(h)]
                for _ in range(g):
                    for r in range(h):
                        for c in range(w):
                            places = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
                            n = sum(board[(r + i) % h][(c + j) % w] == "*" for i, j in places)
                            board[r][c] = "*" if n == 3 or (n == 2 and board[r][c] == "*") else "."
                for row in board:
                    print("".join(row))
            """,
            "format": """
                h, w, g = map(int, input().split())
                alive = {(r, c) for r in range(h) for c, square in enumerate(input()) if square == "*"}
                near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
                for _ in range(g):
                    counts = {}
                    for r, c in alive:
                        for i, j in near:
                            p = (r + i) % h, (c + j) % w
                            counts[p] = counts.get(p, 0) + 1
                    alive = {p for p, n in counts.items() if n == 3 or (n == 2 and p in alive)}
                for r in range(h):
                    print(" ".join("*" if (r, c) in alive else "." for c in range(w)))
            """,
            "crash": """
                h, w, g = map(int, input().split())
                board = [input() for _ in range(h)]
                near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
                for _ in range(g):
                    new = []
                    for r in range(h):
                        row = ""
                        for c in range(w):
                            n = sum(board[r + i][c + j] == "*" for i, j in near)
                            row += "*" if n == 3 or (n == 2 and board[r][c] == "*") else "."
                        new.append(row)
                    board = new
                print("\\n".join(board))
            """,
            "slow": """
                h, w, g = map(int, input().split())
                alive = {(r, c) for r in range(h) for c, square in enumerate(input()) if square == "*"}
                near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
                while g != 0:
                    counts = {}
                    for r, c in alive:
                        for i, j in near:
                            p = (r + i) % h, (c + j) % w
                            counts[p] = counts.get(p, 0) + 1
                    following = {p for p, n in counts.items() if n == 3 or (n == 2 and p in alive)}
                    g -= following != alive
                    alive = following
                for r in range(h):
                    print("".join("*" if (r, c) in alive else "." for c in range(w)))
            """,
        },
        inputs=(
            "5 5 1\n.....\n..*..\n..*..\n..*..\n.....\n",
            "6 6 0\n*....*\n......\n......\n......\n......\n*....*\n",
            "4 4 9\n....\n.**.\n.**.\n....\n",
            "8 8 2\n........\n........\n...*....\n....*...\n..***...\n........\n........\n........\n",
            "6 6 24\n.*....\n..*...\n***...\n......\n......\n......\n",
            "7 5 3\n*...*\n.....\n.....\n.....\n.....\n.....\n*...*\n",
            "6 7 1\n.......\n...*...\n..***..\n...*...\n.......\n.......\n",
            "5 6 2\n......\n......\n.***..\n......\n......\n",
        ),
    ),
    Problem(
        id="crumbs-around",
        statement="A table is given as lines of equal length, at most 30 of at most 30 characters, until the "
        "end of the input: `x` is a crumb, `-` a clean place. Print it with every clean place replaced by the "
        "number of crumbs on the up to eight places around it, or left as `-` where there is none; crumbs stay "
        "`x`.",
        checker="exact",
        reference="""
            import sys

            def main():
                crumbs, shape = set(), []
                for r, line in enumerate(sys.stdin.buffer):
                    line = line.strip().decode()
                    shape.append(len(line))
                    crumbs.update((r, c) for c, place in enumerate(line) if place == "x")
                for r, width in enumerate(shape):
                    for c in range(width):
                        n = sum((r + i, c + j) in crumbs for i in (-1, 0, 1) for j in (-1, 0, 1))
                        sys.stdout.write("x" if (r, c) in crumbs else str(n) if n else "-")
                    sys.stdout.write("\\n")

            main()
        """,
        right="""
            import sys

            table = sys.stdin.read().split()
            for r, row in enumerate(table):
                line = ""
                for c, place in enumerate(row):
                    if place == "-":
                        around = [near[max(c - 1, 0) : c + 2] for near in table[max(r - 1, 0) : r + 2]]
                        place = str("".join(around).count("x") or "-")
                    line += place
                print(line)
        """,
        wrong={
            "edge": """
                import sys
                table = sys.stdin.read().split()
                for r, row in enumerate(table):
                    line = ""
                    for c, place in enumerate(row):
                        around = [near[c - 1 : c + 2] for near in table[max(r - 1, 0) : r + 2]]
                        line += place if place == "x" else str("".join(around).count("x") or "-")
                    print(line)
            """,
            "logic": """
                import sys
                table = sys.stdin.read().split()
                for r, row in enumerate(table):
                    line = ""
                    for c, place in enumerate(row):
                        sides = [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
                        n = sum(0 <= i < len(table) and 0 <= j < len(row) and table[i][j] == "x" for i, j in sides)
                        line += place if place == "x" else str(n or "-")
                    print(line)
            """,
            "format": """
                import sys
                table = sys.stdin.read().split()
                print(len(table))
                for r, row in enumerate(table):
                    line = ""
                    for c, place in enumerate(row):
                        around = [near[max(c - 1, 0) : c + 2] for near in table[max(r - 1, 0) : r + 2]]
                        line += place if place == "x" else str("".join(around).count("x") or "-")
                    print(line)
            """,
            "crash": """
                import sys
                table = sys.stdin.read().split()
                counts = [[0] * len(table[0]) for _ in table]
                for r, row in enumerate(table):
                    for c, place in enumerate(row):
                        if place == "x":
                            for i in range(max(r - 1, 0), r + 2):
                                for j in range(max(c - 1, 0), c + 2):
                                    counts[i][j] += 1
                for row, numbers in zip(table, counts):
                    print("".join(p if p == "x" else str(n or "-") for p, n in zip(row, numbers)))
            """,
            "slow": """
                import sys
                from itertools import cycle
                table = sys.stdin.read().split()
                for r, row in enumerate(table):
                    line = ""
                    for c, place in enumerate(row):
                        around = [near[max(c - 1, 0) : c + 2] for near in table[max(r - 1, 0) : r + 2]]
                        found = place if place == "x" else str("".join(around).count("x") or "-")
                        for mark in cycle("x-1234567"):
                            if mark == found:
                                break
                        line += mark
                    print(line)
            """,
        },
        inputs=(
            "----\n--x-\n----\n",
            "x\n",
            "-\n",
            "---\n-x-\n---\n",
            "xxx\nx-x\nxxx\n",
            "x----x\n------\n--x---\n",
            "----\n----\n",
            "----\n-x--\n--x-\n----\n",
            "-\nx\n-\n-\n",
        ),
    ),
]
