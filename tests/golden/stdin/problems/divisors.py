"""Whole numbers: common multiples, divisors, a base with negative digits."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="lamp-flashes",
        statement="A row of k lamps (1 <= k <= 10) is switched on at time 0; lamp i flashes after every p_i "
        "seconds (1 <= p_i <= 10^6). The first line holds k and L (0 <= L <= 10^18), the second the k periods. "
        "Print in how many of the seconds 1 to L all lamps flash at once.",
        reference="""
            from math import lcm

            k, limit = map(int, input().split())
            periods = list(map(int, input().split()))
            print(limit // lcm(*periods))
        """,
        right="""
            import sys

            def gcd(a, b):
                while b:
                    a, b = b, a % b
                return a

            def main():
                _, limit, *periods = map(int, sys.stdin.read().split())
                together = 1
                for period in periods:
                    together = together // gcd(together, period) * period
                    if together > limit:
                        print(0)
                        sys.exit()
                print(limit // together)

            if __name__ == "__main__":
                main()
        """,
        wrong={
            "edge": """
                from math import lcm
                k, limit = map(int, input().split())
                print(int(limit / lcm(*map(int, input().split()))))
            """,
            "logic": """
                from math import prod
                k, limit = map(int, input().split())
                print(limit // prod(map(int, input().split())))
            """,
            "format": """
                from math import lcm
                k, limit = map(int, input().split())
                print(limit // lcm(*map(int, input().split())), "times")
            """,
            "crash": """
                from math import lcm
                k, limit = map(int, input().split())
                first, second, *others = map(int, input().split())
                together = lcm(first, second)
                for period in others:
                    together = lcm(together, period)
                print(limit // together)
            """,
            "slow": """
                k, limit = map(int, input().split())
                periods = list(map(int, input().split()))
                step = max(periods)
                count, second = 0, step
                while second <= limit:
                    count += all(second % period == 0 for period in periods)
                    second += step
                print(count)
            """,
        },
        inputs=(
            "2 100\n4 6\n",
            "1 10\n3\n",
            "3 0\n1 2 3\n",
            "3 1000000000000000000\n999983 1000000 999979\n",
            "1 999999999999999999\n1\n",
            "3 1000\n10 10 10\n",
            "4 5040\n2 3 4 5\n",
            "2 11\n3 4\n",
        ),
    ),
    Problem(
        id="divisor-verdicts",
        statement="Numbers from 1 to 50000 stand one a line; a line with 0 ends them, and whatever follows it "
        "is to be ignored. For each number print `poor` if its divisors other than itself add up to less than the "
        "number, `even` if they add up to exactly the number, and `rich` otherwise.",
        reference="""
            for line in iter(input, "0"):
                n = int(line)
                total = sum(d for d in range(1, n // 2 + 1) if n % d == 0)
                print("poor" if total < n else "even" if total == n else "rich")
        """,
        right="""
            import sys

            def sum_of_all_divisors(n):
                total, p = 1, 2
                while p * p <= n:
                    term = 1
                    while n % p == 0:
                        n //= p
                        term = term * p + 1
                    total *= term
                    p += 1
                return total * (n + 1) if n > 1 else total

            for word in sys.stdin.read().split():
                n = int(word)
                if n == 0:
                    break
                own = sum_of_all_divisors(n) - n
                print(("even", "rich", "poor")[(own > n) - (own < n)])
        """,
        wrong={
            "edge": """
                for line in iter(input, "0"):
                    n = int(line)
                    total = 1
                    for d in range(2, n):
                        if d * d > n:
                            break
                        if n % d == 0:
                            total += d if d * d == n else d + n // d
                    print("poor" if total < n else "even" if total == n else "rich")
            """,
            "logic": """
                for line in iter(input, "0"):
                    n = int(line)
                    total = sum(d for d in range(1, n + 1) if n % d == 0)
                    print("poor" if total < n else "even" if total == n else "rich")
            """,
            "format": """
                for line in iter(input, "0"):
                    n = int(line)
                    total = sum(d for d in range(1, n // 2 + 1) if n % d == 0)
                    print("Poor" if total < n else "Even" if total == n else "Rich")
            """,
            "crash": """
                from functools import reduce
                for line in iter(input, "0"):
                    n = int(line)
                    total = reduce(int.__add__, [d for d in range(2, n) if n % d == 0]) + 1
                    print("poor" if total < n else "even" if total == n else "rich")
            """,
            "slow": """
                def divisors(n):
                    total, rest = 1, n
                    while True:
                        p = 2
                        while rest % p:
                            p += 1
                        term = 1
                        while rest % p == 0:
                            rest //= p
                            term = term * p + 1
                        total *= term
                        if rest == 1:
                            return total
                for line in iter(input, "0"):
                    n = int(line)
                    own = divisors(n) - n
                    print("poor" if own < n else "even" if own == n else "rich")
            """,
        },
        inputs=(
            "6\n8\n12\n0\n",
            "1\n0\n",
            "28\n27\n0\n6\n28\n",
            "0\n",
            "49999\n50000\n0\n",
            "496\n495\n497\n8128\n0\n",
            "4\n9\n16\n25\n36\n0\n",
            "2\n3\n0\n0\n",
        ),
    ),
    Problem(
        id="plus-minus-base-three",
        statement="Write an integer n, |n| <= 10^15, in base 3 with the digits `+` (one), `0` and `-` (minus "
        "one), most significant digit first and without a leading 0; zero itself is `0`. The first line holds t <= "
        "20, each of the next t lines one n; print t lines.",
        reference="""
            import sys

            def written(n):
                digits = ""
                while n:
                    n, rest = divmod(n, 3)
                    if rest == 2:
                        n += 1
                    digits = "0+-"[rest] + digits
                return digits or "0"

            def main():
                lines = sys.stdin.readlines()
                for line in lines[1 : 1 + int(lines[0])]:
                    print(written(int(line)))

            main()
        """,
        right="""
            t = int(input())
            for _ in range(t):
                n = int(input())
                if n < 0:
                    swap = str.maketrans("+-", "-+")
                else:
                    swap = {}
                n, power = abs(n), 1
                while power < 2 * n:
                    power *= 3
                text = ""
                # What is left fits below half of the next power.
                while power:
                    digit = 1 if 2 * n > power else -1 if 2 * n < -power else 0
                    n -= digit * power
                    text += "-0+"[digit + 1]
                    power //= 3
                print((text.lstrip("0") or "0").translate(swap))
        """,
        wrong={
            "edge": """
                for _ in range(int(input())):
                    n, digits = int(input()), ""
                    while n:
                        n, rest = divmod(n, 3)
                        n += rest == 2
                        digits = "0+-"[rest] + digits
                    print(digits)
            """,
            "logic": """
                for _ in range(int(input())):
                    n, digits = int(input()), ""
                    while n:
                        n, rest = divmod(n, 3)
                        n += rest == 2
                        digits += "0+-"[rest]
                    print(digits or "0")
            """,
            "format": """
                for _ in range(int(input())):
                    n, digits = int(input()), ""
                    while n:
                        n, rest = divmod(n, 3)
                        n += rest == 2
                        digits = "0+-"[rest] + digits
                    print(*(digits or "0"))
            """,
            "crash": """
                from math import log
                for _ in range(int(input())):
                    n = int(input())
                    length = int(log(n, 3)) + 2 if n else 1
                    digits = ""
                    for _ in range(length):
                        n, rest = divmod(n, 3)
                        n += rest == 2
                        digits = "0+-"[rest] + digits
                    print(digits.lstrip("0") or "0")
            """,
            "slow": """
                from itertools import count, product
                def value(digits):
                    total = 0
                    for digit in digits:
                        total = 3 * total + "-0+".index(digit) - 1
                    return total
                def found(n):
                    for length in count(1):
                        for digits in product("+0-", repeat=length):
                            if value(digits) == n:
                                return "".join(digits)
                for _ in range(int(input())):
                    print(found(int(input())))
            """,
        },
        inputs=(
            "3\n1\n2\n3\n",
            "1\n0\n",
            "2\n-1\n-2\n",
            "4\n4\n5\n13\n14\n",
            "1\n1000000000000000\n",
            "2\n-40\n41\n",
            "1\n27\n",
            "3\n0\n8\n26\n",
        ),
    ),
]
