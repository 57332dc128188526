# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the choice of operators that are changed: python3 -m unittest test_sites"""

import unittest

from sites import sites_of


def after(source):
    return [site.lines(source)[1] for site in sites_of(source)]


class Sites(unittest.TestCase):
    def test_comparisons_and_connectives(self):
        self.assertEqual(after("x = a < b && c != d;"),
                         ["x = a <= b && c != d;", "x = a < b || c != d;", "x = a < b && c == d;"])

    def test_a_negation_goes_or_comes(self):
        self.assertEqual(after("if (!ready)\n\tgo();"), ["if (ready)"])
        self.assertEqual(after("if (ready(1))\n\tgo();"), ["if (!(ready(1)))"])
        self.assertEqual(after("x = !!y;"), ["x = !y;"])

    def test_a_bound_by_one(self):
        self.assertEqual(after("n = len + 1;"), ["n = len + 0;"])
        self.assertEqual(after("n = len - 1u;"), ["n = len - 0u;"])
        self.assertEqual(after("n = len + 10;"), [])

    def test_shifts_arrows_and_other_operators_stay(self):
        self.assertEqual(after("x = p->a << 2 | y >> 1; x <<= 1; z &= ~w;"), [])

    def test_the_smaller_of_two_stays(self):
        self.assertEqual(after("n = a < b ? a : b;"), [])
        self.assertEqual(after("n = len > max ? max : len;"), [])
        self.assertEqual(after("n = len < 64 ? (int)len : 64;"), [])
        self.assertEqual(after("n = a < b ? a : c;"), ["n = a <= b ? a : c;"])

    def test_comments_texts_and_directives_stay(self):
        self.assertEqual(after('/* a < b */ f("a && b", \'<\'); // !x\n#if A > 1 \\\n && B\n'), [])

    def test_a_condition_keeps_its_texts(self):
        self.assertEqual(after('if (is(name, "a < b"))\n\tgo();'), ['if (!(is(name, "a < b")))'])


if __name__ == "__main__":
    unittest.main()
