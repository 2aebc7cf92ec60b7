"""Whole numbers: digits, factorials, multiples."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="digit-spread",
        statement="Every line until the end of the input holds one integer from -10^18 to 10^18. For each of "
        "them print a line with the difference between its largest and its smallest decimal digit; a minus sign is "
        "no digit.",
        reference="""
            import sys

            for line in sys.stdin:
                digits = line.strip().lstrip("-")
                print(int(max(digits)) - int(min(digits)))
        """,
        right=r"""
            import sys

            def spread(n):
                seen = set()
                n = abs(n)
                while True:
                    n, digit = divmod(n, 10)
                    seen.add(digit)
                    if n == 0:
                        return max(seen) - min(seen)

            sys.stdout.write("\n".join(str(spread(int(word))) for word in sys.stdin.read().split()))
        """,
        wrong={
            "edge": """
                import sys
                for word in sys.stdin.read().split():
                    n, seen = int(word), []
                    while n > 0:
                        seen.append(n % 10)
                        n //= 10
                    print(max(seen, default=0) - min(seen, default=0))
            """,
            "logic": """
                import sys
                for line in sys.stdin:
                    digits = line.strip().lstrip("-")
                    print(abs(int(digits[0]) - int(digits[-1])))
            """,
            "format": """
                import sys
                for line in sys.stdin:
                    digits = line.strip().lstrip("-")
                    print(f"{digits}: {int(max(digits)) - int(min(digits))}")
            """,
            "crash": """
                import sys
                for line in sys.stdin:
                    digits = [int(c) for c in line.strip()]
                    print(max(digits) - min(digits))
            """,
            "slow": """
                import sys
                for line in sys.stdin:
                    n = int(line)
                    low = high = n % 10
                    while n != 0:
                        low, high = min(low, n % 10), max(high, n % 10)
                        n //= 10
                    print(high - low)
            """,
        },
        inputs=(
            "907\n",
            "5\n",
            "0\n10\n",
            "-384\n",
            "1000000000000000000\n999\n",
            "123456789\n",
            "77\n77\n8\n",
            "-1000000000000000000\n-11\n",
        ),
    ),
    Problem(
        id="factorial-zeros",
        statement="The first number is t (1 to 20), then come t pairs n b with 0 <= n <= 10^6 and 2 <= b <= "
        "1000. For each pair print on a line of its own with how many zeros n! ends when it is written in base b.",
        reference="""
            from collections import Counter

            def factors(b):
                found = Counter()
                for p in range(2, b + 1):
                    while b % p == 0:
                        found[p] += 1
                        b //= p
                return found

            def digit_sum(n, p):
                return n % p + digit_sum(n // p, p) if n else 0

            lines = open(0).read().splitlines()
            for line in lines[1:]:
                n, b = map(int, line.split())
                print(min((n - digit_sum(n, p)) // (p - 1) // e for p, e in factors(b).items()))
        """,
        right="""
            import sys

            def zeros(n, b):
                best, p = None, 2
                while b > 1:
                    power = 0
                    while b % p == 0:
                        b //= p
                        power += 1
                    if power:
                        count, m = 0, n
                        while m:
                            m //= p
                            count += m
                        best = count // power if best is None else min(best, count // power)
                    p += 1
                return best

            numbers = list(map(int, sys.stdin.read().split()))
            for i in range(numbers[0]):
                print(zeros(numbers[2 * i + 1], numbers[2 * i + 2]))
        """,
        wrong={
            "edge": """
                def count(n, p):
                    return n // p + count(n // p, p) if n else 0
                for _ in range(int(input())):
                    n, b = map(int, input().split())
                    primes = [p for p in range(2, b + 1) if b % p == 0 and all(p % q for q in range(2, p))]
                    print(min(count(n, p) for p in primes))
            """,
            "logic": """
                for _ in range(int(input())):
                    n, b = map(int, input().split())
                    fives = 0
                    while n:
                        n //= 5
                        fives += n
                    print(fives)
            """,
            "format": """
                def count(n, p):
                    return n // p + count(n // p, p) if n else 0
                found = []
                for _ in range(int(input())):
                    n, b = map(int, input().split())
                    powers, p = {}, 2
                    while b > 1:
                        while b % p == 0:
                            powers[p] = powers.get(p, 0) + 1
                            b //= p
                        p += 1
                    found.append(min(count(n, p) // e for p, e in powers.items()))
                print(found)
            """,
            "crash": """
                def factorial(n):
                    return 1 if n == 0 else n * factorial(n - 1)
                for _ in range(int(input())):
                    n, b = map(int, input().split())
                    f, zeros = factorial(n), 0
                    while f % b == 0:
                        f //= b
                        zeros += 1
                    print(zeros)
            """,
            "slow": """
                for _ in range(int(input())):
                    n, b = map(int, input().split())
                    product, zeros = 1, 0
                    for i in range(2, n + 1):
                        product *= i
                    while product % b == 0:
                        product //= b
                        zeros += 1
                    print(zeros)
            """,
        },
        inputs=(
            "3\n10 10\n25 10\n4 10\n",
            "1\n0 2\n",
            "2\n5 6\n100 7\n",
            "1\n1000000 10\n",
            "2\n16 16\n9 9\n",
            "1\n1996 997\n",
            "1\n200 30\n",
            "1\n1 1000\n",
        ),
    ),
    Problem(
        id="nearest-multiple",
        statement="The first line holds t (1 to 50), each of the next t lines integers n and m, |n| <= 10^15 "
        "and 1 <= m <= 1000. For each line print the multiple of m that is nearest to n; of two that are equally "
        "near, print the larger one.",
        reference="""
            import sys

            def main():
                data = iter(sys.stdin.buffer.read().split())
                for _ in range(int(next(data))):
                    n, m = int(next(data)), int(next(data))
                    below = n - n % m
                    print(below if n - below < below + m - n else below + m)

            if __name__ == "__main__":
                main()
        """,
        right="""
            t = int(input())
            for _ in range(t):
                n, m = map(int, input().split())
                print((2 * n + m) // (2 * m) * m)
        """,
        wrong={
            "edge": """
                for _ in range(int(input())):
                    n, m = map(int, input().split())
                    below = n - n % m
                    print(below if n - below <= below + m - n else below + m)
            """,
            "logic": """
                for _ in range(int(input())):
                    n, m = map(int, input().split())
                    print(n // m * m)
            """,
            "format": """
                for case in range(1, int(input()) + 1):
                    n, m = map(int, input().split())
                    print(f"Case #{case}: {(2 * n + m) // (2 * m) * m}")
            """,
            "crash": """
                for _ in range(int(input())):
                    n, m = map(int, input().split())
                    below = next(v for v in range(n, n - m, -1) if v % m == 0)
                    above = next(v for v in range(n, n + m // 2 + 1) if v % m == 0)
                    print(above if above - n <= n - below else below)
            """,
            "slow": """
                for _ in range(int(input())):
                    n, m = map(int, input().split())
                    v = 0
                    while abs(v + m - n) <= abs(v - n):
                        v += m
                    while abs(v - m - n) < abs(v - n):
                        v -= m
                    print(v)
            """,
        },
        inputs=(
            "3\n7 5\n8 5\n-7 5\n",
            "1\n0 9\n",
            "1\n5 10\n",
            "2\n-5 10\n-15 10\n",
            "1\n1000000000000000 7\n",
            "1\n42 1\n",
            "2\n13 4\n-13 4\n",
            "1\n-999 1000\n",
        ),
    ),
]
