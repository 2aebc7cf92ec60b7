"""Notations: Roman numerals, packed words."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="roman-sums",
        statement="Each line until the end of the input is a sum such as `XIV + IX + I` of one or more numbers "
        "from 1 to 3999 in the usual Roman numerals, with ` + ` between them; no total exceeds 3999. Print each "
        "total in Roman numerals, on a line of its own.",
        reference="""
            import sys

            SIGNS = [
                (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
                (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
            ]

            def read(text):
                total = 0
                for value, sign in SIGNS:
                    while text.startswith(sign):
                        total += value
                        text = text[len(sign):]
                return total

            def written(n):
                text = ""
                for value, sign in SIGNS:
                    text += n // value * sign
                    n %= value
                return text

            for line in sys.stdin:
                print(written(sum(map(read, line.strip().split(" + ")))))
        """,
        right="""
            VALUES = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000)))

            def place(digit, one, five, ten):
                return ["", one, one * 2, one * 3, one + five, five, five + one, five + one * 2, five + one * 3,
                        one + ten][digit]

            def main():
                for line in open(0):
                    total = 0
                    for numeral in line.replace("+", " ").split():
                        values = [VALUES[c] for c in numeral]
                        for value, after in zip(values, values[1:] + [0]):
                            total += -value if value < after else value
                    thousands, rest = divmod(total, 1000)
                    print("M" * thousands + place(rest // 100, "C", "D", "M") + place(rest // 10 % 10, "X", "L", "C")
                          + place(rest % 10, "I", "V", "X"))

            if __name__ == "__main__":
                main()
        """,
        wrong={
            "edge": """
                import sys
                VALUES = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000)))
                SIGNS = [(1000, "M"), (900, "CM"), (500, "D"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
                         (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
                for line in sys.stdin:
                    total = 0
                    for numeral in line.split("+"):
                        values = [VALUES[c] for c in numeral.strip()]
                        total += sum(-v if v < w else v for v, w in zip(values, values[1:] + [0]))
                    text = ""
                    for value, sign in SIGNS:
                        text += total // value * sign
                        total %= value
                    print(text)
            """,
            "logic": """
                import sys
                SIGNS = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]
                VALUES = {sign: value for value, sign in SIGNS}
                for line in sys.stdin:
                    total = sum(VALUES.get(c, 0) for c in line)
                    text = ""
                    for value, sign in SIGNS:
                        text += total // value * sign
                        total %= value
                    print(text)
            """,
            "format": """
                import sys
                VALUES = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000)))
                for line in sys.stdin:
                    total = 0
                    for numeral in line.split("+"):
                        values = [VALUES[c] for c in numeral.strip()]
                        total += sum(-v if v < w else v for v, w in zip(values, values[1:] + [0]))
                    print(total)
            """,
            "crash": """
                SIGNS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
                         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
                KNOWN = {}
                for n in range(1, 3000):
                    text, rest = "", n
                    for value, sign in SIGNS:
                        text += rest // value * sign
                        rest %= value
                    KNOWN[text] = n
                NAMES = {n: text for text, n in KNOWN.items()}
                for line in open(0):
                    print(NAMES[sum(KNOWN[numeral] for numeral in line.strip().split(" + "))])
            """,
            "slow": """
                from itertools import count
                SIGNS = [(1000, "M"), (900, "CM"), (500, "D"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
                         (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
                def written(n, signs):
                    text = ""
                    for value, sign in signs:
                        text += n // value * sign
                        n %= value
                    return text
                for line in open(0):
                    total = 0
                    for numeral in line.strip().split(" + "):
                        total += next(n for n in count(1) if written(n, SIGNS) == numeral)
                    print(written(total, sorted([*SIGNS, (400, "CD")], reverse=True)))
            """,
        },
        inputs=(
            "XIV + IX + I\n",
            "I\n",
            "II + II\nV + IV\n",
            "MMMCMXCVIII + I\n",
            "CD\n",
            "XL + X\nL + XL\n",
            "D + D + M\nCCC + CC\n",
            "MDCLXVI + CCCXXXIV\n",
            "LXXXVIII + I + I + VIII\n",
        ),
    ),
    Problem(
        id="unpack-runs",
        statement="A packed word is a sequence of pairs of a count (0 to 1000, decimal) and one lower-case "
        "letter, such as `3a0b12c`, and stands for each letter repeated as often as its count says. The input "
        "holds t <= 20 and then t packed words of up to 100 characters; print for each the length of the unpacked "
        "word and, after a space, its number of different letters.",
        reference="""
            import sys

            data = sys.stdin.read().split()
            for packed in data[1 : int(data[0]) + 1]:
                count, length, letters = 0, 0, set()
                for c in packed:
                    if c.isdigit():
                        count = 10 * count + int(c)
                    else:
                        length += count
                        if count:
                            letters.add(c)
                        count = 0
                print(length, len(letters))
        """,
        right="""
            import re

            for _ in range(int(input())):
                word = "".join(int(count) * letter for count, letter in re.findall("([0-9]+)([a-z])", input()))
                print(f"{len(word)} {len(set(word))}")
        """,
        wrong={
            "edge": """
                import re
                for _ in range(int(input())):
                    pairs = re.findall("([0-9]+)([a-z])", input())
                    print(sum(int(count) for count, _ in pairs), len({letter for _, letter in pairs}))
            """,
            "logic": """
                import re
                for _ in range(int(input())):
                    pairs = re.findall("([0-9])([a-z])", input())
                    word = "".join(int(count) * letter for count, letter in pairs)
                    print(len(word), len(set(word)))
            """,
            "format": """
                import re
                for _ in range(int(input())):
                    pairs = re.findall("([0-9]+)([a-z])", input())
                    word = "".join(int(count) * letter for count, letter in pairs)
                    print(f"{len(word)},{len(set(word))}")
            """,
            "crash": """
                for _ in range(int(input())):
                    packed = input()
                    word = "".join(int(packed[i]) * packed[i + 1] for i in range(0, len(packed), 2))
                    print(len(word), len(set(word)))
            """,
            "slow": """
                import re
                for _ in range(int(input())):
                    packed, word = input(), ""
                    while packed:
                        if found := re.match("([0-9]{1,3})([a-z])", packed):
                            word += int(found[1]) * found[2]
                            packed = packed[found.end():]
                    print(len(word), len(set(word)))
            """,
        },
        inputs=(
            "2\n3a2b\n1z\n",
            "1\n0q\n",
            "3\n10a\n2a2a\n5x1000y\n",
            "1\n1a1b1c1d1e1f1g\n",
            "2\n007k\n9w0w\n",
            "1\n3a0b12c\n",
            "2\n4h4h4h\n6m6n\n",
            "1\n12p\n",
        ),
    ),
]
