"""Graphs: connected towns, cheap ferries."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="joined-towns",
        statement="The first line holds n (1 to 1000), the number of towns 1 to n, and q (0 to 2000); then "
        "come q lines, in order of time: `road a b` opens a road between two towns, `ask a b` wants to know "
        "whether one can travel between them by now, `parts` how many connected parts there are. Print `yes` or "
        "`no`, or the number, a line for each question.",
        reference="""
            import sys

            def main():
                lines = sys.stdin.read().splitlines()
                n, q = map(int, lines[0].split())
                parent = list(range(n + 1))
                parts = n

                def root(a):
                    while parent[a] != a:
                        parent[a] = parent[parent[a]]
                        a = parent[a]
                    return a

                for line in lines[1 : q + 1]:
                    order, *towns = line.split()
                    if order == "parts":
                        print(parts)
                        continue
                    a, b = (root(int(town)) for town in towns)
                    if order == "ask":
                        print("yes" if a == b else "no")
                    elif a != b:
                        parent[a] = b
                        parts -= 1

            main()
        """,
        right="""
            import sys

            input = sys.stdin.readline
            n, q = map(int, input().split())
            part = {str(town): {str(town)} for town in range(1, n + 1)}
            for _ in range(q):
                order = input().split()
                if order[0] == "road":
                    small, large = sorted((part[order[1]], part[order[2]]), key=len)
                    if small is not large:
                        large |= small
                        for town in small:
                            part[town] = large
                elif order[0] == "ask":
                    print("yes" if order[2] in part[order[1]] else "no")
                else:
                    print(len(set(map(id, part.values()))))
        """,
        wrong={
            "edge": """
                n, q = map(int, input().split())
                part = list(range(n + 1))
                parts = n
                for _ in range(q):
                    order, *towns = input().split()
                    if order == "parts":
                        print(parts)
                        continue
                    a, b = (part[int(town)] for town in towns)
                    if order == "ask":
                        print("yes" if a == b else "no")
                    else:
                        part = [b if p == a else p for p in part]
                        parts -= 1
            """,
            "logic": """
                n, q = map(int, input().split())
                near = {town: {town} for town in range(1, n + 1)}
                for _ in range(q):
                    order, *towns = input().split()
                    if order == "parts":
                        print(len({frozenset(towns) for towns in near.values()}))
                        continue
                    a, b = map(int, towns)
                    if order == "ask":
                        print("yes" if b in near[a] else "no")
                    else:
                        near[a].add(b)
                        near[b].add(a)
            """,
            "format": """
                n, q = map(int, input().split())
                part = list(range(n + 1))
                for _ in range(q):
                    order, *towns = input().split()
                    if order == "parts":
                        print(len(set(part[1:])))
                        continue
                    a, b = (part[int(town)] for town in towns)
                    if order == "ask":
                        print(a == b)
                    else:
                        part = [b if p == a else p for p in part]
                print("done")
            """,
            "crash": """
                n, q = map(int, input().split())
                part = list(range(n + 1))
                for _ in range(q):
                    order, a, b = input().split()
                    a, b = part[int(a)], part[int(b)]
                    if order == "ask":
                        print("yes" if a == b else "no")
                    else:
                        part = [b if p == a else p for p in part]
            """,
            "slow": """
                n, q = map(int, input().split())
                parent, parts = list(range(n + 1)), n
                def root(a):
                    while parent[a] != a:
                        a = parent[a]
                    return a
                for _ in range(q):
                    order, *towns = input().split()
                    if order == "parts":
                        print(parts)
                        continue
                    a, b = map(int, towns)
                    if order == "ask":
                        print("yes" if root(a) == root(b) else "no")
                    else:
                        parts -= root(a) != root(b)
                        parent[root(a)] = b
            """,
        },
        inputs=(
            "4 5\nroad 1 2\nask 1 2\nask 2 3\nparts\nask 4 4\n",
            "1 1\nparts\n",
            "3 0\n",
            "3 5\nroad 1 2\nroad 2 3\nroad 3 1\nparts\nask 1 3\n",
            "5 6\nroad 1 2\nroad 3 4\nask 1 4\nroad 2 3\nask 1 4\nask 5 1\n",
            "2 3\nroad 2 2\nparts\nask 1 2\n",
            "300 300\n" + "".join(f"road {i} {i + 1}\n" for i in range(1, 299)) + "parts\nask 1 300\n",
            "6 4\nroad 6 1\nask 1 6\nroad 2 5\nask 5 6\n",
        ),
    ),
    Problem(
        id="cheapest-ferry",
        statement="Ferries run both ways between n islands, numbered from 0 (1 <= n <= 200). The first line "
        "holds n, m (0 to 1000), the start and the destination, each of the next m lines islands a and b and the "
        "fare (0 to 10^9) of a ferry between them; there may be several. Print the cheapest total fare, or `swim` "
        "if no ferries lead there.",
        reference="""
            import heapq
            import sys

            data = iter(map(int, sys.stdin.buffer.read().split()))
            n, m, start, goal = (next(data) for _ in range(4))
            ferries = [[] for _ in range(n)]
            for _ in range(m):
                a, b, fare = next(data), next(data), next(data)
                ferries[a].append((b, fare))
                ferries[b].append((a, fare))
            paid, heap = {}, [(0, start)]
            while heap:
                fare, island = heapq.heappop(heap)
                if island in paid:
                    continue
                paid[island] = fare
                for other, more in ferries[island]:
                    heapq.heappush(heap, (fare + more, other))
            print(paid.get(goal, "swim"))
        """,
        right="""
            n, m, start, goal = map(int, input().split())
            ferries = [tuple(map(int, input().split())) for _ in range(m)]
            unreached = float("inf")
            paid = [unreached] * n
            paid[start] = 0
            for _ in range(n):
                for a, b, fare in ferries:
                    paid[a] = min(paid[a], paid[b] + fare)
                    paid[b] = min(paid[b], paid[a] + fare)
            print(paid[goal] if paid[goal] != unreached else "swim")
        """,
        wrong={
            "edge": """
                n, m, start, goal = map(int, input().split())
                ferries = [tuple(map(int, input().split())) for _ in range(m)]
                paid = [10**9] * n
                paid[start] = 0
                for _ in range(n):
                    for a, b, fare in ferries:
                        paid[a] = min(paid[a], paid[b] + fare)
                        paid[b] = min(paid[b], paid[a] + fare)
                print(paid[goal] if paid[goal] < 10**9 else "swim")
            """,
            "logic": """
                n, m, start, goal = map(int, input().split())
                ferries = [tuple(map(int, input().split())) for _ in range(m)]
                paid = {start: 0}
                for _ in range(n):
                    for a, b, fare in ferries:
                        if a in paid:
                            paid[b] = min(paid.get(b, 10**15), paid[a] + fare)
                print(paid.get(goal, "swim"))
            """,
            "format": """
                n, m, start, goal = map(int, input().split())
                ferries = [tuple(map(int, input().split())) for _ in range(m)]
                paid = [float("inf")] * n
                paid[start] = 0
                for _ in range(n):
                    for a, b, fare in ferries:
                        paid[a] = min(paid[a], paid[b] + fare)
                        paid[b] = min(paid[b], paid[a] + fare)
                print(float(paid[goal]))
            """,
            "crash": """
                n, m, start, goal = map(int, input().split())
                fares = {island: {} for island in range(n)}
                for _ in range(m):
                    a, b, fare = map(int, input().split())
                    fares[a][b] = fares[b][a] = min(fare, fares[a].get(b, fare))
                paid, known = {start: 0}, set()
                while goal not in known:
                    island = min(paid.keys() - known, key=paid.get)
                    known.add(island)
                    for other, fare in fares[island].items():
                        paid[other] = min(paid.get(other, 10**15), paid[island] + fare)
                print(paid[goal])
            """,
            "slow": """
                n, m, start, goal = map(int, input().split())
                ferries = [tuple(map(int, input().split())) for _ in range(m)]
                paid = {start: 0}
                queue = [start]
                while queue:
                    island = queue.pop(0)
                    for a, b, fare in ferries:
                        for here, there in ((a, b), (b, a)):
                            if here == island and paid.get(there, 10**15) >= paid[here] + fare:
                                paid[there] = paid[here] + fare
                                if there not in queue:
                                    queue.append(there)
                print(paid.get(goal, "swim"))
            """,
        },
        inputs=(
            "4 4 0 3\n0 1 5\n1 3 5\n0 2 1\n2 3 20\n",
            "1 0 0 0\n",
            "2 0 0 1\n",
            "3 3 2 0\n0 1 7\n1 2 4\n1 2 3\n",
            "3 2 0 2\n0 1 1000000000\n1 2 1000000000\n",
            "4 3 0 3\n0 1 0\n1 2 0\n2 3 8\n",
            "5 4 4 1\n4 3 2\n3 2 2\n0 1 9\n2 0 1\n",
            "4 2 0 3\n0 1 3\n2 3 4\n",
            "50 49 49 0\n" + "".join(f"{i} {i + 1} {i + 1}\n" for i in range(49)),
        ),
    ),
]
