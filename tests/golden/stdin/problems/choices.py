"""Several right outputs, all of which the reference prints: orders, teams."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="recipe-order",
        statement="A recipe has n steps (1 to 6) and m rules (0 to 15). The first line holds n and m, each of "
        "the next m lines `a b`: step a comes before step b. Print the numbers 1 to n in one line, in any order "
        "that keeps all the rules, or `impossible`.",
        checker="accepted",
        reference="""
            import sys
            from itertools import permutations

            n, m, *numbers = map(int, sys.stdin.read().split())
            rules = list(zip(numbers[::2], numbers[1::2]))
            found = []
            for order in permutations(range(1, n + 1)):
                if all(a != b and order.index(a) < order.index(b) for a, b in rules):
                    found.append(" ".join(map(str, order)))
            print("\\n---\\n".join(found or ["impossible"]))
        """,
        right="""
            n, m = map(int, input().split())
            before = {step: set() for step in range(1, n + 1)}
            for _ in range(m):
                a, b = map(int, input().split())
                before[b].add(a)
            order = []
            while before:
                ready = [step for step, others in before.items() if not others]
                if not ready:
                    print("impossible")
                    raise SystemExit
                step = ready[-1]
                order.append(step)
                del before[step]
                for others in before.values():
                    others.discard(step)
            print(*order)
        """,
        wrong={
            "edge": """
                n, m = map(int, input().split())
                rules = [tuple(map(int, input().split())) for _ in range(m)]
                order = []
                while len(order) < n:
                    for step in range(1, n + 1):
                        if step not in order and all(a in order for a, b in rules if b == step):
                            order.append(step)
                            break
                    else:
                        break
                print(*order)
            """,
            "logic": """
                n, m = map(int, input().split())
                after = {step: [] for step in range(1, n + 1)}
                for _ in range(m):
                    a, b = map(int, input().split())
                    after[a].append(b)
                order = []
                for step in range(1, n + 1):
                    for one in [step, *after[step]]:
                        if one not in order:
                            order.append(one)
                print(*order)
            """,
            "format": """
                from itertools import permutations
                n, m = map(int, input().split())
                rules = [tuple(map(int, input().split())) for _ in range(m)]
                for order in permutations(range(1, n + 1)):
                    if all(a != b and order.index(a) < order.index(b) for a, b in rules):
                        print(list(order))
                        break
                else:
                    print("impossible")
            """,
            "crash": """
                from itertools import permutations
                n, m = map(int, input().split())
                rules = [tuple(map(int, input().split())) for _ in range(m)]
                good = [
                    order for order in permutations(range(1, n + 1))
                    if all(a != b and order.index(a) < order.index(b) for a, b in rules)
                ]
                print(*good[len(good) // 2])
            """,
            "slow": """
                n, m = map(int, input().split())
                rules = [tuple(map(int, input().split())) for _ in range(m)]
                order = list(range(1, n + 1))
                is_right = False
                while not is_right:
                    is_right = True
                    for a, b in rules:
                        if order.index(a) >= order.index(b):
                            order.remove(b)
                            order.insert(order.index(a) + 1 if a in order else 0, b)
                            is_right = False
                print(*order)
            """,
        },
        inputs=(
            "4 3\n1 2\n2 3\n1 4\n",
            "1 0\n",
            "3 3\n1 2\n2 3\n3 1\n",
            "3 2\n3 2\n2 1\n",
            "6 5\n1 6\n6 2\n5 2\n3 5\n3 4\n",
            "2 1\n2 2\n",
            "5 0\n",
            "4 4\n4 1\n4 1\n3 1\n2 3\n",
        ),
    ),
    Problem(
        id="two-teams",
        statement="In a class of n children (2 to 12), m pairs of friends (1 to 40) do not want to be in the "
        "same team. The first line holds n and m, each of the next m lines two children a b, numbered from 1. "
        "Print a line of n letters `X` and `Y`, the team of each child, so that no such pair is in one team, or "
        "`none`. Any such line is right.",
        checker="accepted",
        reference="""
            import sys
            from itertools import product

            lines = sys.stdin.readlines()
            n, m = map(int, lines[0].split())
            pairs = [[int(word) - 1 for word in line.split()] for line in lines[1 : m + 1]]
            right = []
            for teams in product("XY", repeat=n):
                if all(teams[a] != teams[b] for a, b in pairs):
                    right.append("".join(teams))
            if not right:
                print("none")
                sys.exit()
            print(*right, sep="\\n---\\n")
        """,
        right="""
            import sys

            def main():
                data = list(map(int, sys.stdin.buffer.read().split()))
                n, m = data[:2]
                near = [[] for _ in range(n + 1)]
                for a, b in zip(data[2::2], data[3::2]):
                    near[a].append(b)
                    near[b].append(a)
                team = {}
                for child in range(n, 0, -1):
                    if child in team:
                        continue
                    team[child], stack = "Y", [child]
                    while stack:
                        a = stack.pop()
                        for b in near[a]:
                            if b not in team:
                                team[b] = "X" if team[a] == "Y" else "Y"
                                stack.append(b)
                            elif team[b] == team[a]:
                                return "none"
                return "".join(team[child] for child in range(1, n + 1))

            print(main())
        """,
        wrong={
            "edge": """
                n, m = map(int, input().split())
                pairs = [tuple(map(int, input().split())) for _ in range(m)]
                team = {1: "X"}
                for _ in range(n):
                    for a, b in pairs:
                        for one, other in ((a, b), (b, a)):
                            if one in team and other not in team:
                                team[other] = "XY"[team[one] == "X"]
                right = all(team.get(a, "X") != team.get(b, "Y") for a, b in pairs)
                print("".join(team.get(child, "X") for child in range(1, n + 1)) if right else "none")
            """,
            "logic": """
                n, m = map(int, input().split())
                team = {}
                for _ in range(m):
                    a, b = map(int, input().split())
                    team.setdefault(a, "X")
                    team.setdefault(b, "Y" if team[a] == "X" else "X")
                print("".join(team.get(child, "X") for child in range(1, n + 1)))
            """,
            "format": """
                from itertools import product
                n, m = map(int, input().split())
                pairs = [tuple(map(int, input().split())) for _ in range(m)]
                for teams in product("XY", repeat=n):
                    if all(teams[a - 1] != teams[b - 1] for a, b in pairs):
                        print(*teams)
                        break
                else:
                    print("NONE")
            """,
            "crash": """
                from itertools import product
                n, m = map(int, input().split())
                pairs = [tuple(map(int, input().split())) for _ in range(m)]
                fitting = (
                    "".join(teams) for teams in product("XY", repeat=n)
                    if all(teams[a - 1] != teams[b - 1] for a, b in pairs)
                )
                print(next(fitting))
            """,
            "slow": """
                n, m = map(int, input().split())
                pairs = [tuple(map(int, input().split())) for _ in range(m)]
                team = ["X"] * (n + 1)
                is_right = False
                while not is_right:
                    is_right = True
                    for a, b in pairs:
                        if team[a] == team[b]:
                            later = max(a, b)
                            team[later] = "Y" if team[later] == "X" else "X"
                            is_right = False
                print("".join(team[1:]))
            """,
        },
        inputs=(
            "4 3\n1 2\n2 3\n3 4\n",
            "2 1\n1 2\n",
            "3 3\n1 2\n2 3\n3 1\n",
            "5 2\n1 5\n2 4\n",
            "6 6\n1 2\n3 4\n5 6\n2 3\n4 5\n6 1\n",
            "8 7\n1 8\n1 7\n1 6\n1 5\n1 4\n1 3\n1 2\n",
            "7 5\n4 5\n5 6\n6 7\n7 3\n3 4\n",
            "6 4\n1 2\n1 2\n4 6\n2 5\n",
        ),
    ),
]
