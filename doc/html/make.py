#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make.py TREE FOLDER: makes the HTML manual of the tree in FOLDER/VERSION, and an index of all versions in FOLDER.

mandoc converts manual pages, cmark-gfm converts documents. Files and folders of the tree that are the target of a link
in a document become pages as well. A link without an existing target is an error.
"""

import concurrent.futures
import html
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile

import links

HERE = os.path.dirname(os.path.abspath(__file__))
# Pages of other packages, by name and section.
ELSEWHERE = "https://manpages.debian.org/bookworm/%N.%S.en.html"
TITLES = {
    "README.md": "What it is",
    "doc/tutorial.md": "Tutorial: librpma, from the first connection to data that survives a crash",
    "doc/file-tutorial.md": "Tutorial: librpmafile, a write-ahead log on another machine",
    "doc/rpmem-tutorial.md": "Tutorial: a pool of libpmemobj with a copy on another machine",
    "doc/mirror-tutorial.md": "Tutorial: a mapped file on three hosts",
}
# The subjects of the index: title, one line, names of manual pages (patterns), documents.
SUBJECTS = (
    ("Start here", "What the project is for, and step by step from an empty folder.", (),
     ("README.md", "doc/file-tutorial.md", "doc/tutorial.md", "doc/rpmem-tutorial.md", "doc/mirror-tutorial.md")),
    ("rpma, the tool", "Serve files as remote memory, put, get and list them, measure.",
     (r"rpma\.1", r"rpma-[a-z]+\.1"), ()),
    ("librpmafile", "A file of another machine from a program: open, write, sync.",
     (r"librpmafile\.7", r"rpma_file_\w+\.3"), ()),
    ("librpma", "Remote memory with each operation under the program's control.",
     (r"librpma\.7", r"rpma_\w+\.3"), ()),
    ("librpmem and rpmemd", "Copies of persistent memory pools, for libpmemobj and pmempool.",
     (r"librpmem\.7", r"rpmemd\.1", r"rpmem-\w+\.1", r"rpmem_\w+\.3"), ()),
    ("librpmirror and rpmirrord", "A mapped file with copies on other hosts.",
     (r"librpmirror\.7", r"rpmirrord?\.1", r"rpmirror_\w+\.3"),
     ("doc/mirror.md", "doc/mirror-format.md", "doc/model/README.md")),
    ("Operations", "For the operator: first use, backup, losses, alarms, command by command.", (r"ocf_\w+\.7",),
     tuple(f"doc/operations/{page}.md" for page in ("index", "mirror", "pacemaker", "rpmem", "serve", "alarms"))),
    ("Python", "librpmafile and librpmirror for Python.", (), ("doc/python.md",)),
    ("softrnic", "The software RDMA card, also below programs that know only libibverbs.",
     (r"softrnic(-verbs)?\.[17]",), ("doc/ci.md", "doc/wire.md", "doc/vm.md")),
    ("Files", "Configurations and formats.", (r".*\.5",), ()),
    ("Compatibility", "What stays as it is, and for how long.", (), ("doc/stability.md",)),
    ("Architecture", "How it is built: rooms, threads, rules.", (),
     tuple(f"doc/{page}.md" for page in ("architecture/overview", "architecture/softrnic", "architecture/meeting",
                                         "architecture/datagrams", "architecture/persist", "architecture/io", "policy",
                                         "architecture/rpmem", "architecture/mirror", "architecture/extend"))),
)


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def relative(target, page):
    return os.path.relpath(target, os.path.dirname(page) or ".")


class Manual:
    """The version's pages; names of pages are relative to the version's folder."""

    def __init__(self, tree, out):
        self.tree = tree
        self.version = re.search(r"^project\(\w+ VERSION ([\d.]+)", read(os.path.join(tree, "CMakeLists.txt")), re.M)[1]
        self.out = os.path.join(out, self.version)
        folder = os.path.join(tree, "doc/man")
        self.man = {name: os.path.join(folder, section, name) for section in sorted(os.listdir(folder))
                    for name in sorted(os.listdir(os.path.join(folder, section)))}
        self.documents = links.documents(tree)
        self.linked = set()  # files and folders of the tree that need a page

    def page(self, name, title, body, kind):
        up = relative("index.html", name)
        style = relative("style.css", name)
        write(os.path.join(self.out, name), f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} - rpma {self.version}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}">
</head>
<body class="{kind}">
<nav><a href="{up}">rpma {self.version}</a> / {html.escape(title)}</nav>
<main>
{body}
</main>
</body>
</html>
""")

    # --- manual pages -----------------------------------------------------------------------

    def _mandoc(self, name):
        # mandoc runs in the folder of the pages: a reference to a page in this folder becomes a
        # link inside the manual, other references lead to ELSEWHERE.
        done = subprocess.run(["mandoc", "-T", "html", "-O", f"fragment,man=%N.%S.html;{ELSEWHERE}", name],
                              cwd=self.flat, capture_output=True, text=True, check=False)
        if done.returncode or "class=\"manual-text\"" not in done.stdout:
            raise SystemExit(f"mandoc fails for {name}: {done.stderr}")
        return done.stdout

    def _man_page(self, name):
        stem, section = name.rsplit(".", 1)
        page = f"man/{name}.html"
        self.page(page, f"{stem}({section})", self.name_documents(self._mandoc(name), page), "man")

    def make_man_pages(self):
        with tempfile.TemporaryDirectory() as self.flat, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, path in self.man.items():
                os.symlink(os.path.abspath(path), os.path.join(self.flat, name))
            list(pool.map(self._man_page, self.man))

    def described(self, name):
        """The description after the page's name (.Nd)."""
        return " ".join(re.search(r"^\.Nd (.*)", read(self.man[name]), re.M)[1].replace("\\-", "-").split())

    # --- links in texts -------------------------------------------------------------------------

    def name_documents(self, body, page):
        """Turns the names of documents and manual pages in a text into links."""
        def document(found):
            return f'<a href="{relative(self.page_of(found[0]), page)}">{found[0]}</a>'

        def outside_of_links(part):
            return re.sub(r"(?<![\w/.-])(?:doc|bench)/[\w/-]+\.md\b",
                          lambda found: document(found) if found[0] in self.documents else found[0], part)
        parts = re.split(r"(<a .*?</a>|<[^>]*>)", body, flags=re.S)
        return "".join(part if part.startswith("<") else outside_of_links(part) for part in parts)

    def name_man_pages(self, body, page):
        def link(found):
            name = f"{found[2]}.{found[3]}"
            if name not in self.man:
                return found[0]
            return f'{found[1]}<a href="{relative(f"man/{name}.html", page)}">{found[2]}({found[3]})</a>'
        parts = re.split(r"(<a .*?</a>|<pre.*?</pre>|<h\d.*?</h\d>)", body, flags=re.S)
        return "".join(part if part.startswith(("<a ", "<pre", "<h")) else
                       re.sub(r"([\s>(])([a-z][\w-]*)\((\d)\)", link, part) for part in parts)

    def page_of(self, path):
        """The page of a file or folder of the tree."""
        if path in self.documents:
            return path[:-len("md")] + "html"
        if path.startswith("doc/man/"):
            return f"man/{os.path.basename(path)}.html"
        if os.path.isdir(os.path.join(self.tree, path)):
            readme = os.path.join(path, "README.md")
            return self.page_of(readme) if readme in self.documents else os.path.join(path, "index.html")
        if path.endswith((".svg", ".png")):
            return path
        return path + ".html"

    def _href(self, document, target):
        if links.EXTERNAL.match(target):
            return target
        path, mark, fragment = target.partition("#")
        if not path:
            return target
        file = os.path.normpath(os.path.join(os.path.dirname(document), path))
        if file not in self.documents and not file.startswith("doc/man/"):
            self.linked.add(file)
        return relative(self.page_of(file), self.page_of(document)) + mark + fragment

    # --- documents -----------------------------------------------------------------------------

    def _document(self, document):
        text = read(os.path.join(self.tree, document))
        body = subprocess.run(["cmark-gfm", "-e", "table", "-e", "autolink", "--unsafe"], input=text, text=True,
                              capture_output=True, check=True).stdout
        slugs = links.Slugs()

        def heading(found):
            slug = slugs.of(html.unescape(re.sub(r"<[^>]*>", "", found[2])))
            return f'<h{found[1]} id="{slug}">{found[2]} <a class="here" href="#{slug}">#</a></h{found[1]}>'
        body = re.sub(r"<h([1-6])>(.*?)</h\1>", heading, body, flags=re.S)
        body = re.sub(r'(href|src)="([^"]*)"', lambda found: f'{found[1]}="' + html.escape(
            self._href(document, html.unescape(found[2]))) + '"', body)
        title = re.search(r"^# (.*)", text, re.M)
        page = self.page_of(document)
        self.page(page, title[1] if title else document, self.name_man_pages(body, page), "document")

    def title(self, document):
        found = re.search(r"^# (.*)", read(os.path.join(self.tree, document)), re.M)
        return TITLES.get(document) or (found[1] if found else document)

    # --- files and folders that are targets of links ---------------------------------------------

    def _linked(self, path):
        source = os.path.join(self.tree, path)
        page = self.page_of(path)
        if not os.path.exists(source):
            raise SystemExit(f"there is no {path}, to which a document links")
        if path.endswith((".svg", ".png")):
            os.makedirs(os.path.dirname(os.path.join(self.out, page)), exist_ok=True)
            shutil.copy(source, os.path.join(self.out, page))
        elif os.path.isdir(source):
            names = [name for name in sorted(os.listdir(source)) if os.path.isfile(os.path.join(source, name))]
            items = "".join(f'<li><a href="{relative(self.page_of(os.path.join(path, name)), page)}">{name}</a></li>\n'
                            for name in names)
            self.linked.update(os.path.join(path, name) for name in names)
            self.page(page, path, f"<h1>{path}</h1>\n<ul>\n{items}</ul>", "document")
        else:
            self.page(page, path, f"<h1>{path}</h1>\n<pre><code>{html.escape(read(source))}</code></pre>", "document")

    def make_documents(self):
        for document in self.documents:
            self._document(document)
        done = set()
        while self.linked - done:
            path = min(self.linked - done)
            done.add(path)
            if path not in self.documents:
                self._linked(path)

    # --- the index ------------------------------------------------------------------------------

    def _man_item(self, name):
        stem, section = name.rsplit(".", 1)
        return (f'<li><a href="man/{name}.html">{stem}({section})</a> '
                f'<span>{html.escape(self.described(name))}</span></li>')

    def _document_item(self, document):
        return f'<li class="wide"><a href="{self.page_of(document)}">{html.escape(self.title(document))}</a></li>'

    def _subject(self, title, line, items):
        return f"<section>\n<h2>{title}</h2>\n<p>{line}</p>\n<ul>\n" + "\n".join(items) + "\n</ul>\n</section>\n"

    def make_index(self):
        """Writes the index. Each page is in one subject, the first one whose pattern matches it."""
        pages, documents, sections = dict(self.man), list(self.documents), []
        for title, line, patterns, of_subject in SUBJECTS:
            found = [name for pattern in patterns for name in pages if re.fullmatch(pattern, name)]
            for name in found:
                del pages[name]
            mine = [document for document in of_subject if document in documents]
            documents = [document for document in documents if document not in mine]
            items = [self._document_item(document) for document in mine] + [self._man_item(name) for name in found]
            if items:
                sections.append(self._subject(title, line, items))
        if pages:
            raise SystemExit(f"no subject of the index (SUBJECTS) takes {', '.join(pages)}")
        sections.append(self._subject("Everything else", "How it is built, tested and measured; changes; security.",
                                      [self._document_item(document) for document in documents]))
        self.page("index.html", "manual", "<h1>rpma: durable writes into another machine's memory</h1>\n"
                  + "".join(sections), "index")

    def make(self):
        shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out)
        shutil.copy(os.path.join(HERE, "style.css"), self.out)
        self.make_man_pages()
        self.make_documents()
        self.make_index()


