# SPDX-License-Identifier: BSD-3-Clause
"""The declarations in a public header of C, and their differences from the declarations of Python."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from typing import Any, Dict, List, NamedTuple, Tuple, Type

SCALARS = {
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "unsigned int": ctypes.c_uint,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
}

Structures = Dict[str, Type[ctypes.Structure]]


class Header(NamedTuple):
    constants: Dict[str, int]
    structures: Dict[str, Tuple[int, Dict[str, Tuple[str, int, int]]]]  # size; fields: type, offset, size
    functions: Dict[str, Tuple[str, ...]]  # result, arguments


def read(path: str, constants: str = "") -> Header:
    """
    Read a header: the names by regular expressions, their values by the compiler. constants: only constants whose
    names begin with this text.
    """
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", file.read(), flags=re.S).replace("\\\n", " ")
    names = re.findall(r"^#define[ \t]+(RPM\w+)[ \t]+[^\s\"]", text, re.M)
    text = re.sub(r"^#[^\n]*", "", text, flags=re.M)
    for body in re.findall(r"\benum \w+ \{(.*?)\}", text, re.S):
        names += re.findall(r"\bRPM\w+", body)
    structures = {name: fields(body) for name, body in re.findall(r"\bstruct (\w+) \{(.*?)\};", text, re.S)}
    text = re.sub(r"\{.*?\}", "", re.sub(r'extern "C" \{', "", text), flags=re.S)
    functions = {
        name: (type_of(result), *(type_of(a) for a in arguments.split(",") if a.strip() != "void"))
        for result, name, arguments in re.findall(r"([\w ]+[ *]+)\b(rpm\w+)\(([^()]*)\);", text)
    }
    return measured(path, [name for name in names if re.match(constants, name)], structures, functions)


def fields(body: str) -> Dict[str, str]:
    """{name: type} of the members. The type of an array ends with `[]`."""
    found = {}
    for line in (line.strip() for line in body.split(";")):
        pointer = re.search(r"\(\*(\w+)\)", line)
        if pointer:
            found[pointer[1]] = "void *"
        elif line:
            kind, first = re.match(r"(.*?[ *])(\w+(?: *\[.*?\])*(?:,.*)?)$", line, re.S).groups()  # type: ignore[union-attr]
            for name in first.split(","):
                found[re.search(r"\w+", name)[0]] = type_of(kind + "x") + "[]" * ("[" in name)  # type: ignore[index]
    return found


def type_of(declaration: str) -> str:
    """The type without const and without the declared name."""
    if declaration.strip() == "...":
        return "..."
    words = re.sub(r"\b(const|extern|enum \w+)\b", lambda m: "int" * m[0].startswith("enum"), declaration)
    words = " ".join(words.replace("*", " * ").split())
    kind = re.match(r"((?:struct \w+|unsigned int|\w+)(?: \*)*)", words)
    assert kind, declaration
    return kind[1]


def measured(path: str, names: List[str], structures: Dict[str, Dict[str, str]], functions: Any) -> Header:
    lines = [f'printf("constant {name} %lld\\n", (long long){name});' for name in names]
    for name, members in structures.items():
        lines.append(f'printf("size {name} %zu\\n", sizeof(struct {name}));')
        for member in members:
            at = f"offsetof(struct {name}, {member}), sizeof(((struct {name} *)0)->{member})"
            lines.append(f'printf("field {name} {member} %zu %zu\\n", {at});')
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "x.c"), os.path.join(folder, "x")
        with open(source, "w") as file:
            file.write(f'#include "{path}"\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{{\n')
            file.write("\n".join(lines) + "\n}\n")
        include = "-I" + os.environ["RPMA_INCLUDE"]
        subprocess.run([os.environ["CC"], "-D_GNU_SOURCE", "-w", include, source, "-o", program], check=True)
        output = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    constants: Dict[str, int] = {}
    sizes: Dict[str, int] = {}
    places: Dict[str, Dict[str, Tuple[str, int, int]]] = {name: {} for name in structures}
    for kind, name, *rest in (line.split() for line in output.splitlines()):
        if kind == "constant":
            constants[name] = int(rest[0])
        elif kind == "size":
            sizes[name] = int(rest[0])
        else:
            places[name][rest[0]] = (structures[name][rest[0]], int(rest[1]), int(rest[2]))
    return Header(constants, {name: (sizes[name], places[name]) for name in structures}, functions)


def python_type(kind: str, structures: Structures) -> Any:
    """The type for ctypes. An object that only the library accesses is an address."""
    if not kind.endswith("*"):
        return SCALARS.get(kind) or structures.get(kind.replace("struct ", "")) or (None if kind == "void" else kind)
    inner = kind[:-1].strip()
    if inner in ("char", "void"):
        return ctypes.c_char_p if inner == "char" else ctypes.c_void_p
    if inner.startswith("struct ") and not inner.endswith("*") and inner[7:] not in structures:
        return ctypes.c_void_p
    return ctypes.POINTER(python_type(inner, structures))


def differences(header: Header, prototypes: Any, structures: Structures, left_out: Dict[str, str]) -> List[str]:
    """Differences of functions and structures, in both directions."""
    found = []
    for name in sorted({*prototypes, *left_out} ^ {*header.functions}):
        found.append(f"{name} is declared only {'in C' if name in header.functions else 'in Python'}")
    for name in sorted({*prototypes} & {*header.functions}):
        want = [python_type(kind, structures) for kind in header.functions[name]]
        got = list(prototypes[name])
        # The Python declarations are allowed to pass an address as a pointer without a type.
        same = [w is g or (g is ctypes.c_void_p and w is not None and hasattr(w, "contents")) for w, g in zip(want, got)]
        if len(want) != len(got) or not all(same):
            found.append(f"{name} is {want} in C and {got} in Python")
    for name, structure in structures.items():
        if name in header.structures:
            found += structure_differences(name, structure, header.structures[name], structures)
    missing = {name for name in header.structures if name not in structures}
    return found + [f"struct {name} is not declared in Python" for name in sorted(missing)]


def structure_differences(name: str, structure: Any, have: Any, structures: Structures) -> List[str]:
    size, members = have
    found = [] if ctypes.sizeof(structure) == size else [f"struct {name} has {size} bytes in C"]
    declared = dict(structure._fields_)
    for member in sorted({*declared} | {*members}):
        if member not in declared or member not in members:
            found.append(f"struct {name}: {member} is only on one side")
            continue
        kind, offset, length = members[member]
        field = getattr(structure, member)
        want, got = python_type(kind.replace("[]", ""), structures), declared[member]
        if kind.endswith("[]"):
            got = got._type_
        is_same = got is want or (got is ctypes.c_void_p and kind.endswith("*")) or _is_function(got)
        if (field.offset, field.size) != (offset, length) or not is_same:
            found.append(f"struct {name}: {member} is {kind} at {offset}, {length} bytes, in C and {got} at {field.offset} in Python")
    return found


def _is_function(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ctypes._CFuncPtr)  # type: ignore[attr-defined]
