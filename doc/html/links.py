#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""links.py TREE: checks the Markdown documents and the manual pages.

The file and the heading of each link exist. A text that a document shows as part of a file is in that file. The
sections and the pages of the tree to which a manual page refers exist. The HTML manual uses the functions for headings
and links of this file, so that both have the same anchors.
"""

import os
import re
import subprocess
import sys

FENCE = re.compile(r"^(```|~~~)")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
EXTERNAL = re.compile(r"^(https?|mailto):")


def documents(tree):
    """The Markdown files of the repository, or of an unpacked copy without its build folders."""
    listed = subprocess.run(["git", "-C", tree, "ls-files", "-co", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted(name for name in listed.stdout.split("\n") if name and os.path.exists(os.path.join(tree, name)))
    found = []
    for folder, below, names in os.walk(tree):
        below[:] = [name for name in below if not name.startswith(("build", "."))]
        found += [os.path.relpath(os.path.join(folder, name), tree) for name in names if name.endswith(".md")]
    return sorted(found)


def prose(text):
    """(line number, line) outside of blocks of code."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line.lstrip())
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif not fence:
            yield number, line


class Slugs:
    """Anchors of headings, as the usual hosts of Markdown make them. The second heading of the same name gets "-1"."""

    def __init__(self):
        self.seen = {}

    def of(self, heading):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = self.seen.get(slug, 0)
        self.seen[slug] = count + 1
        return f"{slug}-{count}" if count else slug


def anchors(text):
    slugs = Slugs()
    return {slugs.of(line.lstrip("#").rstrip("# ")) for _, line in prose(text) if re.match(r"#{1,6} ", line)}


def links(text):
    """(line number, target) of each link, except examples in a span of code."""
    lines = [""] * (text.count("\n") + 1)
    for number, line in prose(text):
        lines[number - 1] = re.sub(r"(`+)(?:(?!\1).)+\1", lambda code: "c" * len(code[0]), line)
    whole = "\n".join(lines)
    for link in LINK.finditer(whole):
        yield whole.count("\n", 0, link.start()) + 1, link[1]


def _fault(tree, document, target, anchors_of):
    path, _, fragment = target.partition("#")
    file = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
    if file.startswith(".."):
        return "it leaves the tree"
    if not os.path.exists(os.path.join(tree, file)):
        return f"there is no {file}"
    if fragment and file.endswith(".md") and fragment not in anchors_of(file):
        return f"{file} has no heading '#{fragment}'"
    return None


def _without_licence(text):
    """The text of a program without the comments at its beginning."""
    return re.sub(r"\A(/\*.*?\*/\n)+", "", text, flags=re.S)


def shown_faults(tree, document, text):
    """A line for each block after "<!-- the file PATH -->" or "<!-- in the file PATH -->" that differs from the file."""
    for shown in re.finditer(r"^<!-- (the|in the) file (\S+) -->\n+```\w*\n(.*?)^```$", text, re.M | re.S):
        with open(os.path.join(tree, shown[2]), encoding="utf-8") as source:
            file = source.read()
        if shown[3] not in file if shown[1] == "in the" else _without_licence(file) != shown[3]:
            yield f"{document}:{text.count(chr(10), 0, shown.start()) + 1}: {shown[2]} has another text than is shown"


def faults(tree):
    """One line for each broken link."""
    known = {}

    def anchors_of(file):
        if file not in known:
            with open(os.path.join(tree, file), encoding="utf-8") as source:
                known[file] = anchors(source.read())
        return known[file]

    for document in documents(tree):
        with open(os.path.join(tree, document), encoding="utf-8") as source:
            text = source.read()
        yield from shown_faults(tree, document, text)
        for number, target in links(text):
            fault = None if EXTERNAL.match(target) else _fault(tree, document, target, anchors_of)
            if fault:
                yield f"{document}:{number}: the link '{target}' is broken: {fault}"


def _pages(tree):
    """name.section: path, of each manual page."""
    return {name: os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(tree, "doc/man"))
            for name in names}


def man_faults(tree):
    """One line for each reference of a manual page whose target does not exist."""
    pages = _pages(tree)
    ours = re.compile(r"(lib)?(rpma|rpmem|rpmirror|softrnic)")
    for name, path in sorted(pages.items()):
        with open(path, encoding="utf-8") as source:
            text = source.read()
        sections = {" ".join(words.split()).replace('"', "") for words in re.findall(r"^\.S[hs] (.*)$", text, re.M)}
        for words in re.findall(r"^\.Sx (.*?)(?: [.,:;)]+)?$", text, re.M):
            if words.replace('"', "").strip() not in sections:
                yield f"{name}: the section '{words}' (.Sx) is not in this page"
        for other, section in re.findall(r"^\.Xr (\S+) (\d)", text, re.M):
            if ours.match(other) and f"{other}.{section}" not in pages:
                yield f"{name}: there is no page {other}({section})"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = [*faults(sys.argv[1]), *man_faults(sys.argv[1])]
    print("\n".join(found) or f"the links of {len(documents(sys.argv[1]))} documents and {len(_pages(sys.argv[1]))} manual "
          "pages are right")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
