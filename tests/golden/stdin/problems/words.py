"""Words of a text: the longest, the most frequent."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="longest-word",
        statement="The input is a text of up to 100 lines; words are separated by spaces, of which there may "
        "be several in a row, also at the start and the end of a line. For each line print its longest word, the "
        "first of those that are equally long, or a single `*` where the line has no word.",
        reference="""
            import sys

            for line in sys.stdin:
                words = line.split()
                print(max(words, key=len) if words else "*")
        """,
        right="""
            def longest(line):
                best = current = ""
                for letter in line + " ":
                    if letter == " ":
                        if len(current) > len(best):
                            best = current
                        current = ""
                    else:
                        current += letter
                return best or "*"

            while True:
                try:
                    line = input()
                except EOFError:
                    break
                print(longest(line))
        """,
        wrong={
            "edge": """
                import sys
                for line in sys.stdin:
                    if line.strip():
                        print(max(line.split(), key=len))
            """,
            "logic": """
                import sys
                for line in sys.stdin:
                    best = ""
                    for word in line.split():
                        if len(word) >= len(best):
                            best = word
                    print(best or "*")
            """,
            "format": """
                import sys
                for line in sys.stdin:
                    word = max(line.split(), key=len, default="*")
                    print(word, len(word))
            """,
            "crash": """
                import sys
                for line in sys.stdin:
                    print(max(line.split(), key=len))
            """,
            "slow": """
                import sys
                for line in sys.stdin.read().splitlines():
                    line = line.strip(" ")
                    best, start = "", 0
                    while start < len(line):
                        end = line.find(" ", start)
                        if end < 0:
                            end = len(line)
                        if end - start > len(best):
                            best = line[start:end]
                        start = end + 1 if end > start else start
                    print(best or "*")
            """,
        },
        inputs=(
            "the quick brown fox\n",
            "one\n",
            "a bb cc d\nee f\n",
            "no newline at the end",
            "\n",
            "first line\n\nthird\n",
            "  padded on both sides  \n",
            "two  spaces here\n",
            "it's well-known, isn't it?\nyes\n",
        ),
    ),
    Problem(
        id="frequent-words",
        statement="The first line holds k (1 to 20), the lines after it a text; a word is a longest possible "
        "run of letters A-Z and a-z, and capitals count as small letters. Print the k words that occur most often "
        "(all of them if there are fewer), one a line with its number of occurrences; words that are equally "
        "frequent in alphabetical order.",
        reference="""
            import sys

            first, *lines = sys.stdin.buffer.read().split(b"\\n")
            counts = {}
            for line in lines:
                letters = bytes(c if 97 <= c <= 122 else 32 for c in line.lower())
                for word in letters.split():
                    counts[word] = counts.get(word, 0) + 1
            words = sorted(counts)
            words.sort(key=counts.get, reverse=True)
            for word in words[: int(first)]:
                sys.stdout.buffer.write(b"%s %d\\n" % (word, counts[word]))
        """,
        right="""
            import re
            import sys
            from collections import Counter

            k = int(sys.stdin.readline())
            counts = Counter(re.findall("[a-z]+", sys.stdin.read().lower()))
            for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]:
                print(word, count)
        """,
        wrong={
            "edge": """
                import re, sys
                from collections import Counter
                k = int(input())
                counts = Counter(re.findall("[a-z]+", sys.stdin.read().lower()))
                for word, count in counts.most_common(k):
                    print(word, count)
            """,
            "logic": """
                import sys
                from collections import Counter
                k = int(input())
                counts = Counter(sys.stdin.read().lower().split())
                for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]:
                    print(word, count)
            """,
            "format": """
                import re, sys
                from collections import Counter
                k = int(input())
                counts = Counter(re.findall("[a-z]+", sys.stdin.read().lower()))
                for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]:
                    print(word)
            """,
            "crash": """
                import re, sys
                from collections import Counter
                k = int(input())
                counts = Counter(re.findall("[a-z]+", sys.stdin.read().lower()))
                words = sorted(counts, key=lambda word: (-counts[word], word))
                for i in range(k):
                    print(words[i], counts[words[i]])
            """,
            "slow": """
                import re, sys
                k = int(input())
                words = re.findall("[a-z]+", sys.stdin.read().lower())
                shown, count = set(), len(words)
                while len(shown) < k:
                    for word in sorted(set(words)):
                        if len(shown) < k and words.count(word) == count and word not in shown:
                            print(word, count)
                            shown.add(word)
                    count -= 1
            """,
        },
        inputs=(
            "2\nthe cat and the hat and the bat\n",
            "1\nTea, tea; TEA!\ncoffee\n",
            "3\nb a c\nc b\nc\n",
            "2\nzebra apple\n",
            "20\nonly three words\n",
            "1\nDon't stop - don't\n",
            "2\n\n\nx\n\nx y\n",
            "3\nrow row row your boat\nyour row boat row boat\n",
            "5\n1 2 3\n",
        ),
    ),
]
