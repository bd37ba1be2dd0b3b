"""fx.experimental.unification: structures with variables, and functions chosen by signatures."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
import copy
import pickle
import warnings

import pytest

from treadle.fx.experimental.unification import (
    Var,
    isvar,
    match,
    multipledispatch,
    reify,
    unifiable,
    unify,
    utils,
    var,
    variables,
    vars,
)
from treadle.fx.experimental.unification import (
    unification_tools as tools,
)
from treadle.fx.experimental.unification.more import reify_object, unify_object
from treadle.fx.experimental.unification.multipledispatch import conflict, core, dispatcher
from treadle.fx.experimental.unification.multipledispatch import utils as signatures
from treadle.fx.experimental.unification.multipledispatch.variadic import Variadic, isvariadic

x, y = var("x"), var("y")


def text_of(error, function, *args, **kwargs):
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    return str(caught.value)


# ---- variables ----


def test_variables():
    assert x == Var("x") and x != y and hash(x) == hash(Var("x")) and repr(x) == "~x"
    assert x.token == "x" and var() != var() and len(set(vars(3))) == 3
    assert text_of(TypeError, var, 1, 2) == "Var: expected at most one token, got 2"
    assert isvar(x) and not isvar("x") and not isvar([x])
    with variables(1, "a"):
        assert isvar(1) and isvar("a") and not isvar(2) and not isvar([1])
        assert unify((1, "a"), (2, 3), {}) == {1: 2, "a": 3}
    assert not isvar(1)


@pytest.mark.parametrize(
    ("u", "v", "given", "expected"),
    [
        ((x, 2), (1, y), {}, {x: 1, y: 2}),
        ((x, x), (1, 2), {}, False),
        ((x, x), (1, 1), {}, {x: 1}),
        (1, 1.0, {}, {}),
        (1, 2, {}, False),
        (x, y, {}, {x: y}),
        ([1, x], (1, 2), {}, {x: 2}),
        ((1, 2), (1, 2, 3), {}, False),
        ({"a": 1, "b": 2}, {"b": y, "a": x}, {}, {x: 1, y: 2}),
        ({"a": 1}, {"b": 1}, {}, False),
        (slice(1, x), slice(1, 2), {}, {x: 2}),
        ((x, (y, 3)), (1, (2, 3)), {}, {x: 1, y: 2}),
        (x, y, {x: 2}, {x: 2, y: 2}),
        (x, 1, {x: y}, {x: y, y: 1}),
        (x, 1, {x: 2}, False),
        (iter((1, 2)), iter((1, x)), {}, {x: 2}),
    ],
)
def test_unify(u, v, given, expected):
    before = dict(given)
    assert unify(u, v, given) == expected and given == before


def test_reify():
    assert reify([1, (x, [y])], {x: 2, y: x}) == [1, (2, [2])]
    assert reify({"a": x, x: y}, {x: 1}) == {"a": 1, x: y}
    assert reify(slice(x, y), {x: 1}) == slice(1, y)
    assert list(reify(iter((1, x)), {x: 2})) == [1, 2] and reify({x}, {x: 2}) == {x}
    assert unify((1, x), (y, 2)) == {x: 2, y: 1}


@unifiable
class Point:
    def __init__(self, a, b):
        self.a, self.b = a, b


@unifiable
class Pair:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.mark.parametrize("kind", [Point, Pair])
def test_objects_of_a_program(kind):
    assert unify(kind(1, x), kind(1, 2), {}) == {x: 2}
    assert unify(kind(1, x), kind(3, 2), {}) is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = reify([kind(x, y)], {x: 1, y: 5})[0]
    assert type(made) is kind and (made.a, made.b) == (1, 5)
    same = kind(1, 2)
    assert reify_object(same, {}) is same and unify_object(same, (1, 2), {}) is False


# ---- patterns ----


def test_match():
    names = {}

    @match.match(0, namespace=names)
    def fib(n):
        return 0

    @match.match(1, namespace=names)
    def fib(n):  # noqa: F811
        return 1

    @match.match(var("n"), namespace=names)
    def fib(n):  # noqa: F811
        return fib(n - 1) + fib(n - 2)

    assert [fib(i) for i in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13] and names == {"fib": fib}
    other = match.Dispatcher("d")
    other.register(1, 2)(max)
    text = "d: expected arguments that fit (1, 2), got (3,)"
    assert other(1, 2) == 2 and text_of(NotImplementedError, other, 3) == text
    text = "match: expected the keywords namespace and Dispatcher, got other"
    assert text_of(TypeError, match.match, 1, other=2) == text


def test_match_by_variables():
    d = match.VarDispatcher("d")
    d.add((1, x), lambda x: ("one", x))
    d.add((x, y), lambda y, x: ("any", x, y))
    assert d(1, 5) == ("one", 5) and d(2, 5) == ("any", 2, 5)
    assert d.resolve((2, [6]))[1] == {x: 2, y: (6,)}
    text = "d: expected arguments by position, got k by name"
    assert text_of(TypeError, d, 1, k=2) == text


def test_which_pattern_is_more_special():
    more = match.supercedes
    assert more((1, x), (x, y)) and not more((x, y), (1, x)) and more(1, x) and not more(1, 2)
    assert more((x, x), (x, y)) and not more((x, y), (x, x)) and not more((x, 1), (1, x))
    assert match.edge((1, x), (x, y)) and not match.edge((1, x), (1, x))
    assert match.ordering([[x, y], (1, x), (1, 1)]) == [(1, 1), (1, x), (x, y)]


# ---- signatures ----


def combined():
    f = multipledispatch.Dispatcher("f", "text of f")
    f.add((int,), lambda a: ("int", a))
    f.add((object,), lambda a: ("object", a))
    f.add((str, (int, float)), lambda a, b: ("pair", b))
    f.add(([float],), lambda *a: ("floats", a))
    return f


def test_dispatcher():
    f = combined()
    assert f(1) == ("int", 1) and f(True) == ("int", True) and f([]) == ("object", [])
    assert f("a", 2.0) == ("pair", 2.0) and f(1.0, 2.0) == ("floats", (1.0, 2.0))
    assert f() == ("floats", ()) and f.dispatch(bytes, bytes) is None
    assert [g(5)[0] for g in f.dispatch_iter(int)] == ["int", "object"]
    assert repr(f) == str(f) == "<dispatched f>" and f.name == f.__name__ == "f"
    assert f.ordering.index((int,)) < f.ordering.index((object,))
    assert "text of f" in f.__doc__ and "int" in f.__doc__
    text = "f: expected arguments of a known signature, got (int, int)"
    assert text_of(NotImplementedError, f, 1, 2) == text
    with pytest.warns(FutureWarning, match="dispatch.*does the same"):
        assert f.resolve((int,))(4) == ("int", 4)


def test_what_is_no_signature():
    add = multipledispatch.Dispatcher("f").add
    assert text_of(TypeError, add, (int, 3), len) == (
        "f: expected types in a signature, got 3 in (int, 3)"
    )
    assert text_of(TypeError, add, ([int], int), len) == (
        "f: expected a list of types as the last place of a signature, got it at place 1 of 2"
    )
    assert text_of(TypeError, add, ([int, float],), len) == (
        "f: expected one type or one tuple of types in the list, got 2"
    )


def add_one(a: int, b: float):
    """The sum."""
    return a + b


def test_annotations_and_copies():
    f = multipledispatch.Dispatcher("f")
    assert f.register()(add_one) is add_one and f(1, 2.0) == 3.0
    assert f.get_func_annotations(add_one) == (int, float)
    assert f.get_func_annotations(lambda a: a) is None
    f = multipledispatch.Dispatcher("f")
    f.add((int,), abs)
    assert f.__getstate__() == {"name": "f", "funcs": {(int,): abs}}
    assert copy.copy(f)(-1) == 1 and pickle.loads(pickle.dumps(f))(-2) == 2
    f.add((float, float), add_one)
    assert f._help(1.0, 2.0) == "The sum." and "def add_one" in f._source(1.0, 2.0)
    text = "f: expected arguments of a known signature, got (str)"
    assert text_of(TypeError, f._source, "a") == text


def test_implementations_that_pass_the_call_on(capsys):
    f = multipledispatch.Dispatcher("f")

    @f.register(int)
    def _(a):
        """Of ints."""
        raise multipledispatch.MDNotImplementedError

    text = "f: expected an implementation that takes (int), got MDNotImplementedError from each"
    assert text_of(NotImplementedError, f, 1) == text
    f.add((object,), lambda a: "object")
    assert f(1) == "object"
    f.help(1)
    assert capsys.readouterr().out == "Of ints.\n"


def test_ambiguous_signatures_warn():
    f = multipledispatch.Dispatcher("f")
    f.add((int, object), lambda a, b: "first")
    f.add((object, int), lambda a, b: "second")
    with pytest.warns(conflict.AmbiguityWarning) as caught:
        assert f(1, 2) == "second"
    assert str(caught[0].message) == (
        "f: expected one signature that fits best, got several for the same call:\n"
        "    (int, object) and (object, int)\n"
        "An implementation for each of these decides:\n"
        "    @dispatch(int, int)"
    )
    seen = []
    f.reorder(on_ambiguity=lambda d, pairs: seen.append((d, pairs)))
    assert seen == [(f, {((int, object), (object, int))})]
    f.add((int, int), lambda a, b: "third")
    assert conflict.ambiguities(f.funcs) == set()


def test_functions_by_name():
    names = {}

    @core.dispatch(int, namespace=names)
    def kind(a):
        return "int"

    @core.dispatch(str, namespace=names)
    def kind(a):  # noqa: F811
        return "str"

    assert kind(1) == "int" and kind("a") == "str" and names == {"kind": kind}

    class Shown:
        @core.dispatch(int)
        def f(self, a):
            return self, "int"

        @core.dispatch(str)
        def f(self, a):  # noqa: F811
            return self, "str"

    one = Shown()
    assert one.f(1) == (one, "int") and one.f("a") == (one, "str")
    text = "f: expected arguments of a known signature, got (float)"
    assert text_of(NotImplementedError, one.f, 1.0) == text
    text = "dispatch: expected no keyword but namespace, got name"
    assert text_of(TypeError, core.dispatch, int, name=1) == text


def test_relations_of_signatures():
    ints, objects = Variadic[int], Variadic[object]
    more = conflict.supercedes
    assert more((int,), (object,)) and not more((object,), (int,)) and more((), (ints,))
    assert more((int, int), (ints,)) and not more((int,), (int, ints)) and more((ints,), (objects,))
    assert not more((ints,), (int,)) and more((int, ints), (ints,))
    meet = conflict.consistent
    assert meet((int, object), (object, int)) and meet((int, int), (ints,)) and meet((), (ints,))
    assert not meet((int,), (int, ints)) and not meet((), (int,)) and not meet((str,), (int,))
    assert conflict.ambiguous((int, object), (object, int)) and not conflict.ambiguous((), (ints,))
    assert conflict.ordering([(object,), (int,), (bool,)]) == [(bool,), (int,), (object,)]
    assert conflict.super_signature([(int, object), (object, int)]) == [int, int]
    text = "super_signature: expected signatures of one length, got [1, 2]"
    assert text_of(AssertionError, conflict.super_signature, [(int,), (int, int)]) == text
    assert conflict.edge((int,), (object,)) and not conflict.edge((int,), (int,))


def test_variadic():
    ints = Variadic[int]
    assert ints == Variadic[(int,)] and hash(ints) == hash(Variadic[int]) != Variadic[str]
    assert Variadic[int, str] == Variadic[str, int] and repr(ints).endswith("Variadic[int]'>")
    assert ints.variadic_type == (int,) and isvariadic(ints) and not isvariadic(Variadic)
    assert issubclass(bool, ints) and not issubclass(str, ints)
    assert issubclass(ints, Variadic[int, str])
    assert text_of(TypeError, lambda: Variadic[3]) == (
        "Variadic: expected a type or a tuple of types, got a int"
    )
    fits = dispatcher.variadic_signature_matches
    assert fits((int, int), (ints,)) and not fits((int, str), (ints,)) and fits((), (ints,))
    assert fits((int,), (int, ints)) and not fits((int, int, str), (int, ints))
    text = "variadic_signature_matches: expected a signature, got an empty one"
    assert text_of(AssertionError, fits, (int,), ()) == text
    with pytest.warns(FutureWarning, match="no effect and can be removed"):
        multipledispatch.halt_ordering()
    with pytest.warns(FutureWarning, match="reorder"):
        multipledispatch.restart_ordering()


# ---- small functions ----


def test_utils():
    assert utils.hashable(1) and not utils.hashable([])
    assert utils.transitive_get(1, {1: 2, 2: 3}) == 3 and utils.transitive_get([1], {}) == [1]
    assert utils.raises(ZeroDivisionError, lambda: 1 / 0) and not utils.raises(KeyError, dict)
    assert utils.reverse_dict({"a": (1, 2), "b": (2,)}) == {1: ("a",), 2: ("a", "b")}
    assert utils.freeze([1, {2: [3]}]) == (1, frozenset({(2, (3,))}))
    assert utils.xfail(lambda: 1 / 0) is None
    assert signatures.expand_tuples([(1, 2), (3, 4)]) == [(1, 3), (2, 3), (1, 4), (2, 4)]
    assert signatures.typename((int, float)) == "(int, float)"
    assert signatures.typename((int,)) == "int"
    assert signatures.groupby(len, ["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}
    assert signatures._toposort({1: (2, 3), 2: (3,)}) == [1, 2, 3]
    text = "toposort: expected edges without a cycle, got a cycle"
    assert text_of(ValueError, signatures._toposort, {1: (2,), 2: (1,)}) == text


def test_tools():
    ordered = collections.OrderedDict
    assert tools.merge({1: 2}, {1: 3, 4: 5}) == tools.merge([{1: 2}, {1: 3, 4: 5}]) == {1: 3, 4: 5}
    assert type(tools.merge({1: 2}, factory=ordered)) is ordered
    assert tools.merge_with(sum, {1: 1, 2: 2}, {1: 10}) == {1: 11, 2: 2}
    assert tools.valmap(str, {1: 2}) == {1: "2"} and tools.keymap(str, {1: 2}) == {"1": 2}
    assert tools.itemmap(reversed, {1: 2}) == {2: 1}
    assert tools.valfilter(bool, {1: 0, 2: 1}) == {2: 1}
    assert tools.keyfilter(bool, {0: 1, 2: 1}) == {2: 1}
    assert tools.itemfilter(lambda item: item[0] > 1, {1: 2, 3: 4}) == {3: 4}
    given = {"a": {"c": 1}}
    assert tools.assoc(given, "b", 2) == {"a": {"c": 1}, "b": 2}
    assert tools.assoc_in(given, ["a", "b"], 2) == {"a": {"c": 1, "b": 2}}
    assert tools.update_in(given, ["a", "c"], lambda v: v + 1) == {"a": {"c": 2}}
    assert tools.update_in({}, [1, 2], str, default=0) == {1: {2: "0"}}
    assert tools.dissoc({1: 2, 3: 4, 5: 6}, 1, 9) == {3: 4, 5: 6} and given == {"a": {"c": 1}}
    assert tools.get_in(["a", "c"], given) == 1 and tools.get_in(["z"], given, 7) == 7
    assert text_of(KeyError, tools.get_in, ["z"], given, no_default=True) == "'z'"
    assert tools.getter([0, 1])("ab") == ("a", "b") and tools.first("ab") == "a"
    assert tools.groupby(0, [(1, 2), (1, 3)]) == {1: [(1, 2), (1, 3)]}
    text = "merge: expected no keyword but factory, got bad"
    assert text_of(TypeError, tools.merge, {}, bad=1) == text
    text = "update_in: expected at least one key, got none"
    assert text_of(ValueError, tools.update_in, {}, [], str) == text
