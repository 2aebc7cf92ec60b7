"""Several right outputs, all of which the reference prints: coins, letters."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="paying-exactly",
        statement="A purse holds n coins (1 to 10) of given values (1 to 100). The first line holds n and the "
        "price p (1 to 500), the second the values. Print the positions (from 1, in ascending order, separated by "
        "spaces) of coins that together have exactly the value p; any such choice is right. If there is none, "
        "print 0.",
        checker="accepted",
        reference="""
            n, price = map(int, input().split())
            values = list(map(int, input().split()))
            first = True
            for chosen in range(1, 2**n):
                places = [i for i in range(n) if chosen >> i & 1]
                if sum(values[i] for i in places) == price:
                    if not first:
                        print("---")
                    print(*(i + 1 for i in places))
                    first = False
            if first:
                print(0)
        """,
        right="""
            import sys

            n, price, *values = map(int, sys.stdin.read().split())
            ways = {0: ()}
            for place in range(n, 0, -1):
                for total, places in list(ways.items()):
                    ways.setdefault(total + values[place - 1], (place, *places))
            print(" ".join(map(str, ways.get(price, [0]))))
        """,
        wrong={
            "edge": """
                n, price = map(int, input().split())
                values = list(map(int, input().split()))
                def choose(i, left):
                    if left == 0:
                        return []
                    if i == n or left < 0:
                        return None
                    for rest, head in ((choose(i + 1, left - values[i]), [i + 1]), (choose(i + 1, left), [])):
                        if rest is not None:
                            return head + rest
                    return None
                print(*(choose(0, price) or []))
            """,
            "logic": """
                n, price = map(int, input().split())
                values = list(map(int, input().split()))
                places = []
                for i in sorted(range(n), key=lambda i: -values[i]):
                    if values[i] <= price:
                        price -= values[i]
                        places.append(i + 1)
                print(*(sorted(places) if price == 0 else [0]))
            """,
            "format": """
                n, price = map(int, input().split())
                values = list(map(int, input().split()))
                for chosen in range(1, 2**n):
                    places = [i for i in range(n) if chosen >> i & 1]
                    if sum(values[i] for i in places) == price:
                        print(*(values[i] for i in places), sep="+")
                        break
                else:
                    print(0)
            """,
            "crash": """
                from itertools import combinations
                n, price = map(int, input().split())
                values = list(map(int, input().split()))
                found = None
                for size in range(1, n + 1):
                    for places in combinations(range(n), size):
                        if sum(values[i] for i in places) == price:
                            found = places
                print(*(i + 1 for i in found))
            """,
            "slow": """
                import random
                n, price = map(int, input().split())
                values = list(map(int, input().split()))
                places = []
                while sum(values[i] for i in places) != price:
                    places = [i for i in range(n) if random.random() < 0.5]
                print(*(i + 1 for i in places))
            """,
        },
        inputs=(
            "5 10\n5 5 2 3 8\n",
            "1 7\n7\n",
            "1 7\n8\n",
            "4 4\n1 1 1 1\n",
            "3 6\n4 3 3\n",
            "6 100\n99 98 1 2 50 50\n",
            "3 5\n2 4 6\n",
            "4 60\n10 20 30 10\n",
            "8 12\n9 7 5 4 3 6 2 8\n",
        ),
    ),
    Problem(
        id="letters-both-ways",
        statement="The input is a line with a word of 1 to 9 capital letters. Arrange all of its letters to a "
        "word that reads the same forward and backward and print it; if there are several, any of them. Print `-` "
        "if there is none.",
        checker="accepted",
        reference="""
            import sys
            from itertools import permutations

            word = sys.stdin.readline().strip()
            odd = [c for c in sorted(set(word)) if word.count(c) % 2]
            pairs = "".join(c * (word.count(c) // 2) for c in sorted(set(word)))
            if len(odd) > 1:
                print("-")
            else:
                halves = sorted({"".join(half) for half in permutations(pairs)})
                print("\\n---\\n".join(half + "".join(odd) + half[::-1] for half in halves))
        """,
        right="""
            letters, middle, half = list(input()), "", ""
            while letters:
                letter = letters.pop()
                if letter in letters:
                    letters.remove(letter)
                    half = letter + half
                elif middle:
                    print("-")
                    exit()
                else:
                    middle = letter
            print(half + middle + half[::-1])
        """,
        wrong={
            "edge": """
                from collections import Counter
                half, middle = "", ""
                for letter, count in Counter(input()).items():
                    half += letter * (count // 2)
                    if count % 2:
                        middle = letter
                print(half + middle + half[::-1])
            """,
            "logic": """
                word = input()
                print(word if word == word[::-1] else "-")
            """,
            "format": """
                from collections import Counter
                counts = Counter(input())
                half = [letter for letter in counts for _ in range(counts[letter] // 2)]
                middle = [letter for letter in counts if counts[letter] % 2]
                if len(middle) > 1:
                    print("-1")
                else:
                    print("".join(half + middle + half[::-1]).lower())
            """,
            "crash": """
                from collections import Counter
                counts = Counter(input())
                half = "".join(letter * (count // 2) for letter, count in counts.items())
                middles = [letter for letter, count in counts.items() if count % 2]
                if len(middles) > 1:
                    print("-")
                else:
                    print(half + middles[0] + half[::-1])
            """,
            "slow": """
                from collections import Counter
                counts = Counter(input())
                half = middle = ""
                while counts:
                    for letter in list(counts):
                        if counts[letter] >= 2:
                            half += letter
                            counts[letter] -= 2
                        elif counts[letter] == 1 and not middle:
                            middle = letter
                            del counts[letter]
                        elif counts[letter] == 0:
                            del counts[letter]
                print(half + middle + half[::-1])
            """,
        },
        inputs=("AABB\n", "A\n", "AB\n", "RACECAR\n", "NOON\n", "ABCABCD\n", "ZZZZZ\n", "AABBCDCDE\n", "KAYAKS\n"),
    ),
]
