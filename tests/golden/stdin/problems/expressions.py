"""Lines with brackets: how deep they are nested, what they amount to."""

from ..problem import Problem

PROBLEMS = [
    Problem(
        id="bracket-depth",
        statement="Each of the lines until the end of the input is a text of up to 2000 characters that may "
        "hold round and square brackets beside anything else. If the brackets of a line are properly nested, print "
        "how deep they are nested at most (0 without brackets); if not, print `broken`.",
        reference="""
            import sys

            def depth(line):
                stack, deepest = [], 0
                for c in line:
                    if c in "([":
                        stack.append(c)
                        deepest = max(deepest, len(stack))
                    elif c in ")]":
                        if not stack or stack.pop() + c not in ("()", "[]"):
                            return "broken"
                return "broken" if stack else deepest

            for line in sys.stdin.read().splitlines():
                print(depth(line))
        """,
        right="""
            import re
            import sys

            for line in sys.stdin:
                rest, rounds = re.sub(r"[^][()]", "", line), 0
                while rest:
                    shorter = re.sub(r"\\(\\)|\\[\\]", "", rest)
                    if shorter == rest:
                        break
                    rest, rounds = shorter, rounds + 1
                if rest:
                    print("broken")
                    continue
                level = deepest = 0
                for c in line:
                    level += (c in "([") - (c in ")]")
                    deepest = max(deepest, level)
                print(deepest)
        """,
        wrong={
            "edge": """
                import sys
                for line in sys.stdin.read().splitlines():
                    stack, deepest, broken = [], 0, False
                    for c in line:
                        if c in "([":
                            stack.append(c)
                            deepest = max(deepest, len(stack))
                        elif c in ")]" and (not stack or stack.pop() + c not in ("()", "[]")):
                            broken = True
                    print("broken" if broken else deepest)
            """,
            "logic": """
                import sys
                for line in sys.stdin.read().splitlines():
                    levels = {"(": 0, "[": 0}
                    deepest, broken = 0, False
                    for c in line:
                        if c in "([":
                            levels[c] += 1
                        elif c in ")]":
                            levels["(" if c == ")" else "["] -= 1
                        deepest = max(deepest, levels["("] + levels["["])
                        broken |= min(levels.values()) < 0
                    print("broken" if broken or any(levels.values()) else deepest)
            """,
            "format": """
                import sys
                def depth(line):
                    stack, deepest = [], 0
                    for c in line:
                        if c in "([":
                            stack.append(c)
                            deepest = max(deepest, len(stack))
                        elif c in ")]" and (not stack or stack.pop() + c not in ("()", "[]")):
                            return "broken"
                    return "broken" if stack else deepest
                print([depth(line) for line in sys.stdin.read().splitlines()])
            """,
            "crash": """
                import sys
                for line in sys.stdin.read().splitlines():
                    stack, deepest, broken = [], 0, False
                    for c in line:
                        if c in "([":
                            stack.append(c)
                            deepest = max(deepest, len(stack))
                        elif c in ")]":
                            broken |= stack.pop() + c not in ("()", "[]")
                    print("broken" if broken or stack else deepest)
            """,
            "slow": """
                import sys
                for line in sys.stdin.read().splitlines():
                    rest = "".join(c for c in line if c in "()[]")
                    while rest:
                        rest = rest.replace("()", "").replace("[]", "")
                    level = deepest = 0
                    for c in line:
                        level += (c in "([") - (c in ")]")
                        deepest = max(deepest, level)
                    print(deepest)
            """,
        },
        inputs=(
            "f(x[1], (y))\n",
            "no brackets at all\n",
            "([)] and ([])\n",
            "(" * 900 + "[]" + ")" * 900 + "\n",
            "[](())[[]]\n()\n",
            "a\n\nb()\n",
            ")(\n(\n",
            "((a) + [b]) * (c)",
        ),
    ),
    Problem(
        id="chalk-sums",
        statement="Each line until the end of the input is an expression of whole numbers (0 to 999), the "
        "signs `+`, `-` and `*`, parentheses, and spaces anywhere between these; `*` binds more tightly than `+` "
        "and `-`, which are taken from left to right, and there is no sign before the first number. Print the "
        "value of each line.",
        reference="""
            import re
            import sys

            def read_sum(tokens):
                total = read_product(tokens)
                while tokens and tokens[-1] in "+-":
                    sign = tokens.pop()
                    number = read_product(tokens)
                    total = total + number if sign == "+" else total - number
                return total

            def read_product(tokens):
                product = read_atom(tokens)
                while tokens and tokens[-1] == "*":
                    tokens.pop()
                    product *= read_atom(tokens)
                return product

            def read_atom(tokens):
                token = tokens.pop()
                if token != "(":
                    return int(token)
                value = read_sum(tokens)
                tokens.pop()
                return value

            for line in sys.stdin:
                print(read_sum(re.findall("[0-9]+|[-+*()]", line)[::-1]))
        """,
        right="""
            import sys

            RANKS = {"+": 1, "-": 1, "*": 2}

            def value_of(line):
                numbers, signs = [], []

                def work(least):
                    while signs and signs[-1] != "(" and RANKS[signs[-1]] >= least:
                        sign, b, a = signs.pop(), numbers.pop(), numbers.pop()
                        numbers.append(a + b if sign == "+" else a - b if sign == "-" else a * b)

                for sign in "+-*()":
                    line = line.replace(sign, f" {sign} ")
                for token in line.split():
                    if token == "(":
                        signs.append(token)
                    elif token == ")":
                        work(0)
                        signs.pop()
                    elif token in RANKS:
                        work(RANKS[token])
                        signs.append(token)
                    else:
                        numbers.append(int(token))
                work(0)
                return numbers[0]

            for line in sys.stdin.read().splitlines():
                print(value_of(line))
        """,
        wrong={
            "edge": """
                import re, sys
                def value_of(line):
                    while "(" in line:
                        line = re.sub("[(]([^()]*)[)]", lambda found: str(value_of(found[1])), line)
                    total = 0
                    for sign, product in re.findall("([+-]?)([0-9* ]+)", line.replace(" ", "")):
                        value = 1
                        for number in product.split("*"):
                            value *= int(number or 1)
                        total += -value if sign == "-" else value
                    return total
                for line in sys.stdin:
                    print(value_of(line.strip()))
            """,
            "logic": """
                import re, sys
                def value_of(tokens):
                    total, sign = 0, "+"
                    while tokens:
                        token = tokens.pop(0)
                        if token == ")":
                            break
                        if token in "+-*":
                            sign = token
                            continue
                        number = value_of(tokens) if token == "(" else int(token)
                        total = total + number if sign == "+" else total - number if sign == "-" else total * number
                    return total
                for line in sys.stdin:
                    print(value_of(re.findall("[0-9]+|[-+*()]", line)))
            """,
            "format": """
                import sys
                for line in sys.stdin:
                    text = "".join(c for c in line if c in "0123456789+-*()")
                    print(text, "=", eval(text))
            """,
            "crash": """
                import sys
                def value_of(tokens):
                    total, product, sign = 0, 1, 1
                    for place in range(0, len(tokens), 2):
                        product *= int(tokens[place])
                        after = tokens[place + 1] if place + 1 < len(tokens) else "+"
                        if after != "*":
                            total, product = total + sign * product, 1
                            sign = -1 if after == "-" else 1
                    return total
                for line in sys.stdin:
                    for sign in "+-*()":
                        line = line.replace(sign, f" {sign} ")
                    print(value_of(line.split()))
            """,
            "slow": """
                import re, sys
                for line in sys.stdin:
                    text = line.replace(" ", "").strip()
                    while "(" in text:
                        text = re.sub("[(]([^()]*[-+*][^()]*)[)]", lambda found: f"({eval(found[1])})", text)
                        text = re.sub("[(]([0-9]+)[)]", lambda found: found[1], text)
                    print(eval(text))
            """,
        },
        inputs=(
            "1 + 2 * 3\n",
            "7\n",
            "2*(3+4)\n(1)\n",
            "10 - 4 - 3\n",
            "4 - (1 - 6)\n",
            "(2 - 5) * 4\n",
            "0 * 999 + 1\n 8 -(3- 1)\n",
            "((((((5))))))\n1+1\n",
            "999*999*999*999\n",
            "6 - 2 * (1 + 1) * 3\n",
        ),
    ),
]
