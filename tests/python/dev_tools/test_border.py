"""Rules of the border between C++ and Python, read off its sources.

A lock that is held while Python code runs is a deadlock: that code lets go of the interpreter lock,
another thread takes it and waits for the first lock. The variable of a function that is initialised
at its first use is under such a lock, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest

from source_tree import ROOT

SOURCES = sorted((ROOT / "python_bindings" / "csrc").rglob("*.[ch]*"))

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*(?:\\\n[^\n]*)*)
    |(?P<text>R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[\w.']|[eE][+-])*)
    |(?P<mark>::|->|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    text: str
    line: int
    kind: str


def tokens(source: str) -> list[Token]:
    found, line = [], 1
    for match in TOKEN.finditer(source):
        if match.lastgroup != "skip":
            found.append(Token(match.group(), line, match.lastgroup or ""))
        line += match.group().count("\n")
    return found


OPEN, CLOSE = "([{", ")]}"


def block(all_tokens: list[Token], at: int, ends: str) -> list[Token]:
    """The tokens from `at` up to one of `ends` that is no deeper, or to the end of the block."""
    depth = 0
    for i in range(at, len(all_tokens)):
        text = all_tokens[i].text
        if depth == 0 and (text in ends or text in CLOSE):
            return all_tokens[at:i]
        depth += (text in OPEN) - (text in CLOSE)
    return all_tokens[at:]


def in_functions(all_tokens: list[Token]) -> Iterator[int]:
    """The places of the tokens inside of function bodies."""
    scopes: list[str] = []
    before: list[str] = []
    for i, token in enumerate(all_tokens):
        if token.text == "{":
            is_class = {"class", "struct", "enum", "union"} & set(before) and ")" not in before
            space = "namespace" in before or before[:1] == ["extern"]
            scopes.append("namespace" if space else "class" if is_class else "function")
        elif token.text == "}":
            scopes.pop()
        elif scopes and scopes[-1] == "function":
            yield i
        if token.text in "{};":
            before = []
        else:
            before.append(token.text)


# The words that make a value without a look at Python.
PURE = {"slot", "fast", "fast_method", "reinterpret_cast", "static_cast", "sizeof", "offsetof"}


def first_uses(source: str) -> list[int]:
    """The lines of variables that a function initialises at its first use by what may be long."""
    found = []
    all_tokens = tokens(source)
    for at in in_functions(all_tokens):
        if all_tokens[at].text not in ("static", "thread_local"):
            continue
        statement = block(all_tokens, at, ";")
        texts = [t.text for t in statement]
        if "constexpr" in texts:
            continue
        value = next((i for i, text in enumerate(texts) if text in ("=", "{", "(")), len(texts))
        for i in range(value, len(texts) - 1):
            if texts[i] == "new":
                break  # an empty container, or one of constants
            after = texts[i + 1]
            if after == "<":  # template arguments
                after = texts[min(texts.index(">", i) + 1, len(texts) - 1)]
            is_call = statement[i].kind == "word" and after == "(" and texts[i] not in PURE
            if is_call or (texts[i] == "[" and after in ("]", "&")):
                found.append(statement[i].line)
                break
    return found


LOCKS = {"lock_guard", "unique_lock", "scoped_lock", "shared_lock", "MetaLock"}
ENTERS_PYTHON = re.compile(
    r"(_?Py[A-Z_]\w*|AcquireGil|ReleaseGil|without_gil|in_python|import_attribute|attribute|py)$"
)


def python_under_locks(source: str) -> list[int]:
    """The lines that enter Python, or let go of its lock, while a C++ lock is held."""
    all_tokens = tokens(source)
    return [
        token.line
        for at in in_functions(all_tokens)
        if all_tokens[at].text in LOCKS
        for token in block(all_tokens, at, "")
        if ENTERS_PYTHON.match(token.text)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_variable_is_initialised_by_python_code_at_its_first_use(path: Path) -> None:
    lines = first_uses(path.read_text())
    assert not lines, (
        f"{path}:{lines}: expected a constant, as a thread that waits for the initialiser holds "
        "the interpreter lock that it needs; use Kept"
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_lock_is_held_while_python_code_runs(path: Path) -> None:
    lines = python_under_locks(path.read_text())
    assert not lines, f"{path}:{lines}: expected no call of Python's under a lock of C++"


def test_one_way_to_let_go_of_the_interpreter_lock() -> None:
    """The others end the process where a thread works until the end of the program."""
    other = re.compile(
        r"gil_scoped_release|gil_scoped_acquire|PyEval_(Save|Restore)Thread|PyGILState_Ensure"
        r"|Py_BEGIN_ALLOW"
    )
    for path in SOURCES:
        if path.name != "gil.cc":
            assert not other.findall(path.read_text()), f"{path}: use ReleaseGil or AcquireGil"


FUNCTION = "namespace a {{ PyObject* f(PyObject* self) {{ return guarded([&] {{ {} }}); }} }}"


@pytest.mark.parametrize(
    "body",
    [
        'static PyObject* name = import_attribute("a", "b").release();',
        'static PyObject* const name = PyUnicode_InternFromString("a");',
        "static PyObject* const name = [] { return make(); }();",
        "static Object name{make(1)};",
        "static const auto name(find<int>(2));",
        "if (x) { static PyObject* name = call(); }",
    ],
)
def test_the_check_finds_first_uses(body: str) -> None:
    assert first_uses(FUNCTION.format(body)) == [1]
    assert first_uses("PyObject* f() { " + body + " }") == [1]


@pytest.mark.parametrize(
    "body",
    [
        "static PyObject* cache = nullptr;",
        "static auto* all = new std::map<int, PyObject*>();",
        'static PyMethodDef table[] = {{"a", slot(&call), METH_O, nullptr}, {}};',
        'static constexpr const char* kNames[] = {"a"};',
        "static std::vector<int> list;",
    ],
)
def test_the_check_lets_constants_pass(body: str) -> None:
    assert first_uses("PyObject* f() { " + body + " }") == []


def test_the_check_finds_python_under_locks() -> None:
    lock = "const std::lock_guard lock(mutex);"
    assert python_under_locks(f"void f() {{\n {lock}\n Py_DECREF(x); }}") == [3]
    assert python_under_locks(f"void f() {{ {lock} {{ in_python([&] {{ g(); }}); }} }}") == [1]
    assert python_under_locks(f"void f() {{ {{ {lock} g(); }} Py_DECREF(x); }}") == []
