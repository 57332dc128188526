# SPDX-License-Identifier: BSD-3-Clause
"""
The places in a C file where one operator can be changed, and the changes. Comments, strings and directives are not
changed.
"""

import re
from typing import NamedTuple

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
CONNECTIVES = {"&&": "||", "||": "&&"}

NOT_CODE = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE)
OPERATOR = re.compile(r"->|<<=?|>>=?|[<>=!]=|&&|\|\||[<>!]")
PLUS_OR_MINUS_ONE = re.compile(r"(?<=[ \w)\]])([+-]) 1(?=u?(?:ull)?\b)")
CONDITION = re.compile(r"\b(?:if|while) \(")
# An expression for the smaller or larger of two values. If both are equal, either operand is right,
# so `<` and `<=` cannot be told apart.
EITHER = re.compile(r"([\w.>\-\[\]]+) ([<>]=?) ([\w.>\-\[\]]+)\s*\?\s*(?:\(\w+\))?(?:\1\s*:\s*\3|\3\s*:\s*\1)(?![\w(])")


class Site(NamedTuple):
    """One change: the bytes [begin, end) of the file become `text`."""
    begin: int
    end: int
    text: str

    def applied_to(self, source):
        return source[:self.begin] + self.text + source[self.end:]

    def line_number(self, source):
        return source.count("\n", 0, self.begin) + 1

    def lines(self, source):
        """The line of the change, before and after it, without indentation."""
        first = source.rfind("\n", 0, self.begin) + 1
        last = source.find("\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first:self.begin] + self.text + source[self.end:last]
        return " ".join(source[first:last].split()), " ".join(after.split())


def code_only(source):
    """A text of the same length, with blanks in place of comments, strings and directives."""
    return NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)


def operators(code):
    indifferent = {found.start(2) for found in EITHER.finditer(code)}
    for found in OPERATOR.finditer(code):
        token = found.group()
        if found.start() in indifferent:
            continue
        other = COMPARISONS.get(token) or CONNECTIVES.get(token)
        if other:
            yield Site(found.start(), found.end(), other)
        elif token == "!" and code[found.end():found.end() + 1] != "!":
            yield Site(found.start(), found.end(), "")


def ones(code):
    """Changes of a bound by one."""
    for found in PLUS_OR_MINUS_ONE.finditer(code):
        yield Site(found.start(), found.end(), found.group(1) + " 0")


def closing_parenthesis(code, opening):
    depth = 0
    for at in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return None


def conditions(code):
    """Negations of whole conditions. A condition that is already negated loses its `!` in operators()."""
    for found in CONDITION.finditer(code):
        begin = found.end()
        end = closing_parenthesis(code, begin - 1)
        if end and code[begin] != "!" and "\n" not in code[begin:end]:
            yield Site(begin, end, "!(" + code[begin:end] + ")")


def sites_of(source):
    code = code_only(source)
    found = [*operators(code), *ones(code), *conditions(code)]
    # The text of a negation is made from the source, because code_only() has blanked its strings.
    return sorted(s if not s.text.startswith("!(") else
                  s._replace(text="!(" + source[s.begin:s.end] + ")") for s in found)
