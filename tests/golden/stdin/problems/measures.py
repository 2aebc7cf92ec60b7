"""Real numbers of geometry: an area, a tank, a distance."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="garden-area",
        statement="The first line holds the number of corners n (3 to 100) of a garden, each of the next n "
        "lines the coordinates x y of a corner, decimal numbers with absolute values up to 10^4, in the order in "
        "which one passes them along the fence, which does not cross itself; either way round. Print its area and "
        "the length of the fence, each with an error of at most 10^-6.",
        checker="floats",
        reference="""
            from math import dist

            n = int(input())
            corners = [tuple(map(float, input().split())) for _ in range(n)]
            twice = fence = 0.0
            for i in range(n):
                (x, y), (u, v) = corners[i - 1], corners[i]
                twice += x * v - u * y
                fence += dist((x, y), (u, v))
            print(abs(twice) / 2, fence)
        """,
        right="""
            import sys

            def main():
                numbers = [float(word) for word in sys.stdin.read().split()[1:]]
                corners = [complex(x, y) for x, y in zip(numbers[::2], numbers[1::2])]
                sides = list(zip(corners, corners[1:] + corners[:1]))
                area = sum((a.conjugate() * b).imag for a, b in sides) / 2
                print("%.9f" % abs(area))
                print("%.9f" % sum(abs(a - b) for a, b in sides))

            if __name__ == "__main__":
                main()
        """,
        wrong={
            "edge": """
                from math import dist
                n = int(input())
                corners = [tuple(map(float, input().split())) for _ in range(n)]
                twice = fence = 0.0
                for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]):
                    twice += x * v - u * y
                    fence += dist((x, y), (u, v))
                print(twice / 2, fence)
            """,
            "logic": """
                from math import dist
                n = int(input())
                corners = [tuple(map(float, input().split())) for _ in range(n)]
                twice = fence = 0.0
                for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]):
                    twice += x * v - u * y
                    fence += abs(x - u) + abs(y - v)
                print(abs(twice), fence)
            """,
            "format": """
                from math import dist
                n = int(input())
                corners = [tuple(map(float, input().split())) for _ in range(n)]
                twice = fence = 0.0
                for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]):
                    twice += x * v - u * y
                    fence += dist((x, y), (u, v))
                print(f"{abs(twice) / 2:.6f} m2, {fence:.6f} m")
            """,
            "crash": """
                from math import dist
                n = int(input())
                corners = [tuple(map(int, input().split())) for _ in range(n)]
                twice = fence = 0
                for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]):
                    twice += x * v - u * y
                    fence += dist((x, y), (u, v))
                print(abs(twice) / 2, fence)
            """,
            "slow": """
                from math import dist
                def signed_area(corners):
                    return sum(x * v - u * y for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1])) / 2
                n = int(input())
                corners = [tuple(map(float, input().split())) for _ in range(n)]
                while signed_area(corners) < 0:
                    corners = corners[1:] + corners[:1]
                print(signed_area(corners), sum(dist(corners[i - 1], corners[i]) for i in range(n)))
            """,
        },
        inputs=(
            "4\n0 0\n4 0\n4 3\n0 3\n",
            "3\n0 0\n1 0\n0 1\n",
            "3\n0 0\n0 1\n1 0\n",
            "5\n0 0\n4 0\n4 4\n2 1.5\n0 4\n",
            "3\n-10000 -10000\n10000 -10000\n10000 10000\n",
            "6\n0.5 0.25\n2.5 0.25\n3 1.1\n2.5 2\n0.5 2\n0 1.1\n",
            "5\n0 0\n1 2\n3 3\n5 1\n2 -2\n",
            "4\n0 0\n2 1\n3 3\n1 2\n",
        ),
    ),
    Problem(
        id="water-tank",
        statement="A tank filled to height h holds a*h^3 + b*h litres. Each test case is one line `a b v` of "
        "decimal numbers (0 <= a, b <= 1000, a + b >= 0.001, 0 <= v <= 10^6), a line `0 0 0` ends the input. Print "
        "for each case the height to which v litres fill the tank, with an error of at most 10^-6, absolute or "
        "relative.",
        checker="floats",
        reference="""
            while True:
                a, b, v = map(float, input().split())
                if a == b == 0:
                    break
                low, high = 0.0, 1e9 + 1
                for _ in range(120):
                    middle = (low + high) / 2
                    if a * middle**3 + b * middle < v:
                        low = middle
                    else:
                        high = middle
                print(f"{low:.10f}")
        """,
        right="""
            import sys

            def height(a, b, v):
                h = (v / a) ** (1 / 3) if a else v / b
                for _ in range(200):
                    slope = 3 * a * h * h + b
                    if slope == 0:
                        break
                    h -= (a * h**3 + b * h - v) / slope
                return h

            numbers = list(map(float, sys.stdin.read().split()))
            for i in range(0, len(numbers) - 3, 3):
                print(round(height(*numbers[i : i + 3]), 8))
        """,
        wrong={
            "edge": """
                while True:
                    a, b, v = map(float, input().split())
                    if a == b == 0:
                        break
                    low, high = 0.0, 1000.0
                    for _ in range(120):
                        middle = (low + high) / 2
                        if a * middle**3 + b * middle < v:
                            low = middle
                        else:
                            high = middle
                    print(low)
            """,
            "logic": """
                while True:
                    a, b, v = map(float, input().split())
                    if a == b == 0:
                        break
                    low, high = 0.0, 1e9
                    for _ in range(120):
                        middle = (low + high) / 2
                        if (a * middle) ** 3 + b * middle < v:
                            low = middle
                        else:
                            high = middle
                    print(low)
            """,
            "format": """
                while True:
                    a, b, v = map(float, input().split())
                    if a == b == 0:
                        break
                    low, high = 0.0, 1e9
                    for _ in range(120):
                        middle = (low + high) / 2
                        if a * middle**3 + b * middle < v:
                            low = middle
                        else:
                            high = middle
                    print("h =", low)
            """,
            "crash": """
                while True:
                    a, b, v = map(float, input().split())
                    if a == b == 0:
                        break
                    h = (v / a) ** (1 / 3)
                    for _ in range(200):
                        slope = 3 * a * h * h + b
                        h -= (a * h**3 + b * h - v) / slope if slope else 0
                    print(h)
            """,
            "slow": """
                while True:
                    a, b, v = map(float, input().split())
                    if a == b == 0:
                        break
                    low, high = 0.0, 1e9
                    while high - low > 1e-9:
                        middle = (low + high) / 2
                        if a * middle**3 + b * middle < v:
                            low = middle
                        else:
                            high = middle
                    print(low)
            """,
        },
        inputs=(
            "1 1 10\n0 0 0\n",
            "0 2 7\n0 0 0\n",
            "3 0 24\n2 5 0\n0 0 0\n",
            "0.001 0 1000000\n1000 1000 1000000\n0 0 0\n",
            "0 0.001 1000000\n0 0 0\n",
            "0 0 0\n",
            "1 0 0.001\n0.5 0.25 0.75\n0 0 0\n",
            "999.5 0.125 1\n12.5 7 345.25\n0 0 0\n",
        ),
    ),
    Problem(
        id="boat-and-jetty",
        statement="A jetty is the straight piece between the points A and B, a boat lies at P; A and B may be "
        "the same point. The first line holds t (1 to 30), every further line the six whole numbers ax ay bx by px "
        "py (absolute values up to 10^4). Print for each line the distance from P to the nearest point of the "
        "jetty, with an error of at most 10^-6.",
        checker="floats",
        reference="""
            import sys
            from math import hypot

            lines = sys.stdin.read().splitlines()
            for line in lines[1 : 1 + int(lines[0])]:
                ax, ay, bx, by, px, py = map(int, line.split())
                dx, dy = bx - ax, by - ay
                square = dx * dx + dy * dy
                part = ((px - ax) * dx + (py - ay) * dy) / square if square else 0.0
                part = min(1.0, max(0.0, part))
                print(hypot(ax + part * dx - px, ay + part * dy - py))
        """,
        right="""
            def main():
                for _ in range(int(input())):
                    ax, ay, bx, by, px, py = map(int, input().split())
                    a, b, p = complex(ax, ay), complex(bx, by), complex(px, py)
                    if a == b:
                        distance = abs(p - a)
                    else:
                        turned = (p - a) / (b - a) * abs(b - a)
                        if turned.real < 0:
                            distance = abs(p - a)
                        elif turned.real > abs(b - a):
                            distance = abs(p - b)
                        else:
                            distance = abs(turned.imag)
                    print("{:.7f}".format(distance))

            main()
        """,
        wrong={
            "edge": """
                from math import dist, hypot
                for _ in range(int(input())):
                    ax, ay, bx, by, px, py = map(int, input().split())
                    dx, dy = bx - ax, by - ay
                    square = dx * dx + dy * dy or 1
                    part = max(0.0, ((px - ax) * dx + (py - ay) * dy) / square)
                    print(hypot(ax + part * dx - px, ay + part * dy - py))
            """,
            "logic": """
                from math import dist, hypot
                for _ in range(int(input())):
                    ax, ay, bx, by, px, py = map(int, input().split())
                    length = dist((ax, ay), (bx, by))
                    if length:
                        print(abs((bx - ax) * (py - ay) - (by - ay) * (px - ax)) / length)
                    else:
                        print(dist((ax, ay), (px, py)))
            """,
            "format": """
                from math import hypot
                for _ in range(int(input())):
                    ax, ay, bx, by, px, py = map(int, input().split())
                    dx, dy = bx - ax, by - ay
                    part = ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy or 1)
                    part = min(1.0, max(0.0, part))
                    print(round(hypot(ax + part * dx - px, ay + part * dy - py)))
            """,
            "crash": """
                from math import hypot
                for _ in range(int(input())):
                    ax, ay, bx, by, px, py = map(int, input().split())
                    dx, dy = bx - ax, by - ay
                    part = ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy)
                    part = min(1.0, max(0.0, part))
                    print(hypot(ax + part * dx - px, ay + part * dy - py))
            """,
            "slow": """
                from math import dist
                for _ in range(int(input())):
                    ax, ay, bx, by, *p = map(int, input().split())
                    a, b = (ax, ay), (bx, by)
                    while dist(a, b) > 1e-12:
                        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
                        if dist(p, a) <= dist(p, b):
                            b = middle
                        else:
                            a = middle
                    print(dist(p, a))
            """,
        },
        inputs=(
            "1\n0 0 10 0 5 3\n",
            "2\n0 0 10 0 -3 4\n10 0 0 0 -3 4\n",
            "1\n2 2 2 2 5 6\n",
            "1\n0 0 1 1 0 1\n",
            "1\n-10000 -10000 10000 10000 10000 -10000\n",
            "3\n0 0 4 0 4 0\n0 0 4 0 2 0\n1 7 3 -2 2 2\n",
            "1\n4384 6661 -6463 -4635 7071 2887\n",
            "2\n7 7 7 7 7 7\n-5 -5 -5 -5 995 -5\n",
        ),
    ),
]
