#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the parts of rpma, and the libraries with which it is linked, as SPDX 2.3 in JSON to the standard output.

sbom.py source TREE               each file with its licence, and the declared dependencies, installed or not
sbom.py linked NAME=FOLDER...     each installed file, and the libraries that each program and library requests from the
                                  loader (NEEDED), with the versions and licences of this machine's packages that have
                                  them. NAME is the name of the files in FOLDER, e.g. of a Debian package

SOURCE_DATE_EPOCH is the creation time in the document. Otherwise the output depends only on the described files and
packages.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = "BSD-3-Clause"
UNKNOWN = "NOASSERTION"
IDENTIFIER = re.compile(rb"SPDX-License-Identifier: ([\w.+-]+(?: (?:OR|AND|WITH) [\w.+-]+)*)")


class Failed(Exception):
    """The document cannot be made; the text has the reason."""


def output(*command):
    """The output of a program, or None if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return None if done.returncode else done.stdout


def licences():
    """{source package: licence} of the linked libraries, from licences.txt in this folder."""
    with open(os.path.join(HERE, "licences.txt"), encoding="ascii") as source:
        lines = [line.split(None, 1) for line in source if line.strip() and not line.startswith("#")]
    return {name: licence.strip() for name, licence in lines}


def identifier(*words):
    """
    An identifier in the document, of letters, digits, dots and hyphens. If other characters were replaced, a digest
    keeps identifiers different.
    """
    text = "-".join(words)
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", text)
    return f"SPDXRef-{plain}" if plain == text else f"SPDXRef-{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class Document:
    """The parts of an SPDX document, each once."""

    def __init__(self, name, version):
        self.name, self.version = name, version
        self.packages, self.files, self.relationships = {}, {}, []

    def relate(self, element, kind, other, comment=None):
        """Adds one relationship."""
        relationship = {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}
        if comment:
            relationship["comment"] = comment
        self.relationships.append(relationship)

    def foreign(self, name, version, licence, comment=None):
        """The identifier of another project's package. The package is added if it is new."""
        ident = identifier("Package", name)
        package = {"SPDXID": ident, "name": name, "downloadLocation": UNKNOWN, "filesAnalyzed": False,
                   "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": UNKNOWN}
        if version:
            package["versionInfo"] = version
        if comment:
            package["licenseComments"] = comment
        self.packages.setdefault(ident, package)
        return ident

    def _file(self, owner, root, name):
        with open(os.path.join(root, name), "rb") as source:
            content = source.read()
        stated = sorted({found.decode() for found in IDENTIFIER.findall(content[:4096])})
        sha1 = hashlib.sha1(content).hexdigest()
        ident = identifier("File", owner, name)
        self.files[ident] = {
            "SPDXID": ident, "fileName": f"./{name}",
            "checksums": [{"algorithm": "SHA1", "checksumValue": sha1},
                          {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()}],
            "licenseConcluded": " AND ".join(stated) or OURS, "licenseInfoInFiles": stated or ["NONE"],
            "copyrightText": UNKNOWN}
        return ident, sha1

    def ours(self, name, version, root, names):
        """Adds a package of this project with its files; returns {name of a file: its identifier}."""
        ident, found, sums = identifier("Package", name), {}, []
        for file in names:
            found[file], sha1 = self._file(name, root, file)
            sums.append(sha1)
            self.relate(ident, "CONTAINS", found[file])
        stated = sorted({licence for file in found.values() for licence in self.files[file]["licenseInfoInFiles"]})
        self.packages[ident] = {
            "SPDXID": ident, "name": name, "versionInfo": version, "downloadLocation": UNKNOWN, "filesAnalyzed": True,
            "packageVerificationCode": {
                "packageVerificationCodeValue": hashlib.sha1("".join(sorted(sums)).encode()).hexdigest()},
            "licenseConcluded": OURS, "licenseDeclared": OURS,
            "licenseInfoFromFiles": [licence for licence in stated if licence != "NONE"] or ["NONE"],
            "copyrightText": "Copyright 2026, the rpma authors"}
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", ident)
        return found

    def print(self):
        """Print the document. Its name space contains a digest, because different documents must not share one."""
        body = {"packages": list(self.packages.values()), "files": list(self.files.values()),
                "relationships": self.relationships}
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        head = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"{self.name}-{self.version}",
                "documentNamespace": f"https://rpma.invalid/spdx/{self.name}-{self.version}-{digest}",
                "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                                 "creators": ["Tool: rpma-sbom", "Organization: the rpma authors"]}}
        json.dump({**head, **body}, sys.stdout, indent=1)
        sys.stdout.write("\n")


