"""Grids of characters: lakes, a maze."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="lakes-on-a-map",
        statement="The first line holds h and w (1 to 40), then come h lines of w characters, `~` for water "
        "and `#` for land. Squares of water that share a side belong to one lake. Print two numbers: how many "
        "lakes there are, and how many squares the largest of them has (0 if there is none).",
        reference="""
            import sys

            sys.setrecursionlimit(10000)
            h, w = map(int, sys.stdin.readline().split())
            grid = [list(sys.stdin.readline().strip()) for _ in range(h)]

            def drain(r, c):
                if not (0 <= r < h and 0 <= c < w) or grid[r][c] != "~":
                    return 0
                grid[r][c] = "."
                return 1 + drain(r + 1, c) + drain(r - 1, c) + drain(r, c + 1) + drain(r, c - 1)

            sizes = []
            for r in range(h):
                for c in range(w):
                    size = drain(r, c)
                    if size:
                        sizes.append(size)
            print(len(sizes), max(sizes, default=0))
        """,
        right="""
            h, w = map(int, input().split())
            water = set()
            for r in range(h):
                water |= {(r, c) for c, square in enumerate(input()) if square == "~"}
            lakes, largest = 0, 0
            while water:
                edge, size = [water.pop()], 0
                while edge:
                    r, c = edge.pop()
                    size += 1
                    near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & water
                    water -= near
                    edge += near
                lakes, largest = lakes + 1, max(largest, size)
            print(lakes, largest)
        """,
        wrong={
            "edge": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                water = {(r, c) for r in range(h) for c in range(w) if rows[r][c] == "~"}
                lakes, largest = 0, 1
                while water:
                    edge, size = [water.pop()], 0
                    while edge:
                        r, c = edge.pop()
                        size += 1
                        near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & water
                        water -= near
                        edge += near
                    lakes, largest = lakes + 1, max(largest, size)
                print(lakes, largest)
            """,
            "logic": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                water = {(r, c) for r in range(h) for c in range(w) if rows[r][c] == "~"}
                lakes, largest = 0, 0
                while water:
                    edge, size = [water.pop()], 0
                    while edge:
                        r, c = edge.pop()
                        size += 1
                        near = {(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & water
                        water -= near
                        edge += near
                    lakes, largest = lakes + 1, max(largest, size)
                print(lakes, largest)
            """,
            "format": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                water = {(r, c) for r in range(h) for c in range(w) if rows[r][c] == "~"}
                sizes = []
                while water:
                    edge, size = [water.pop()], 0
                    while edge:
                        r, c = edge.pop()
                        size += 1
                        near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & water
                        water -= near
                        edge += near
                    sizes.append(size)
                print((len(sizes), max(sizes, default=0)))
            """,
            "crash": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                water = {(r, c) for r in range(h) for c in range(w) if rows[r][c] == "~"}
                sizes = []
                while water:
                    edge, size = [water.pop()], 0
                    while edge:
                        r, c = edge.pop()
                        size += 1
                        near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & water
                        water -= near
                        edge += near
                    sizes.append(size)
                print(len(sizes), max(sizes))
            """,
            "slow": """
                h, w = map(int, input().split())
                rows = [input() for _ in range(h)]
                squares = [(r, c) for r in range(h) for c in range(w)]
                while rows[squares[0][0]][squares[0][1]] == "~":  # begin ashore
                    squares = squares[1:] + squares[:1]
                water = [(r, c) for r, c in squares if rows[r][c] == "~"]
                sizes = []
                while water:
                    lake = [water.pop()]
                    for r, c in lake:
                        for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                            if near in water:
                                water.remove(near)
                                lake.append(near)
                    sizes.append(len(lake))
                print(len(sizes), max(sizes, default=0))
            """,
        },
        inputs=(
            "3 4\n~##~\n~~#~\n###~\n",
            "1 1\n#\n",
            "2 2\n~#\n#~\n",
            "5 5\n~~~~~\n~###~\n~#~#~\n~###~\n~~~~~\n",
            "3 3\n~~~\n~~~\n~~~\n",
            "2 6\n######\n######\n",
            "1 7\n~#~~#~#\n",
            "4 1\n~\n~\n#\n~\n",
        ),
    ),
    Problem(
        id="maze-steps",
        statement="A maze is given as lines of equal length (up to 30 lines of up to 30 characters) until the "
        "end of the input: `S` start, `G` goal, `.` free, `#` wall. A step leads to a square that shares a side. "
        "Print the least number of steps from S to G, or -1 if G cannot be reached.",
        reference="""
            import sys
            from collections import deque

            maze = [line.strip() for line in sys.stdin]
            spots = {(r, c): square for r, row in enumerate(maze) for c, square in enumerate(row)}
            start = next(spot for spot, square in spots.items() if square == "S")
            steps, queue = {start: 0}, deque([start])
            while queue:
                r, c = queue.popleft()
                if spots[r, c] == "G":
                    print(steps[r, c])
                    sys.exit(0)
                for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                    if spots.get(near, "#") != "#" and near not in steps:
                        steps[near] = steps[r, c] + 1
                        queue.append(near)
            print(-1)
        """,
        right="""
            with open(0) as stream:
                rows = stream.read().split()
            width = len(rows[0]) + 1
            maze = "#" * width + "#".join(rows) + "#" * width
            now, seen, count = {maze.index("S")}, set(), 0
            goal = maze.index("G")
            while now and goal not in now:
                seen |= now
                now = {p + d for p in now for d in (1, -1, width, -width) if maze[p + d] != "#"} - seen
                count += 1
            print(count if now else -1)
        """,
        wrong={
            "edge": """
                import sys
                maze = [line.strip() for line in sys.stdin]
                free = {(r, c): square for r, row in enumerate(maze) for c, square in enumerate(row) if square != "#"}
                layer = seen = {spot for spot in free if free[spot] == "S"}
                count = 0
                while layer and all(free[spot] != "G" for spot in layer):
                    layer = {(r + i, c + j) for r, c in layer for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))}
                    layer = (layer & set(free)) - seen
                    seen = seen | layer
                    count += 1
                print(count)
            """,
            "logic": """
                import sys
                maze = [line.strip() for line in sys.stdin]
                spots = {square: (r, c) for r, row in enumerate(maze) for c, square in enumerate(row)}
                (r, c), (s, d) = spots["S"], spots["G"]
                print(abs(r - s) + abs(c - d))
            """,
            "format": """
                import sys
                maze = [line.strip() for line in sys.stdin]
                free = {(r, c): square for r, row in enumerate(maze) for c, square in enumerate(row) if square != "#"}
                layer = seen = {spot for spot in free if free[spot] == "S"}
                count = 0
                while layer and all(free[spot] != "G" for spot in layer):
                    layer = {(r + i, c + j) for r, c in layer for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))}
                    layer = (layer & set(free)) - seen
                    seen = seen | layer
                    count += 1
                print(f"{count} steps" if layer else "unreachable")
            """,
            "crash": """
                import sys
                maze = [line.strip() for line in sys.stdin]
                spots = {(r, c): square for r, row in enumerate(maze) for c, square in enumerate(row)}
                queue = [(0, spot) for spot in spots if spots[spot] == "S"]
                seen = {queue[0][1]}
                while True:
                    steps, (r, c) = queue.pop(0)
                    if spots[r, c] == "G":
                        break
                    for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                        if spots.get(near, "#") != "#" and near not in seen:
                            seen.add(near)
                            queue.append((steps + 1, near))
                print(steps)
            """,
            "slow": """
                import sys
                maze = [line.strip() for line in sys.stdin]
                free = {(r, c): square for r, row in enumerate(maze) for c, square in enumerate(row) if square != "#"}
                reached = {spot for spot in free if free[spot] == "S"}
                goal = {spot for spot in free if free[spot] == "G"}
                count = 0
                while not goal <= reached:
                    near = {(r + i, c + j) for r, c in reached for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))}
                    reached |= near & set(free)
                    count += 1
                print(count)
            """,
        },
        inputs=(
            "S.G\n",
            "SG\n",
            "S#G\n",
            "S..\n##.\nG..\n",
            "#####\n#S.##\n#.###\n#.#G#\n#####\n",
            ".......\n.#####.\n.#S..#.\n.###.#.\n.....#G\n",
            "G\n.\n.\nS\n",
            "..S..\n.###.\n..G..\n",
        ),
    ),
]
