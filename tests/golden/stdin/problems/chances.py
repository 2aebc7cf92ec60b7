"""Real numbers that follow from counting: a spread, chances, an average speed."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="spread-of-readings",
        statement="Each line until the end of the input holds the readings of one day, one or more decimal "
        "numbers with absolute values up to 10^6. Print for each day the mean and the standard deviation (divide "
        "by the number of readings, not by one less), with errors of at most 10^-6, absolute or relative.",
        checker="floats",
        reference="""
            import statistics

            for line in open(0):
                values = [float(word) for word in line.split()]
                print(f"{statistics.fmean(values):.8f}", f"{statistics.pstdev(values):.7e}")
        """,
        right="""
            import sys

            for line in sys.stdin:
                values = list(map(float, line.split()))
                mean = sum(values) / len(values)
                print(mean, (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5)
        """,
        wrong={
            "edge": """
                import statistics, sys
                for line in sys.stdin:
                    values = list(map(float, line.split()))
                    if len(values) == 1:
                        print(values[0], values[0])
                    else:
                        print(statistics.fmean(values), statistics.pstdev(values))
            """,
            "logic": """
                import sys
                for line in sys.stdin:
                    values = list(map(float, line.split()))
                    mean = sum(values) / len(values)
                    print(mean, (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5)
            """,
            "format": """
                import sys
                for line in sys.stdin:
                    values = list(map(float, line.split()))
                    mean = sum(values) / len(values)
                    print(f"{mean:.2f} {(sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5:.2f}")
            """,
            "crash": """
                import statistics, sys
                for line in sys.stdin:
                    values = list(map(float, line.split()))
                    n = len(values)
                    print(sum(values) / n, statistics.stdev(values) * ((n - 1) / n) ** 0.5)
            """,
            "slow": """
                import sys
                def root(square):
                    guess = max(square, 1.0)
                    while abs(guess * guess - square) > 1e-12:
                        guess = (guess + square / guess) / 2
                    return guess
                for line in sys.stdin:
                    values = list(map(float, line.split()))
                    mean = sum(values) / len(values)
                    print(mean, root(sum((value - mean) ** 2 for value in values) / len(values)))
            """,
        },
        inputs=(
            "1 2 3 4\n",
            "5\n",
            "2.5 2.5 2.5\n0.125 -0.125\n",
            "-3 -1\n10 20 30\n",
            "1000000 -999999 12345.678\n",
            "0 0 0 0 1\n",
            "0.001 0.002 0.004\n-7.125\n",
            "3 4\n4 3\n3.5 3.5 4 3\n",
        ),
    ),
    Problem(
        id="dice-chance",
        statement="The first line holds t (1 to 20). Each case is a line with the number of dice d (1 to 12), "
        "the wanted total s (0 to 200) and after these the numbers of faces of the d dice (2 to 20; a die with f "
        "faces shows 1 to f, each equally likely). Print for each case the probability that the dice together show "
        "at least s, with an error of at most 10^-6.",
        checker="floats",
        reference="""
            import sys
            from fractions import Fraction
            from math import prod

            def main():
                numbers = iter(sys.stdin.read().split())
                for _ in range(int(next(numbers))):
                    d, s = int(next(numbers)), int(next(numbers))
                    faces = [int(next(numbers)) for _ in range(d)]
                    ways = [1]
                    for f in faces:
                        longer = [0] * (len(ways) + f)
                        for total, count in enumerate(ways):
                            for shown in range(1, f + 1):
                                longer[total + shown] += count
                        ways = longer
                    print("%.10f" % Fraction(sum(ways[s:]), prod(faces)))

            if __name__ == "__main__":
                main()
        """,
        right="""
            for _ in range(int(input())):
                d, s, *faces = map(int, input().split())
                chances = {0: 1.0}
                for f in faces:
                    following = {}
                    for total, chance in chances.items():
                        for shown in range(1, f + 1):
                            following[total + shown] = following.get(total + shown, 0.0) + chance / f
                    chances = following
                print(sum(chance for total, chance in chances.items() if total >= s))
        """,
        wrong={
            "edge": """
                for _ in range(int(input())):
                    d, s, *faces = map(int, input().split())
                    ways = {0: 1}
                    for f in faces:
                        following = {}
                        for total, count in ways.items():
                            for shown in range(1, f + 1):
                                following[total + shown] = following.get(total + shown, 0) + count
                        ways = following
                    print(sum(ways.get(total, 0) for total in range(s, 101)) / sum(ways.values()))
            """,
            "logic": """
                for _ in range(int(input())):
                    d, s, *faces = map(int, input().split())
                    chances = {0: 1.0}
                    for f in faces:
                        following = {}
                        for total, chance in chances.items():
                            for shown in range(1, f + 1):
                                following[total + shown] = following.get(total + shown, 0.0) + chance / f
                        chances = following
                    print(chances.get(s, 0.0))
            """,
            "format": """
                for _ in range(int(input())):
                    d, s, *faces = map(int, input().split())
                    chances = {0: 1.0}
                    for f in faces:
                        following = {}
                        for total, chance in chances.items():
                            for shown in range(1, f + 1):
                                following[total + shown] = following.get(total + shown, 0.0) + chance / f
                        chances = following
                    print(f"{sum(chance for total, chance in chances.items() if total >= s):.4%}")
            """,
            "crash": """
                for _ in range(int(input())):
                    d, s, *faces = map(int, input().split())
                    ways = [1]
                    for f in faces:
                        longer = [0] * (len(ways) + f)
                        for total, count in enumerate(ways):
                            for shown in range(1, f + 1):
                                longer[total + shown] += count
                        ways = longer
                    at_least = ways[:]
                    for total in range(len(ways) - 2, -1, -1):
                        at_least[total] += at_least[total + 1]
                    print(at_least[s] / at_least[0])
            """,
            "slow": """
                from itertools import product
                for _ in range(int(input())):
                    d, s, *faces = map(int, input().split())
                    good = count = 0
                    for shown in product(*(range(1, f + 1) for f in faces)):
                        count += 1
                        good += sum(shown) >= s
                    print(good / count)
            """,
        },
        inputs=(
            "2\n2 7 6 6\n1 6 6\n",
            "1\n1 0 2\n",
            "1\n3 19 6 6 6\n",
            "1\n12 130 20 20 20 20 20 20 20 20 20 20 20 20\n",
            "3\n2 2 4 8\n2 3 4 8\n2 12 4 8\n",
            "1\n4 100 2 3 5 7\n",
            "1\n5 15 4 6 8 10 12\n",
            "2\n1 1 20\n1 20 20\n",
        ),
    ),
    Problem(
        id="speed-of-the-trip",
        statement="A trip consists of legs, one a line until the end of the input: either `D KM KMH` (so many "
        "kilometres at this speed) or `T MIN KMH` (so many minutes at this speed); numbers are decimal, from 0 to "
        "1000, speeds above 0 unless the leg is a stop `T MIN 0`. Print the average speed of the whole trip in "
        "km/h, or 0 for a trip that takes no time, with an error of at most 10^-4.",
        checker="floats:1e-4",
        reference="""
            import sys

            way = hours = 0.0
            for line in sys.stdin:
                kind, amount, speed = line.split()
                amount, speed = float(amount), float(speed)
                if kind == "D":
                    way += amount
                    hours += amount / speed
                else:
                    way += amount / 60 * speed
                    hours += amount / 60
            print(way / hours if hours else 0)
        """,
        right="""
            from fractions import Fraction

            with open(0, encoding="utf-8") as trip:
                words = trip.read().split()
            way = minutes = Fraction(0)
            for kind, amount, speed in zip(*[iter(words)] * 3):
                amount, speed = Fraction(amount), Fraction(speed)
                took = amount if kind == "T" else 60 * amount / speed
                minutes += took
                way += took * speed
            print(f"{float(way / minutes):.5f}" if minutes else "0.00000")
        """,
        wrong={
            "edge": """
                import sys
                way = hours = 0.0
                for line in sys.stdin:
                    kind, amount, speed = line.split()
                    amount, speed = float(amount), float(speed)
                    if speed == 0:
                        continue
                    way += amount if kind == "D" else amount / 60 * speed
                    hours += amount / speed if kind == "D" else amount / 60
                print(way / hours if hours else 0)
            """,
            "logic": """
                import sys
                speeds = [float(line.split()[2]) for line in sys.stdin if float(line.split()[1]) > 0]
                print(sum(speeds) / len(speeds) if speeds else 0)
            """,
            "format": """
                import sys
                way = hours = 0.0
                for line in sys.stdin:
                    kind, amount, speed = line.split()
                    amount, speed = float(amount), float(speed)
                    way += amount if kind == "D" else amount / 60 * speed
                    hours += amount / speed if kind == "D" else amount / 60
                print(f"{way / hours if hours else 0:.5f}km/h")
            """,
            "crash": """
                import sys
                way = hours = 0.0
                for line in sys.stdin:
                    kind, amount, speed = line.split()
                    amount, speed = float(amount), float(speed)
                    way += amount if kind == "D" else amount / 60 * speed
                    hours += amount / speed if kind == "D" else amount / 60
                print(way / hours)
            """,
            "slow": """
                import sys
                way = hours = 0.0
                for line in sys.stdin:
                    kind, amount, speed = line.split()
                    left, speed = float(amount), float(speed)
                    if kind == "T":
                        way, hours = way + left / 60 * speed, hours + left / 60
                        continue
                    while left != 0:
                        step = min(left, 50.0) if left >= 0.5 else 0.0
                        left -= step
                        way, hours = way + step, hours + step / speed
                print(way / hours if hours else 0)
            """,
        },
        inputs=(
            "D 100 50\nD 100 100\n",
            "T 30 80\n",
            "T 20 60\nT 10 0\nD 15 90\n",
            "T 0 50\n",
            "D 0 70\nT 0 0\n",
            "D 0.25 30\nD 1.5 4.5\n",
            "T 1.5 999.5\nD 12.75 61.3\nT 7 33.25\n",
            "D 1000 1\nT 1000 1000\n",
        ),
    ),
]
