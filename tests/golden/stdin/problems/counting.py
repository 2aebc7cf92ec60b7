"""Counting and choosing step by step: stairs, a backpack, coins."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="broken-stairs",
        statement="A staircase has n steps (1 <= n <= 1000), of which b are broken and must not be trodden on. "
        "From the floor one climbs by one, two or three steps at a time and ends on step n. The first line holds n "
        "and b, the second the numbers of the broken steps, in any order (it is missing for b = 0). Print the "
        "number of ways to climb, modulo 1000000007.",
        reference="""
            import sys

            n, b, *broken = map(int, sys.stdin.read().split())
            ways = [1] + [0] * n
            for step in range(1, n + 1):
                if step not in broken:
                    ways[step] = sum(ways[max(0, step - 3) : step]) % 1000000007
            print(ways[n])
        """,
        right="""
            from functools import cache

            n, b = map(int, input().split())
            broken = set(map(int, input().split())) if b else set()

            @cache
            def ways(step):
                if step < 0 or step in broken:
                    return 0
                return 1 if step == 0 else ways(step - 1) + ways(step - 2) + ways(step - 3)

            for step in range(n):
                ways(step)
            print(ways(n) % (10**9 + 7))
        """,
        wrong={
            "edge": """
                import sys
                n, b, *broken = map(int, sys.stdin.read().split())
                ways = [1] + [0] * n
                for step in range(1, n + 1):
                    if step not in broken:
                        ways[step] = sum(ways[max(0, step - 3) : step])
                print(ways[n])
            """,
            "logic": """
                import sys
                n, b, *broken = map(int, sys.stdin.read().split())
                ways = [1] + [0] * n
                for step in range(1, n + 1):
                    if step not in broken:
                        ways[step] = sum(ways[max(0, step - 2) : step]) % 1000000007
                print(ways[n])
            """,
            "format": """
                import sys
                n, b, *broken = map(int, sys.stdin.read().split())
                ways = [1] + [0] * n
                for step in range(1, n + 1):
                    if step not in broken:
                        ways[step] = sum(ways[max(0, step - 3) : step]) % 1000000007
                print(*ways)
            """,
            "crash": """
                n, b = map(int, input().split())
                broken = set(map(int, input().split()))
                ways = [1] + [0] * n
                for step in range(1, n + 1):
                    if step not in broken:
                        ways[step] = sum(ways[max(0, step - 3) : step]) % 1000000007
                print(ways[n])
            """,
            "slow": """
                import sys
                n, b, *broken = map(int, sys.stdin.read().split())
                def ways(step):
                    if step < 0 or step in broken:
                        return 0
                    return 1 if step == 0 else ways(step - 1) + ways(step - 2) + ways(step - 3)
                print(ways(n) % 1000000007)
            """,
        },
        inputs=("5 1\n3\n", "1 0\n", "1 1\n1\n", "4 0\n", "9 3\n4 6 5\n", "10 2\n1 9\n", "400 1\n200\n", "6 2\n6 2\n"),
    ),
    Problem(
        id="heaviest-backpack",
        statement="Several cases stand in the input, each a line with the number of things n (1 to 30) and the "
        "capacity c (0 to 2000) and a line with their n weights (1 to 1000); the case `0 0` ends it and is not to "
        "be answered. Print for each case the greatest total weight of chosen things, each used at most once, that "
        "does not exceed c.",
        reference="""
            import sys

            while True:
                n, capacity = map(int, sys.stdin.readline().split())
                if n == capacity == 0:
                    sys.exit()
                totals = {0}
                for weight in map(int, sys.stdin.readline().split()):
                    totals |= {total + weight for total in totals if total + weight <= capacity}
                print(max(totals))
        """,
        right="""
            def cases():
                while True:
                    n, c = map(int, input().split())
                    if n == 0:
                        return
                    yield c, input().split()

            if __name__ == "__main__":
                for capacity, weights in cases():
                    reachable = 1
                    for weight in weights:
                        reachable |= reachable << int(weight)
                    print((reachable & ((1 << (capacity + 1)) - 1)).bit_length() - 1)
        """,
        wrong={
            "edge": """
                while True:
                    n, capacity = map(int, input().split())
                    if n == capacity == 0:
                        break
                    totals = {0}
                    for weight in map(int, input().split()):
                        totals |= {total + weight for total in totals if total + weight < capacity}
                    print(max(totals))
            """,
            "logic": """
                while True:
                    n, capacity = map(int, input().split())
                    if n == capacity == 0:
                        break
                    total = 0
                    for weight in sorted(map(int, input().split()), reverse=True):
                        if total + weight <= capacity:
                            total += weight
                    print(total)
            """,
            "format": """
                number = 0
                while True:
                    n, capacity = map(int, input().split())
                    if n == capacity == 0:
                        break
                    totals = {0}
                    for weight in map(int, input().split()):
                        totals |= {total + weight for total in totals if total + weight <= capacity}
                    number += 1
                    print(f"Case #{number}: {max(totals)}")
            """,
            "crash": """
                while True:
                    n, capacity = map(int, input().split())
                    if n == capacity == 0:
                        break
                    reached = [True] + [False] * capacity
                    for weight in map(int, input().split()):
                        reached[weight] |= False
                        for total in range(capacity, weight - 1, -1):
                            reached[total] |= reached[total - weight]
                    print(max(total for total in range(capacity + 1) if reached[total]))
            """,
            "slow": """
                while True:
                    n, capacity = map(int, input().split())
                    if n == capacity == 0:
                        break
                    weights = list(map(int, input().split()))
                    best = 0
                    for chosen in range(2**n):
                        total = sum(weight for i, weight in enumerate(weights) if chosen >> i & 1)
                        if best < total <= capacity:
                            best = total
                    print(best)
            """,
        },
        inputs=(
            "3 10\n6 5 6\n0 0\n",
            "1 0\n4\n0 0\n",
            "2 7\n8 9\n2 8\n8 9\n0 0\n",
            "4 15\n8 7 6 3\n0 0\n",
            "30 1999\n" + " ".join(str(60 + 2 * i) for i in range(30)) + "\n0 0\n",
            "0 0\n",
            "5 100\n20 20 20 20 10\n3 50\n30 21 26\n0 0\n",
            "6 13\n9 8 6 2 2 2\n0 0\n",
        ),
    ),
    Problem(
        id="fewest-coins",
        statement="The first line holds the different values of the coins of a country (1 to 10 whole numbers "
        "from 1 to 1000), every further line until the end of the input an amount from 0 to 3000. Print for each "
        "amount the least number of coins that pay it exactly, each value being available without limit, or `no` "
        "if it cannot be paid.",
        reference="""
            import sys

            coins = list(map(int, sys.stdin.readline().split()))
            fewest = [0]
            for amount in range(1, 3001):
                fewest.append(min((fewest[amount - c] + 1 for c in coins if c <= amount), default=9999))
            for line in sys.stdin:
                count = fewest[int(line)]
                print(count if count < 9999 else "no")
        """,
        right="""
            import sys

            def main():
                first, *amounts = sys.stdin.buffer.readlines()
                coins = [int(word) for word in first.split()]
                for amount in map(int, amounts):
                    paid, layer, count = {0}, {0}, 0
                    while layer and amount not in paid:
                        layer = {sum_ + coin for sum_ in layer for coin in coins if sum_ + coin <= amount} - paid
                        paid |= layer
                        count += 1
                    print(count if amount in paid else "no")

            main()
        """,
        wrong={
            "edge": """
                import sys
                coins = list(map(int, input().split()))
                for line in sys.stdin:
                    amount = int(line)
                    fewest = {0: 0}
                    for total in range(1, amount + 1):
                        ways = [fewest[total - c] for c in coins if total - c in fewest]
                        if ways:
                            fewest[total] = min(ways) + 1
                    print(fewest.get(amount) or "no")
            """,
            "logic": """
                import sys
                coins = sorted(map(int, input().split()), reverse=True)
                for line in sys.stdin:
                    amount, count = int(line), 0
                    for coin in coins:
                        count += amount // coin
                        amount %= coin
                    print("no" if amount else count)
            """,
            "format": """
                import sys
                coins = list(map(int, input().split()))
                fewest = [0]
                for amount in range(1, 3001):
                    fewest.append(min((fewest[amount - c] + 1 for c in coins if c <= amount), default=9999))
                for line in sys.stdin:
                    count = fewest[int(line)]
                    print(count if count < 9999 else -1, "coins")
            """,
            "crash": """
                import sys
                coins = list(map(int, input().split()))
                for line in sys.stdin:
                    fewest = {0: 0}
                    for total in range(1, int(line) + 1):
                        fewest[total] = min(fewest[total - c] + 1 for c in coins if c <= total)
                    print(fewest[int(line)] if fewest[int(line)] < 9999 else "no")
            """,
            "slow": """
                import sys
                coins = list(map(int, input().split()))
                for line in sys.stdin:
                    amount, layer, count = int(line), {0}, 0
                    while amount not in layer:
                        layer = {min(total + coin, 3001) for total in layer for coin in coins}
                        count += 1
                    print(count)
            """,
        },
        inputs=(
            "1 5 10\n18\n30\n",
            "1 3 4\n6\n",
            "2\n7\n8\n",
            "7 1\n0\n",
            "1\n1\n2\n3\n",
            "1 6 11 25\n24\n40\n99\n",
            "5 3\n4\n0\n11\n",
            "1 1000\n2999\n",
            "1 50 20\n60\n3000\n",
        ),
    ),
]