class Page(html.parser.HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(read(path))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def check(out):
    """The number of links, and a line for each link without a target, and for each page to which no link leads."""
    pages = {os.path.join(folder, name): None for folder, _, names in os.walk(out) for name in names
             if name.endswith(".html")}
    for path in pages:
        pages[path] = Page(path)
    count, faults, reached = 0, [], {os.path.join(out, "index.html")}
    for path, page in pages.items():
        for target in page.targets:
            count += 1
            if links.EXTERNAL.match(target) or target.startswith("data:"):
                continue
            name, _, fragment = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            reached.add(file)
            if not os.path.isfile(file):
                faults.append(f"{path}: '{target}' leads to no file")
            elif fragment and file in pages and fragment not in pages[file].anchors:
                faults.append(f"{path}: '{target}' leads to no anchor")
    faults += [f"no link leads to {path}" for path in pages if path not in reached]
    return count, len(pages), faults


def make_versions(out):
    versions = sorted((name for name in os.listdir(out) if os.path.isfile(os.path.join(out, name, "index.html"))),
                      key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    items = "\n".join(f'<li><a href="{name}/index.html">rpma {name}</a></li>' for name in versions)
    write(os.path.join(out, "index.html"), f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>rpma: manuals</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="{versions[0]}/style.css"></head>
<body class="index"><main><h1>rpma: manuals</h1>
<ul>
{items}
</ul></main></body>
</html>
""")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    missing = [program for program in ("mandoc", "cmark-gfm") if not shutil.which(program)]
    if missing:
        sys.exit(f"these programs are not installed: {', '.join(missing)}")
    tree, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    manual = Manual(tree, out)
    manual.make()
    make_versions(out)
    count, pages, faults = check(out)
    print("\n".join(faults) or f"{pages} pages, {count} links, none of them broken: {manual.out}/index.html")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