def files_below(root):
    """The sorted names of the regular files below a folder. Links are omitted: they have no bytes of their own."""
    found = []
    for folder, _, names in os.walk(root):
        paths = (os.path.join(folder, name) for name in names)
        found += [os.path.relpath(path, root) for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return sorted(found)


def read(path):
    """The text of a file of the tree."""
    with open(path, encoding="utf-8") as source:
        return source.read()


def version_of(tree):
    """The version in CMakeLists.txt."""
    return re.search(r"^project\(rpma VERSION ([\d.]+)", read(os.path.join(tree, "CMakeLists.txt")), re.M)[1]


def describe_source(tree):
    """The files of an unpacked archive, and the dependencies that CMakeLists.txt and Debian's control file declare."""
    version, known = version_of(tree), licences()
    document = Document("rpma", version)
    document.ours("rpma", version, tree, files_below(tree))
    package = identifier("Package", "rpma")
    for name in re.findall(r"^\s*pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w.-]+)\)",
                           read(os.path.join(tree, "CMakeLists.txt")), re.M):
        if name not in known:
            raise Failed(f"CMakeLists.txt wants {name}, whose licence is not in contrib/release/licences.txt")
        document.relate(package, "DEPENDS_ON", document.foreign(name, None, known[name]), "by pkg-config")
    wanted = re.search(r"^Build-Depends:\n((?: .*\n)+)", read(os.path.join(tree, "contrib/debian/control")), re.M)[1]
    for name in re.findall(r"^ ([a-z0-9.+-]+)", wanted, re.M):
        other = document.foreign(f"debian-{name}", None, UNKNOWN)
        document.relate(other, "BUILD_DEPENDENCY_OF", package, "package of Debian")
    document.print()


def dynamic(path):
    """(the names of the libraries that it needs, its own name) of a program or library; None for other files."""
    with open(path, "rb") as source:
        if source.read(4) != b"\x7fELF":
            return None
    said = output("readelf", "--dynamic", "--wide", path)
    if said is None:
        raise Failed(f"readelf fails for {path}")
    own = re.search(r"\(SONAME\).*\[(.*)\]", said)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said), own and own[1]


class System:
    """The packages of this machine that contain the libraries with which this project's files are linked."""

    def __init__(self, document):
        self.document, self.known, self.found = document, licences(), {}
        cache = output("/sbin/ldconfig", "-p") or ""
        self.paths = {}
        for name, path in re.findall(r"^\t(\S+) \(.*\) => (\S+)$", cache, re.M):
            self.paths.setdefault(name, path)

    def _owner(self, name):
        """Debian's package of a library. dpkg records the paths of files with or without /usr."""
        path = name if name.startswith("/") else self.paths.get(name)
        if not path:
            return None
        real = os.path.realpath(path)
        for candidate in (path, real, re.sub("^/usr", "", path), re.sub("^/usr", "", real)):
            said = output("dpkg-query", "-S", candidate)
            if said:
                return said.split("\n")[0].split(": ")[0].split(",")[0]
        return None

    def package(self, name):
        """The identifier of the package that has the library."""
        if name not in self.found:
            owner = self._owner(name)
            if owner:
                package, version, source = output("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}",
                                                  owner).split("\t")
                licence = self.known.get(re.sub(r"-\d+$", "", source), UNKNOWN)  # gcc-12
                self.found[name] = self.document.foreign(package, version, licence, f"source package {source}")
            else:
                self.found[name] = self.document.foreign(name, None, UNKNOWN, "no package of this machine has it")
        return self.found[name]


def describe_linked(version, parts):
    """parts: {name: folder}. A library of one part can satisfy the needs of another part."""
    document = Document("rpma-linked", version)
    objects, own = [], {}
    for part, root in sorted(parts.items()):
        for name, ident in document.ours(part, version, root, files_below(root)).items():
            asked = dynamic(os.path.join(root, name))
            if not asked:
                continue
            objects.append((part, ident, asked[0]))
            # The drop-ins replace libraries of other packages; programs find them only by a path
            # that the launcher sets.
            if asked[1] and "softrnic-dropin" not in name:
                own[asked[1]] = (part, ident)
    system = System(document)
    for part, ident, needed in objects:
        for name in needed:
            other_part, other = own.get(name, (None, None))
            other = other or system.package(name)
            document.relate(ident, "DYNAMIC_LINK", other, f"NEEDED {name}")
            if other_part != part:
                depends = (identifier("Package", part), "DEPENDS_ON",
                           identifier("Package", other_part) if other_part else other)
                if not any((known["spdxElementId"], known["relationshipType"], known["relatedSpdxElement"]) == depends
                           for known in document.relationships):
                    document.relate(*depends)
    document.print()


def main(arguments):
    """The command line."""
    if "SOURCE_DATE_EPOCH" not in os.environ:
        raise Failed("SOURCE_DATE_EPOCH must be the build time in seconds since 1970")
    if len(arguments) == 2 and arguments[0] == "source":
        describe_source(arguments[1])
    elif len(arguments) >= 2 and arguments[0] == "linked" and all("=" in part for part in arguments[1:]):
        describe_linked(version_of(os.path.join(HERE, "../..")), dict(part.split("=", 1) for part in arguments[1:]))
    else:
        raise Failed(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failed as failure:
        sys.exit(f"sbom.py: {failure}")
