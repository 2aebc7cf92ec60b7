"""Walks: along arrows, in a spiral, down a tree."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="arrow-walk",
        statement="The input holds several boards until its end: a line `h w` (1 to 30), then h lines of w "
        "characters out of `<>^v`. A token starts in the upper left square and moves again and again by one square "
        "in the direction of the arrow under it. Print for each board how many moves it makes until it has left "
        "the board, or `loop` if it never does.",
        reference="""
            import sys

            MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
            lines = iter(sys.stdin.read().split("\\n"))
            for line in lines:
                if not line:
                    continue
                h, w = map(int, line.split())
                board = [next(lines) for _ in range(h)]
                r = c = moves = 0
                while 0 <= r < h and 0 <= c < w and moves <= h * w:
                    down, right = MOVES[board[r][c]]
                    r, c, moves = r + down, c + right, moves + 1
                print(moves if moves <= h * w else "loop")
        """,
        right="""
            while True:
                try:
                    h, w = map(int, input().split())
                except EOFError:
                    break
                board = {}
                for r in range(h):
                    for c, arrow in enumerate(input()):
                        board[complex(c, r)] = arrow
                step = {"<": -1, ">": 1, "^": -1j, "v": 1j}
                place, path = 0j, []
                while place in board:
                    arrow = board.pop(place)
                    path.append(place)
                    place += step[arrow]
                print("loop" if place in path else len(path))
        """,
        wrong={
            "edge": """
                import sys
                MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
                lines = sys.stdin.read().split()
                while lines:
                    h, w = int(lines[0]), int(lines[1])
                    board, lines = lines[2 : 2 + h], lines[2 + h :]
                    r = c = moves = 0
                    while 0 <= r < h and 0 <= c < w and moves < h * w:
                        down, right = MOVES[board[r][c]]
                        r, c, moves = r + down, c + right, moves + 1
                    print(moves if moves < h * w else "loop")
            """,
            "logic": """
                import sys
                MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
                lines = sys.stdin.read().split()
                while lines:
                    h, w = int(lines[0]), int(lines[1])
                    board, lines = lines[2 : 2 + h], lines[2 + h :]
                    r = c = moves = 0
                    while moves <= h * w:
                        down, right = MOVES[board[r][c]]
                        if not (0 <= r + down < h and 0 <= c + right < w):
                            break
                        r, c, moves = r + down, c + right, moves + 1
                    print(moves if moves <= h * w else "loop")
            """,
            "format": """
                import sys
                MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
                lines, number = sys.stdin.read().split(), 0
                while lines:
                    h, w, number = int(lines[0]), int(lines[1]), number + 1
                    board, lines = lines[2 : 2 + h], lines[2 + h :]
                    r = c = moves = 0
                    while 0 <= r < h and 0 <= c < w and moves <= h * w:
                        down, right = MOVES[board[r][c]]
                        r, c, moves = r + down, c + right, moves + 1
                    print(f"Board {number}:", moves if moves <= h * w else "loop")
            """,
            "crash": """
                import sys
                MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
                lines = sys.stdin.read().split()
                while lines:
                    h, w = int(lines[0]), int(lines[1])
                    board, lines = lines[2 : 2 + h], lines[2 + h :]
                    r = c = moves = 0
                    while min(r, c) >= 0 and moves <= h * w:
                        if r == h:
                            break
                        down, right = MOVES[board[r][c]]
                        r, c, moves = r + down, c + right, moves + 1
                    print(moves if moves <= h * w else "loop")
            """,
            "slow": """
                import sys
                MOVES = {"<": (0, -1), ">": (0, 1), "^": (-1, 0), "v": (1, 0)}
                lines = sys.stdin.read().split()
                while lines:
                    h, w = int(lines[0]), int(lines[1])
                    board, lines = lines[2 : 2 + h], lines[2 + h :]
                    r = c = moves = 0
                    while 0 <= r < h and 0 <= c < w:
                        down, right = MOVES[board[r][c]]
                        r, c, moves = r + down, c + right, moves + 1
                        if (r, c) == (0, 0):
                            break
                    print("loop" if (r, c) == (0, 0) else moves)
            """,
        },
        inputs=(
            "2 2\n>v\n^<\n",
            "1 1\nv\n",
            "2 3\n>>v\n<<<\n",
            "3 3\nvv>\n>>v\n^^^\n1 2\n<<\n",
            "1 3\n>><\n",
            "3 4\n>>v>\n^v<^\n<<vv\n2 2\n^>\nvv\n",
            "1 4\n>>>>\n",
            "2 2\nv<\n<<\n1 2\n^>\n",
        ),
    ),
    Problem(
        id="spiral-reading",
        statement="The first line holds h and w (1 to 50), then come h lines of w letters. Print the letters "
        "as one word in the order of a clockwise spiral that begins in the upper left corner, goes right first and "
        "ends inside.",
        reference="""
            import sys

            def main():
                rows = sys.stdin.read().split()[2:]
                word = ""
                while rows:
                    word += rows[0]
                    rows = ["".join(column) for column in zip(*rows[1:])][::-1]
                print(word)

            if __name__ == "__main__":
                main()
        """,
        right="""
            h, w = (int(n) for n in input().split())
            letters = {(r, c): letter for r in range(h) for c, letter in enumerate(input().strip())}
            r, c, down, right = 0, 0, 0, 1
            while letters:
                print(letters.pop((r, c)), end="")
                if (r + down, c + right) not in letters:
                    down, right = right, -down
                r, c = r + down, c + right
            print()
        """,
        wrong={
            "edge": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                top, bottom, left, right = 0, h - 1, 0, w - 1
                word = ""
                while top <= bottom and left <= right:
                    word += rows[top][left : right + 1]
                    word += "".join(rows[r][right] for r in range(top + 1, bottom + 1))
                    if bottom > top:
                        word += "".join(rows[bottom][c] for c in range(right - 1, left - 1, -1))
                    word += "".join(rows[r][left] for r in range(bottom - 1, top, -1))
                    top, bottom, left, right = top + 1, bottom - 1, left + 1, right - 1
                print(word)
            """,
            "logic": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                columns = ["".join(column) for column in zip(*rows)]
                word = ""
                while columns:
                    word += columns[0]
                    columns = ["".join(row) for row in zip(*columns[1:])][::-1]
                print(word)
            """,
            "format": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                word = ""
                while rows:
                    word += rows[0]
                    rows = ["".join(column) for column in zip(*rows[1:])][::-1]
                print(*word)
            """,
            "crash": """
                h, w = map(int, input().split())
                rows = [list(input()) for _ in range(h)]
                word = ""
                while rows:
                    word += "".join(rows.pop(0))
                    word += "".join(row.pop() for row in rows)
                    if rows:
                        word += "".join(reversed(rows.pop()))
                    word += "".join(row.pop(0) for row in reversed(rows))
                print(word)
            """,
            "slow": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                word, left, top, right, bottom = "", 0, 0, w - 1, h - 1
                while len(word) != h * w:
                    if top > bottom or left > right:
                        continue
                    word += rows[top][left : right + 1]
                    for r in range(top + 1, bottom + 1):
                        word += rows[r][right]
                    for c in range(right - 1, left - 1, -1):
                        word += rows[bottom][c] if bottom > top else ""
                    for r in range(bottom - 1, top, -1):
                        word += rows[r][left]
                    left, top, right, bottom = left + 1, top + 1, right - 1, bottom - 1
                print(word)
            """,
        },
        inputs=(
            "2 3\nabc\nfed\n",
            "1 1\nz\n",
            "3 3\nabc\nhid\ngfe\n",
            "1 5\nhello\n",
            "4 1\nd\no\nw\nn\n",
            "4 4\nabcd\nlmne\nkpof\njihg\n",
            "5 2\nab\njc\nid\nhe\ngf\n",
            "5 3\nabc\nlmd\nkne\njof\nihg\n",
        ),
    ),
    Problem(
        id="deep-tree",
        statement="A tree has the nodes 1 to n (1 <= n <= 1000) and the root 1. The first line holds n, the "
        "second the parents of the nodes 2 to n, each of which may have a larger or a smaller number than its "
        "child (the line is empty for n = 1). Print the depth of the tree, which is 0 for a root alone, and the "
        "number of its leaves.",
        reference="""
            import sys
            import threading

            def main():
                n, *parents = map(int, sys.stdin.read().split())
                children = [[] for _ in range(n + 1)]
                for child, parent in enumerate(parents, 2):
                    children[parent].append(child)

                def measure(node):
                    if not children[node]:
                        return 0, 1
                    depths, leaves = zip(*map(measure, children[node]))
                    return 1 + max(depths), sum(leaves)

                print(*measure(1))

            sys.setrecursionlimit(20000)
            threading.stack_size(64 << 20)
            thread = threading.Thread(target=main)
            thread.start()
            thread.join()
        """,
        right="""
            from collections import deque

            n = int(input())
            children = {}
            for child, parent in enumerate(input().split() if n > 1 else (), 2):
                children.setdefault(int(parent), []).append(child)
            queue, leaves, depth = deque([(1, 0)]), 0, 0
            while queue:
                node, depth = queue.popleft()
                below = children.get(node, ())
                leaves += not below
                queue.extend((child, depth + 1) for child in below)
            print(depth)
            print(leaves)
        """,
        wrong={
            "edge": """
                import sys
                n, *parents = map(int, sys.stdin.read().split())
                depths = [0] * (n + 1)
                for child, parent in enumerate(parents, 2):
                    depths[child] = depths[parent] + 1
                print(max(depths), n - len(set(parents)))
            """,
            "logic": """
                import sys
                n, *parents = map(int, sys.stdin.read().split())
                above = dict(enumerate(parents, 2))
                longest = 0
                for node in range(1, n + 1):
                    length = 1
                    while node != 1:
                        node, length = above[node], length + 1
                    longest = max(longest, length)
                print(longest, n - len(set(parents)))
            """,
            "format": """
                import sys
                n, *parents = map(int, sys.stdin.read().split())
                above = dict(enumerate(parents, 2))
                longest = 0
                for node in range(1, n + 1):
                    length = 0
                    while node != 1:
                        node, length = above[node], length + 1
                    longest = max(longest, length)
                print(f"depth {longest}, {n - len(set(parents))} leaves")
            """,
            "crash": """
                import sys
                sys.setrecursionlimit(200)
                n, *parents = map(int, sys.stdin.read().split())
                children = [[] for _ in range(n + 1)]
                for child, parent in enumerate(parents, 2):
                    children[parent].append(child)
                def depth(node):
                    return max([1 + depth(child) for child in children[node]], default=0)
                print(depth(1), n - len(set(parents)))
            """,
            "slow": """
                import sys
                n, *parents = map(int, sys.stdin.read().split())
                depths = {1: 0}
                while len(depths) < n:
                    for child, parent in enumerate(parents, 2):
                        if parent in depths and parent < child:
                            depths[child] = depths[parent] + 1
                print(max(depths.values()), n - len(set(parents)))
            """,
        },
        inputs=(
            "5\n1 1 2 2\n",
            "1\n\n",
            "4\n3 4 1\n",
            "2\n1\n",
            "1000\n" + " ".join(str(i) for i in range(1, 1000)) + "\n",
            "6\n1 1 1 1 1\n",
            "7\n4 1 1 7 5 3\n",
            "8\n1 2 3 3 3 2 1\n",
        ),
    ),
]
