"""What comes round again: cubes of digits, children in a circle, notes in rooms."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="cube-cycle",
        statement="A number is replaced by the sum of the cubes of its decimal digits, again and again. The "
        "input holds numbers from 0 to 10^9, one a line, ended by a line with -1. For each number before it print "
        "how many different numbers appear, itself included.",
        reference="""
            def follow(n):
                return sum(int(digit) ** 3 for digit in str(n))

            while True:
                n = int(input())
                if n < 0:
                    break
                seen = set()
                while n not in seen:
                    seen.add(n)
                    n = follow(n)
                print(len(seen))
        """,
        right="""
            import sys
            from itertools import takewhile

            def follow(n):
                total = 0
                while n:
                    n, digit = divmod(n, 10)
                    total += digit * digit * digit
                return total

            def different(n):
                slow, fast = follow(n), follow(follow(n))
                while slow != fast:
                    slow, fast = follow(slow), follow(follow(fast))
                length, fast = 1, follow(slow)
                while slow != fast:
                    length, fast = length + 1, follow(fast)
                lead, slow = 0, n
                while slow != fast:
                    lead, slow, fast = lead + 1, follow(slow), follow(fast)
                return lead + length

            for number in takewhile(lambda n: n >= 0, map(int, sys.stdin)):
                print(different(number))
        """,
        wrong={
            "edge": """
                while (n := int(input())) >= 0:
                    seen = set()
                    while n and n not in seen:
                        seen.add(n)
                        n = sum(int(digit) ** 3 for digit in str(n))
                    print(len(seen))
            """,
            "logic": """
                while (n := int(input())) >= 0:
                    seen = []
                    while n not in seen:
                        seen.append(n)
                        n = sum(int(digit) ** 3 for digit in str(n))
                    print(len(seen) - seen.index(n))
            """,
            "format": """
                while (n := int(input())) >= 0:
                    seen = []
                    while n not in seen:
                        seen.append(n)
                        n = sum(int(digit) ** 3 for digit in str(n))
                    print(len(seen), "numbers")
            """,
            "crash": """
                while (n := int(input())) >= 0:
                    seen = [False] * 3000
                    while not seen[n]:
                        seen[n] = True
                        n = sum(int(digit) ** 3 for digit in str(n))
                    print(sum(seen))
            """,
            "slow": """
                def follow(n):
                    return sum(int(digit) ** 3 for digit in str(n))
                while (n := int(input())) >= 0:
                    count = 1
                    while follow(n) != n:
                        n = follow(n)
                        count += 1
                    print(count)
            """,
        },
        inputs=(
            "153\n-1\n",
            "3\n2\n-1\n",
            "0\n-1\n",
            "4\n-1\n",
            "1\n10\n100\n-1\n",
            "999999999\n-1\n",
            "7\n133\n-1\n",
            "-1\n",
        ),
    ),
    Problem(
        id="counting-out",
        statement="Children stand in a circle and count to k, starting with the first; the k-th leaves and the "
        "count begins again with the next. The first line holds the names, 1 to 100 words separated by single "
        "spaces, the second line k (1 <= k <= 10^9). Print the names in the order in which they leave, one a line.",
        reference=r"""
            from collections import deque

            *names, k = open(0).read().split()
            circle, gone = deque(names), []
            while circle:
                circle.rotate(-((int(k) - 1) % len(circle)))
                gone.append(circle.popleft())
            print("\n".join(gone), end="")
        """,
        right="""
            from sys import stdin

            names = stdin.readline().split()
            k = int(stdin.readline())
            place = 0
            while names:
                place = (place + k - 1) % len(names)
                print(names.pop(place))
        """,
        wrong={
            "edge": """
                names = input().split()
                step = int(input()) % len(names) - 1
                place = 0
                while names:
                    place = (place + step) % len(names)
                    print(names.pop(place))
            """,
            "logic": """
                names = input().split()
                k = int(input())
                place = 0
                while names:
                    place = (place + k) % len(names)
                    print(names.pop(place))
            """,
            "format": """
                names = input().split()
                k, place = int(input()), 0
                while names:
                    place = (place + k - 1) % len(names)
                    print(f"{names.pop(place)},")
            """,
            "crash": """
                names = input().split()
                k, place = int(input()), 0
                while names:
                    place = place + k - 1
                    if place >= len(names):
                        place -= len(names)
                    print(names.pop(place))
            """,
            "slow": """
                names = input().split()
                k, place = int(input()), 0
                while names:
                    for _ in range(k - 1):
                        place = place + 1 if place + 1 < len(names) else 0
                    print(names.pop(place))
                    if place == len(names):
                        place = 0
            """,
        },
        inputs=(
            "Ada Bo Cy Di Ed\n2\n",
            "Solo\n1\n",
            "Ann Ben Cem\n1\n",
            "a b c d e f g\n3\n",
            "x y z\n1000000000\n",
            "Ida Jon\n2\n",
            "p q r s t u\n7\n",
            "k l m n\n4\n",
        ),
    ),
    Problem(
        id="chain-of-rooms",
        statement="In each of the rooms 1 to n (1 <= n <= 1000) a note names the room to go to next. The first "
        "line holds n, the second the n notes. Starting in room 1, print after how many moves you are for the "
        "first time in a room where you have been, and after them, in order, the rooms that you visit for ever, "
        "beginning with that room.",
        reference="""
            n = int(input())
            notes = [0] + [int(word) for word in input().split()]
            visited, room = {}, 1
            while room not in visited:
                visited[room] = len(visited)
                room = notes[room]
            print(len(visited))
            print(*list(visited)[visited[room]:])
        """,
        right="""
            import sys

            n, *notes = [int(word) - 1 for word in sys.stdin.read().split()]
            path = [0]
            while path.count(path[-1]) == 1:
                path.append(notes[path[-1]])
            print(len(path) - 1)
            for room in path[path.index(path[-1]) : -1]:
                print(room + 1, end=" ")
        """,
        wrong={
            "edge": """
                n = int(input())
                notes = [0, *map(int, input().split())]
                path = [1]
                while (room := notes[path[-1]]) not in path:
                    path.append(room)
                loop = path[path.index(room):]
                print(len(path))
                print(*(loop if len(loop) > 1 else []))
            """,
            "logic": """
                n = int(input())
                notes = [0, *map(int, input().split())]
                path = [1]
                while (room := notes[path[-1]]) not in path:
                    path.append(room)
                print(len(path))
                print(*path)
            """,
            "format": """
                n = int(input())
                notes = [0, *map(int, input().split())]
                path = [1]
                while (room := notes[path[-1]]) not in path:
                    path.append(room)
                print(len(path))
                print(" -> ".join(map(str, path[path.index(room):])))
            """,
            "crash": """
                n = int(input())
                notes = [0, *map(int, input().split())]
                path = [1]
                while (room := notes[path[-1]]) not in path:
                    path.append(room)
                first, second, *others = path[path.index(room):]
                print(len(path))
                print(first, second, *others)
            """,
            "slow": """
                n = int(input())
                notes = [0, *map(int, input().split())]
                room, moves, loop = 1, 0, []
                while True:
                    room, moves = notes[room], moves + 1
                    if room == 1:
                        break
                    if notes[room] == room:
                        moves += 1
                        break
                print(moves)
                first = room
                while True:
                    print(room)
                    room = notes[room]
                    if room == first:
                        break
            """,
        },
        inputs=(
            "3\n2 3 1\n",
            "1\n1\n",
            "4\n2 3 4 3\n",
            "5\n5 1 1 1 5\n",
            "6\n4 3 2 6 5 1\n",
            "2\n1 2\n",
            "7\n3 1 5 1 7 1 4\n",
            "5\n2 3 4 5 2\n",
        ),
    ),
]
