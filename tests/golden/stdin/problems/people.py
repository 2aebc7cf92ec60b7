"""Names in order: a waiting line, shared ranks."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="waiting-line",
        statement="Orders to a waiting line stand one a line: `come NAME` (to the end of the line), `rush "
        "NAME` (to its front), `next` (the first one leaves; print the name, or `nobody` if none waits), `size` "
        "(print how many wait), and `close`, which comes exactly once: print `closed` and read no further. There "
        "are at most 500 orders.",
        reference="""
            import sys
            from collections import deque

            waiting = deque()
            for line in sys.stdin:
                order, *names = line.split()
                if order == "come":
                    waiting.append(names[0])
                elif order == "rush":
                    waiting.appendleft(names[0])
                elif order == "next":
                    print(waiting.popleft() if waiting else "nobody")
                elif order == "size":
                    print(len(waiting))
                else:
                    print("closed")
                    sys.exit()
        """,
        right="""
            class Line:
                def __init__(self):
                    self.front, self.back = [], []

                def come(self, name):
                    self.back.append(name)

                def rush(self, name):
                    self.front.append(name)

                def next(self):
                    if not self.front:
                        self.front, self.back = self.back[::-1], []
                    print(self.front.pop() if self.front else "nobody", flush=True)

                def size(self):
                    print(len(self.front) + len(self.back), flush=True)

                def close(self):
                    raise SystemExit("closed" if print("closed") else 0)

            line = Line()
            while True:
                order, *names = input().split()
                getattr(line, order)(*names)
        """,
        wrong={
            "edge": """
                waiting = []
                while (line := input()) != "close":
                    order, *names = line.split()
                    if order == "come":
                        waiting.append(names[0])
                    elif order == "rush":
                        waiting.insert(0, names[0])
                    elif order == "next":
                        if waiting:
                            print(waiting.pop(0))
                    else:
                        print(len(waiting))
                print("closed")
            """,
            "logic": """
                waiting = []
                while (line := input()) != "close":
                    order, *names = line.split()
                    if order == "come":
                        waiting.append(names[0])
                    elif order == "rush":
                        waiting.insert(0, names[0])
                    elif order == "next":
                        print(waiting.pop() if waiting else "nobody")
                    else:
                        print(len(waiting))
                print("closed")
            """,
            "format": """
                waiting = []
                while (line := input()) != "close":
                    order, *names = line.split()
                    if order == "come":
                        waiting.append(names[0])
                    elif order == "rush":
                        waiting.insert(0, names[0])
                    elif order == "next":
                        print(waiting.pop(0) if waiting else "nobody")
                    else:
                        print(waiting)
                print("Closed.")
            """,
            "crash": """
                import sys
                waiting = []
                for line in sys.stdin:
                    order, *names = line.split()
                    if order == "come":
                        waiting.append(names[0])
                    elif order == "rush":
                        waiting.insert(0, names[0])
                    elif order == "next":
                        print(waiting.pop(0))
                    elif order == "size":
                        print(len(waiting))
                    else:
                        print("closed")
                        break
            """,
            "slow": """
                import sys
                waiting, line = [], ""
                while line != "close":
                    line = sys.stdin.readline().rstrip("\\n")
                    order, *names = line.split() or ["wait"]
                    if order in ("come", "rush"):
                        waiting.insert(0 if order == "rush" else len(waiting), names[0])
                    elif order == "next":
                        while not waiting:
                            line = sys.stdin.readline()
                            if line.startswith(("come", "rush")):
                                waiting.append(line.split()[1])
                        print(waiting.pop(0))
                    elif order == "size":
                        print(len(waiting))
                print("closed")
            """,
        },
        inputs=(
            "come Ann\ncome Bob\nnext\nsize\nclose\n",
            "close\n",
            "next\nclose\n",
            "come A\nrush B\nrush C\nnext\nnext\nnext\nnext\nsize\nclose\n",
            "size\ncome X\nsize\nclose\nnext\nsize\n",
            "rush R\ncome S\ncome T\nnext\nclose\n",
            "come 1\ncome 2\nrush 0\nsize\nnext\nnext\nclose\ncome 3\n",
            "come only\nnext\nsize\nclose\n",
        ),
    ),
    Problem(
        id="shared-ranks",
        statement="After a line with n (0 to 500) come n lines `name points` (one-word names, all different; "
        "whole points from 0 to 10^6). Print n lines `rank name`: rank 1 has the most points, equal points share a "
        "rank, and after k players of one rank the next rank is k further (1, 2, 2, 4); players of one rank stand "
        "in the order of the input.",
        reference="""
            import sys

            n, *lines = sys.stdin.read().strip().split("\\n")
            players = [line.split() for line in lines]
            points = sorted((int(p) for _, p in players), reverse=True)
            for name, own in sorted(players, key=lambda player: -int(player[1])):
                print(points.index(int(own)) + 1, name)
        """,
        right="""
            from itertools import groupby

            n = int(input())
            players = []
            for i in range(n):
                name, points = input().split()
                players.append((-int(points), i, name))
            players.sort()
            rank = 1
            for _, group in groupby(players, key=lambda player: player[0]):
                same = list(group)
                for player in same:
                    print(f"{rank} {player[2]}")
                rank += len(same)
        """,
        wrong={
            "edge": """
                n = int(input())
                players = [input().split() for _ in range(n)]
                players.sort(key=lambda player: -int(player[1]))
                rank, skipped, before = 0, 0, 0
                for name, points in players:
                    if int(points) != before:
                        rank, skipped = rank + skipped + 1, 0
                    else:
                        skipped += 1
                    before = int(points)
                    print(rank, name)
            """,
            "logic": """
                n = int(input())
                players = [input().split() for _ in range(n)]
                levels = sorted({int(points) for _, points in players}, reverse=True)
                for name, points in sorted(players, key=lambda player: -int(player[1])):
                    print(levels.index(int(points)) + 1, name)
            """,
            "format": """
                n = int(input())
                players = [input().split() for _ in range(n)]
                for name, own in sorted(players, key=lambda player: -int(player[1])):
                    print(f"{1 + sum(int(points) > int(own) for _, points in players)}. {name}")
            """,
            "crash": """
                n = int(input())
                players = [input().split() for _ in range(n)]
                players.sort(key=lambda player: -int(player[1]))
                rank, best = 1, int(players[0][1])
                for place, (name, points) in enumerate(players, 1):
                    if int(points) < best:
                        rank, best = place, int(points)
                    print(rank, name)
            """,
            "slow": """
                n = int(input())
                players = [input().split() for _ in range(n)]
                level, place = max((int(points) for _, points in players), default=0), 0
                while place != n:
                    same = [name for name, points in players if int(points) == level]
                    for name in same:
                        print(place + 1, name)
                    place += len(same)
                    level = max((int(points) for _, points in players if 0 < int(points) < level), default=-1)
            """,
        },
        inputs=(
            "4\nAnn 10\nBob 20\nCem 20\nDee 30\n",
            "0\n",
            "1\nSolo 0\n",
            "3\nx 5\ny 5\nz 5\n",
            "5\na 1\nb 2\nc 3\nd 4\ne 5\n",
            "6\nf 7\ng 9\nh 7\ni 9\nj 7\nk 1\n",
            "2\nlast 0\nfirst 1000000\n",
            "4\np 0\nq 3\nr 0\ns 3\n",
            "3\nm 12\nn 9\no 100\n",
        ),
    ),
]
