"""Rules of ./dev lint about native_functions.yaml and derivatives.yaml: the order of the sections,
of the entries in them and of the keys of an entry.

Each order is written once, where people read it: the families in docs/design.md, the keys in
docs/entry-keys.md. schemac does not check them: a library from outside may have other orders.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

FUNCTIONS, DERIVATIVES = "native_functions.yaml", "derivatives.yaml"
DESIGN, KEYS = "docs/design.md", "docs/entry-keys.md"
READ = (FUNCTIONS, DERIVATIVES, DESIGN, KEYS)

SECTION = re.compile(r"# ---- (.+) ----$")
KEY = re.compile(r"(?:- |  )(\w[\w, ]*):(?: |$)")
NAME = re.compile(r"- \w+: ([^(]+)\(")
# An argument of a schema; its default follows, the next argument, or the end.
ARGUMENT = re.compile(r" (\w+)(?=[=,)])")
FAMILIES = re.compile(r"A \*\*family\*\* is a section[^:]*:([^.]*)\.")
FIRST_KEYS = ("name", "output_differentiability", "formulas")


class Word(NamedTuple):
    """A piece of a file."""

    text: str
    line: int
    column: int


class Entry(NamedTuple):
    """An entry of either file; `name` is add.Tensor."""

    name: Word
    section: str
    keys: list[Word]
    schema: str


def problems(texts: Mapping[str, str]) -> Iterator[str]:
    """The breaches of all rules; `texts` are the two files and the two pages by their paths."""
    functions, derivatives = texts[FUNCTIONS], texts[DERIVATIVES]
    known = families(texts[DESIGN])
    used = {section.text for section in sections(derivatives)}
    yield from sections_out_of_order(FUNCTIONS, functions, known)
    yield from sections_out_of_order(DERIVATIVES, derivatives, [f for f in known if f in used])
    yield from overloads_apart(functions)
    yield from derivatives_out_of_order(derivatives, functions)
    order = keys(texts[KEYS])
    for entry in entries(functions):
        yield from keys_out_of_order(FUNCTIONS, entry, order, f"{KEYS} lists them in order")
    for entry in entries(derivatives):
        arguments = ARGUMENT.findall(entry.schema.rpartition(" -> ")[0])
        order = [*FIRST_KEYS, *arguments]
        yield from keys_out_of_order(DERIVATIVES, entry, order, "arguments go as in the schema")


# ---- reading -------------------------------------------------------------------------------------


def families(design: str) -> list[str]:
    """The families in the order of docs/design.md."""
    found = FAMILIES.search(design)
    return [name.strip() for name in found[1].split(",")] if found else []


def keys(page: str) -> list[str]:
    """The keys of an entry in the order of the first table of docs/entry-keys.md."""
    table = page.partition("\n| key | value | meaning |\n")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)`", table, re.MULTILINE)


def sections(text: str) -> list[Word]:
    """The headings of a file."""
    return [
        Word(match[1], number, match.start(1) + 1)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := SECTION.match(line))
    ]


def entries(text: str) -> list[Entry]:
    """The entries of a file. A text that is not laid out as one is left to schemac."""
    found: list[Entry] = []
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := SECTION.match(line):
            section = match[1]
        if match := NAME.match(line):
            name = Word(match[1], number, match.start(1) + 1)
            found.append(Entry(name, section, [], line))
        if found and (match := KEY.match(line)):
            found[-1].keys.append(Word(match[1], number, match.start(1) + 1))
    return found


def base_of(name: Word) -> str:
    """The name that overloads share: add of add.Tensor."""
    return name.text.split(".")[0]


# ---- rules ---------------------------------------------------------------------------------------


def problem(file: str, at: Word, expected: str, got: str, why: str) -> str:
    return f"{file}:{at.line}:{at.column}: expected {expected}, got {got}; {why}"


def sections_out_of_order(file: str, text: str, expected: Sequence[str]) -> Iterator[str]:
    """The first heading that is not the one that the list of families has there."""
    end = Word("", text.count("\n") + 1, 1)
    for got, want in zip_longest(sections(text), expected):
        if got is None or got.text != want:
            yield problem(
                file,
                got or end,
                f"the section '{want}'" if want else "no further section",
                f"'{got.text}'" if got else "the end of the file",
                f"{DESIGN} lists the families",
            )
            return


def overloads_apart(text: str) -> Iterator[str]:
    """Entries that have another name's entry between themselves and the overload before them."""
    last: dict[str, Word] = {}
    before = Word("", 0, 0)
    for entry in entries(text):
        other = last.get(base_of(entry.name), before)
        if other != before:
            yield problem(
                FUNCTIONS,
                entry.name,
                f"{entry.name.text} directly after {other.text} on line {other.line}",
                f"it after {before.text}",
                "overloads of one name stand together",
            )
        last[base_of(entry.name)] = before = entry.name


def derivatives_out_of_order(text: str, functions: str) -> Iterator[str]:
    """Formulas that stand elsewhere than their operators: in another section, or after one that
    comes later there.
    """
    places = {entry.name.text: (i, entry) for i, entry in enumerate(entries(functions))}
    last, before = -1, ""
    for entry in entries(text):
        name = entry.name.text
        if name not in places:  # schemac says so
            continue
        place, operator = places[name]
        expected = got = ""
        if entry.section != operator.section:
            expected, got = f"{name} in the section '{operator.section}'", f"'{entry.section}'"
        elif place < last:
            expected, got = f"{name} before {before}", "it after"
        else:
            last, before = place, name
        if expected:
            why = f"its operator is at {FUNCTIONS}:{operator.name.line}"
            yield problem(DERIVATIVES, entry.name, expected, got, why)


def keys_out_of_order(file: str, entry: Entry, order: Sequence[str], why: str) -> Iterator[str]:
    """The first key of an entry that the order lacks, or that another should precede."""
    places = {key: i for i, key in enumerate(order)}

    def place(key: Word) -> int:
        # The key of a formula may name several arguments: "self, other".
        return places.get(key.text.split(",")[0], -1)

    for key in entry.keys:
        if place(key) < 0:
            yield problem(file, key, f"one of the keys {', '.join(order)}", f"'{key.text}'", why)
            return
    wanted = sorted(entry.keys, key=place)
    for key, want in zip(entry.keys, wanted):
        if key != want:
            texts = [", ".join(word.text for word in words) for words in (wanted, entry.keys)]
            yield problem(file, key, f"the keys {texts[0]}", texts[1], why)
            return
