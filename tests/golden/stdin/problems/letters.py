"""Letters that move: shifted, mirrored, struck out."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="shifted-letters",
        statement="The first line holds k, |k| <= 1000; up to 50 lines of text follow. Print the text with "
        "each of the letters A to Z and a to z moved k places forward in its alphabet, going round at the ends "
        "(backward for a negative k). All other characters, spaces included, stay where they are.",
        checker="exact",
        reference="""
            import sys

            lines = sys.stdin.read().split("\\n")
            k = int(lines[0])
            for line in lines[1:]:
                moved = ""
                for c in line:
                    if "a" <= c <= "z":
                        moved += chr((ord(c) - ord("a") + k) % 26 + ord("a"))
                    elif "A" <= c <= "Z":
                        moved += chr((ord(c) - ord("A") + k) % 26 + ord("A"))
                    else:
                        moved += c
                print(moved)
        """,
        right="""
            import string
            import sys

            k = int(sys.stdin.readline()) % 26
            small, large = string.ascii_lowercase, string.ascii_uppercase
            table = str.maketrans(small + large, small[k:] + small[:k] + large[k:] + large[:k])
            for line in sys.stdin:
                sys.stdout.write(line.translate(table))
        """,
        wrong={
            "edge": """
                import sys
                k = int(input())
                for line in sys.stdin:
                    moved = ""
                    for c in line:
                        if c.isascii() and c.isalpha():
                            first = 65 if c.isupper() else 97
                            place = ord(c) - first + k
                            while place >= 26:
                                place -= 26
                            c = chr(first + place)
                        moved += c
                    print(moved, end="")
            """,
            "logic": """
                import sys
                k = int(input())
                for line in sys.stdin:
                    for c in line:
                        if c.isascii() and c.isalpha():
                            c = chr((ord(c.lower()) - 97 + k) % 26 + 97)
                        print(c, end="")
            """,
            "format": """
                import sys
                k = int(input())
                for line in sys.stdin:
                    words = []
                    for word in line.split():
                        moved = ""
                        for c in word:
                            first = 65 if c.isupper() else 97
                            moved += chr((ord(c) - first + k) % 26 + first) if c.isascii() and c.isalpha() else c
                        words.append(moved)
                    print(" ".join(words))
            """,
            "crash": """
                import sys
                k = int(input()) % 26
                small = "abcdefghijklmnopqrstuvwxyz"
                for line in sys.stdin:
                    for c in line:
                        if c.isupper():
                            c = small[(small.index(c.lower()) + k) % 26].upper()
                        elif c not in " ,.!?\\n":
                            c = small[(small.index(c) + k) % 26]
                        print(c, end="")
            """,
            "slow": """
                import sys
                k = int(input())
                while k >= 26:
                    k -= 26
                while k < 0:
                    k += 26 if k % 26 else 0
                table = {}
                for first in 65, 97:
                    for i in range(26):
                        table[first + i] = first + (i + k) % 26
                print(sys.stdin.read().translate(table), end="")
            """,
        },
        inputs=(
            "3\nabc xyz\n",
            "0\nNothing moves.\n",
            "-1\nBob, Ann!\n",
            "1000\n  two leading spaces\nAND  two  inside\n",
            "13\nHello\n\n   indented\n",
            "5\n1 + 1 = 2; x = y\n",
            "-52\nround and round\n",
            "25\n\nBa\n",
            "7\n",
        ),
    ),
    Problem(
        id="mirrored-lines",
        statement="The input is a text in UTF-8 of up to 60 lines, none of which ends with a space. Print "
        "every line with its characters in the opposite order, in a box: every printed line starts and ends with "
        "`|`, and spaces between the text and the `|` at its right fill the box to the width of the longest line.",
        checker="exact",
        reference="""
            import sys

            lines = [line.rstrip("\\n")[::-1] for line in sys.stdin]
            width = max(map(len, lines))
            for line in lines:
                print("|" + line.ljust(width) + "|")
        """,
        right="""
            import sys

            text = sys.stdin.buffer.read().decode("utf-8")
            lines = text.splitlines()
            width = max(len(line) for line in lines)
            out = ["|%s|" % ("".join(reversed(line)) + " " * (width - len(line))) for line in lines]
            sys.stdout.buffer.write("\\n".join(out).encode("utf-8") + b"\\n\\n")
        """,
        wrong={
            "edge": """
                import sys
                lines = sys.stdin.buffer.read().split(b"\\n")[:-1]
                width = max(map(len, lines))
                for line in lines:
                    sys.stdout.buffer.write(b"|" + line[::-1].ljust(width) + b"|\\n")
            """,
            "logic": """
                import sys
                lines = [" ".join(reversed(line.rstrip("\\n").split(" "))) for line in sys.stdin]
                width = max(map(len, lines))
                for line in lines:
                    print("|" + line.ljust(width) + "|")
            """,
            "format": """
                import sys
                for line in sys.stdin:
                    print("|" + line.rstrip("\\n")[::-1] + "|")
            """,
            "crash": """
                import sys
                lines = sys.stdin.buffer.read().decode("ascii").splitlines()
                width = max(map(len, lines))
                for line in lines:
                    print("|" + line[::-1].ljust(width) + "|")
            """,
            "slow": """
                import sys
                lines = sys.stdin.read().splitlines()
                width = max(map(len, lines))
                for line in lines:
                    mirrored = line[::-1]
                    while len(mirrored.encode()) != width:
                        if len(mirrored) < width:
                            mirrored += " "
                    print("|" + mirrored + "|")
            """,
        },
        inputs=(
            "abc\nde\n",
            "x\n",
            "one two\n\nthree\n",
            "naïve café\nolé\n",
            "  indented\nnot\n",
            "π≈3.14159\n",
            "1\n22\n333\n22\n1\n",
            "tab is none, dots are: ...\nup!\n",
        ),
    ),
    Problem(
        id="letters-too-many",
        statement="The first line holds a word of 1 to 120 lower-case letters. Print how many of its letters "
        "have to be struck out, at the least, so that the rest reads the same from both ends.",
        reference="""
            word = input()
            n = len(word)
            longest = [[0] * (n + 1) for _ in range(n + 1)]
            for i in range(n):
                for j in range(n):
                    if word[i] == word[n - 1 - j]:
                        longest[i + 1][j + 1] = longest[i][j] + 1
                    else:
                        longest[i + 1][j + 1] = max(longest[i][j + 1], longest[i + 1][j])
            print(n - longest[n][n])
        """,
        right="""
            import sys
            from functools import lru_cache

            sys.setrecursionlimit(10000)
            word = sys.stdin.readline().strip()

            @lru_cache(maxsize=None)
            def struck(first, last):
                if first >= last:
                    return 0
                if word[first] == word[last]:
                    return struck(first + 1, last - 1)
                return 1 + min(struck(first + 1, last), struck(first, last - 1))

            print(struck(0, len(word) - 1))
        """,
        wrong={
            "edge": """
                word = input()
                n = len(word)
                kept = [[1] * n for _ in range(n)]
                for size in range(2, n + 1):
                    for i in range(n - size + 1):
                        j = i + size - 1
                        if word[i] == word[j]:
                            kept[i][j] = kept[i + 1][j - 1] + 2 if size > 2 else 1
                        else:
                            kept[i][j] = max(kept[i + 1][j], kept[i][j - 1])
                print(n - kept[0][n - 1])
            """,
            "logic": """
                from collections import Counter
                odd = sum(count % 2 for count in Counter(input()).values())
                print(max(odd - 1, 0))
            """,
            "format": """
                word = input()
                n = len(word)
                longest = [[0] * (n + 1) for _ in range(n + 1)]
                for i in range(n):
                    for j in range(n):
                        if word[i] == word[n - 1 - j]:
                            longest[i + 1][j + 1] = longest[i][j] + 1
                        else:
                            longest[i + 1][j + 1] = max(longest[i][j + 1], longest[i + 1][j])
                print(f"Strike out {n - longest[n][n]}")
            """,
            "crash": """
                from functools import cache
                word = input()
                @cache
                def struck(first, last):
                    if first == last:
                        return 0
                    if word[first] == word[last]:
                        return struck(first + 1, last - 1)
                    return 1 + min(struck(first + 1, last), struck(first, last - 1))
                print(struck(0, len(word) - 1))
            """,
            "slow": """
                word = input()
                def struck(first, last):
                    if first >= last:
                        return 0
                    if word[first] == word[last]:
                        return struck(first + 1, last - 1)
                    return 1 + min(struck(first + 1, last), struck(first, last - 1))
                print(struck(0, len(word) - 1))
            """,
        },
        inputs=(
            "level\n",
            "a\n",
            "abcb\n",
            "oo\n",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n",
            "banana\n",
            "racecars\n",
            "xyzzyx" * 20 + "\n",
            "agbdba\n",
        ),
    ),
]
