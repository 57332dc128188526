# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the link checks of documents and manual pages (doc/html/links.py), and of HTML pages (doc/html/make.py)."""

import os
import re
import sys
import tempfile
import unittest

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
sys.path.insert(0, os.path.join(TREE, "doc/html"))
import links  # noqa: E402
import make  # noqa: E402


class Links(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.TemporaryDirectory()
        self.addCleanup(self.tree.cleanup)

    def write(self, path, text):
        path = os.path.join(self.tree.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def test_links_to_files_and_headings_are_followed(self):
        self.write("doc/other.md", "# Other\n\n## A *fine* `place`: here\n\n## Twice\n\n## Twice\n")
        self.write("README.md", "[a](doc/other.md) [b](doc/other.md#a-fine-place-here) [c](doc/other.md#twice-1)\n"
                   "[d](https://example.com) [e](doc) `[no](link)`\n```sh\n# [no](link)\n```\n")
        self.assertEqual(list(links.faults(self.tree.name)), [])

    def test_what_leads_nowhere_is_named_with_its_line(self):
        self.write("doc/other.md", "# Other\n\n```sh\n# not a heading\n```\n")
        self.write("README.md", "# This\n[a](doc/gone.md)\n[b\nc](doc/other.md#not-a-heading) [d](#that) [e](../out)\n")
        self.assertEqual([fault.partition(" is broken")[0] for fault in links.faults(self.tree.name)],
                         ["README.md:2: the link 'doc/gone.md'", "README.md:3: the link 'doc/other.md#not-a-heading'",
                          "README.md:4: the link '#that'", "README.md:4: the link '../out'"])

    def test_a_shown_file_is_compared_with_the_file(self):
        self.write("a.c", "/* SPDX */\n/* a */\nint a;\n")
        self.write("README.md", "<!-- the file a.c -->\n```c\nint a;\n```\n")
        self.assertEqual(list(links.faults(self.tree.name)), [])
        self.write("README.md", "<!-- in the file a.c -->\n```c\nint b;\n```\n")
        self.assertEqual(len(list(links.faults(self.tree.name))), 1)
        self.write("a.c", "/* SPDX */\nint c;\nint b;\n")
        self.assertEqual(list(links.faults(self.tree.name)), [])
        self.write("README.md", "<!-- the file a.c -->\n```c\nint a;\n```\n")
        self.assertEqual(list(links.faults(self.tree.name)), ["README.md:1: a.c has another text than is shown"])

    def test_references_of_manual_pages_are_followed(self):
        self.write("doc/man/1/rpma.1", ".Sh SEE ALSO\nsee\n.Sx SEE ALSO ,\n.Xr rpma 1 ,\n.Xr poll 2\n")
        self.assertEqual(list(links.man_faults(self.tree.name)), [])
        self.write("doc/man/1/rpma.1", ".Sh SEE ALSO\nsee\n.Sx RELOAD\n.Xr rpma-gone 1 ,\n")
        self.assertEqual(len(list(links.man_faults(self.tree.name))), 2)

    def test_each_manual_page_of_the_project_has_a_subject_in_the_index_and_a_description(self):
        manual = make.Manual(TREE, self.tree.name)
        patterns = [pattern for _, _, of_subject, _ in make.SUBJECTS for pattern in of_subject]
        for name in manual.man:
            self.assertTrue(any(re.fullmatch(pattern, name) for pattern in patterns), name)
            self.assertTrue(manual.described(name), name)
        for _, _, _, documents in make.SUBJECTS:
            self.assertLessEqual(set(documents), set(manual.documents))

    def test_pages_without_a_way_to_them_and_anchors_that_are_not_there_are_found(self):
        self.write("index.html", '<a href="a.html#here">a</a><a href="a.html#gone">b</a><img src="no.svg">')
        self.write("a.html", '<h1 id="here">a</h1>')
        self.write("b.html", '<a href="index.html">back</a>')
        count, pages, faults = make.check(self.tree.name)
        self.assertEqual((count, pages, len(faults)), (4, 3, 3))
        self.assertEqual(sorted(fault.rpartition(" leads to ")[2] for fault in faults)[1:], ["no anchor", "no file"])


if __name__ == "__main__":
    unittest.main()
