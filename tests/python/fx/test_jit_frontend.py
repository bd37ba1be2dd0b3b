"""TorchScript's front: programs as trees, annotations as types. Trees and types were compared with
those that PyTorch prints."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import dataclasses
import enum
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

import treadle
from treadle.jit import annotations, frontend


def expression(text: str) -> str:
    context = frontend.make_source_context(text, "file", 7, 0)
    node: Any = ast.parse(text).body[0]
    return str(frontend.build_expr(context, node.value))


def statement(text: str) -> str:
    context = frontend.make_source_context(text, "file", 7, 0)
    return str(frontend.build_stmt(context, ast.parse(text).body[0]))


def on_one_line(text: str) -> str:
    return " ".join(text.split()).replace("( ", "(")


def test_a_tree_is_printed_within_forty_columns() -> None:
    assert expression("x+1") == "(+ (variable (ident x)) (const 1))\n"
    assert expression("a<b<c") == (
        "(and\n  (<\n    (variable (ident a))\n    (variable (ident b)))\n"
        "  (<\n    (variable (ident b))\n    (variable (ident c))))\n"
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("f(1, a=2)", "(apply (variable (ident f)) (list (const 1)) (list (attribute (ident a) "
                      "(const 2))))"),
        ("[x for x in y]", "(list comprehension (variable (ident x)) (variable (ident x)) "
                           "(variable (ident y)))"),
        ("a not in b", "(not (in (variable (ident a)) (variable (ident b))))"),
        ("a[b:, ...]", "(subscript (variable (ident a)) (list (slice expr (option (variable (ident "
                       "b))) (option) (option)) (dots)))"),
        ("f'{x}'", "(apply (. (string_literal {}) (ident format)) (list (variable (ident x))) "
                   "(list))"),
        ("{1: 'a'}", "(dict-literal (list (const 1)) (list (string_literal a)))"),
        ("(True, None, 1.5)", "(tuple-literal (list (True) (None) (const 1.5)))"),
        ("-x ** 2 // y", "(floordiv (unary minus (pow operator (variable (ident x)) (const 2))) "
                         "(variable (ident y)))"),
        ("a if b >= 1 else c", "(if (ge (variable (ident b)) (const 1)) (variable (ident a)) "
                               "(variable (ident c)))"),
    ],
)  # fmt: skip
def test_expressions(text: str, printed: str) -> None:
    assert on_one_line(expression(text)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x: int = 1", "(assign (list (variable (ident x))) (option (const 1)) (option (variable "
                       "(ident int))))"),
        ("x += 1", "(aug_assign (variable (ident x)) (+) (const 1))"),
        ("return", "(return (None))"),
        ("assert x, 'm'", "(assert (variable (ident x)) (option (string_literal m)))"),
        ("for i in x: pass", "(for (list (variable (ident i))) (list (variable (ident x))) (list "
                             "(pass)))"),
        ("while x: break", "(while (variable (ident x)) (list (break)))"),
        ("with a as b: pass", "(with (list (withitem (variable (ident a)) (option (variable (ident "
                              "b))))) (list (pass)))"),
        ("if a: pass\nelse: del b", "(if (variable (ident a)) (list (pass)) (list (del (list "
                                    "(variable (ident b))))))"),
    ],
)  # fmt: skip
def test_statements(text: str, printed: str) -> None:
    assert on_one_line(statement(text)) == printed


@pytest.mark.parametrize(
    ("text", "message", "line", "mark"),
    [
        ("lambda: 1", "expected no Lambda", "lambda: 1", "~"),
        ("x = {**a}", "expected no entries of another dict (**)", "x = {**a}", "    ~~~~~"),
        ("global x", "expected no global variables", "global x", "~~~~~~"),
        ("x: int", "expected no annotated assignments, as it has no value", "x: int", "~"),
        ("x @= y", "expected another operator, got MatMult", "x @= y", "~~~~~~"),
        ("for i in x: pass\nelse: pass", "expected no else behind a for loop", "for i in x: pass",
         "~~~"),
        ("__jit_x", "expected a name not beginning with __jit, got __jit_x", "__jit_x", "~~~~~~~"),
        ("f(**a)", "expected no arguments of a dict (**)", "f(**a)", "    ~"),
        ("[i for i in a if i]", "expected no `if` behind a `for`", "[i for i in a if i]", "~" * 19),
        ("+a", "expected no plus before a value", "+a", "~~"),
        ("b'x'", "expected a number, a text, None or ..., got b'x'", "b'x'", "~~~~"),
        ("raise", "expected an exception behind raise", "raise", "~~~~~"),
        ("f'{x!r}'", "expected no conversion and format in a text", "f'{x!r}'", "~" * 8),
        ("[i for i in a for j in b]", "expected one `for`, got several",
         "[i for i in a for j in b]", "~" * 25),
    ],
)  # fmt: skip
def test_what_is_not_taken(text: str, message: str, line: str, mark: str) -> None:
    with pytest.raises(frontend.FrontendError) as error:
        statement(text)
    assert str(error.value) == f'{message}:\n  File "file", line 7\n{line}\n{mark} <--- HERE\n'
    assert error.value.msg == message and error.value.source_range.start == len(mark) - len(
        mark.lstrip()
    )


def with_comment(a, b):  # type: ignore[no-untyped-def]
    # type: (int, List[Tensor]) -> Tuple[int, str]
    return a


class Point:
    """A class."""

    size: int = 3

    def scaled(self, by: int = 2):  # type: ignore[no-untyped-def]
        return self.size * by

    @property
    def area(self) -> int:
        return self.size

    @area.setter
    def area(self, value: int) -> None:
        self.size = value

    @staticmethod
    def plain(x: int) -> int:
        return x

    @treadle.jit.unused
    def unused(self, x: int) -> int:
        return (lambda: x)()


def test_functions() -> None:
    tree = frontend.get_jit_def(with_comment, "g")
    assert str(tree) == (
        "(def\n  (ident g)\n  (decl\n    (list\n      (param\n        (ident a)\n"
        "        (option (variable (ident int)))\n        (option)\n        (False))\n"
        "      (param\n        (ident b)\n        (option\n          (subscript\n"
        "            (variable (ident List))\n            (list\n"
        "              (variable (ident Tensor)))))\n        (option)\n        (False)))\n"
        "    (option\n      (subscript\n        (variable (ident Tuple))\n        (list\n"
        "          (variable (ident int))\n          (variable (ident str))))))\n"
        "  (list (return (variable (ident a)))))\n"
    )
    assert tree.name().name == "g" and tree.range().highlight().endswith(
        "def with_comment(a, b):  # type: ignore[no-untyped-def]\n~~~ <--- HERE\n"
    )
    method = on_one_line(str(frontend.get_jit_def(Point.scaled, "scaled", "Point")))
    assert "(param (ident self) (option (variable (ident Point))) (option) (False))" in method
    dropped = on_one_line(str(frontend.get_jit_def(Point.unused, "unused", "Point")))
    assert "(param (ident x) (option (variable (ident Any))) (option) (False))" in dropped
    assert "(string_literal Cannot call @unused methods)" in dropped
    assert (
        frontend.get_default_args(Point.scaled) == {"by": 2}
        and frontend.get_default_args(None) == {}
    )
    assert frontend.get_default_args_for_class(Point)["scaled"] == {"by": 2}
    assert frontend.is_static_fn(Point, "plain") and not frontend.is_static_fn(Point, "scaled")
    assert frontend.is_reserved_name("__jit_x") and not frontend.is_reserved_name("_jit_x")
    assert frontend.get_qualified_name(Point.scaled) == "Point.scaled"
    with pytest.raises(RuntimeError, match="^expected the source of one function, got .*:[0-9]+$"):
        frontend.get_jit_def(lambda x: x, "f")

    def several(*args: int) -> None: ...

    with pytest.raises(frontend.NotSupportedError, match="^expected a fixed number of arguments"):
        frontend.get_jit_def(several, "f")


def test_classes() -> None:
    text = on_one_line(str(frontend.get_jit_class_def(Point, "P")))
    assert text.startswith("(class (ident P) (option) (list (def (ident scaled)")
    assert "(property (ident area) (def (ident __area_getter)" in text and "plain" not in text
    assert text.endswith(
        "(option (list (assign (list (variable (ident size))) (option (const 3)) (option (variable "
        "(ident int)))))))"
    )
    (area,) = frontend.get_class_properties(Point, "P")
    assert area.name().name == "area" and area.getter_name().name == "__area_getter"
    setter = area.setter_name()
    assert setter is not None and setter.name == "__area_setter"


def test_dataclasses() -> None:
    @dataclasses.dataclass(order=True)
    class Pair:
        a: int
        b: float = 2.0

    sources = {name: make(Pair).source for name, make in frontend.DATACLASS_MAGIC_METHODS.items()}
    assert sources["__repr__"] == "def __repr__(self) -> str:\n  return 'Pair(a=self.a, b=self.b)'"
    assert sources["__lt__"].split("\n")[:5] == [
        "def __lt__(self, other: Pair) -> bool:",
        "  val1 = self.a",
        "  val2 = other.a",
        "  if val1 < val2: return True",
        "  elif val2 < val1: return False",
    ]
    names = str(frontend.get_jit_class_def(Pair, "Pair"))
    assert "(ident __eq__)" in names and "(ident __ge__)" in names

    @dataclasses.dataclass
    class Made:
        a: list = dataclasses.field(default_factory=list)

    with pytest.raises(NotImplementedError) as error:
        frontend.DATACLASS_MAGIC_METHODS["__init__"](Made)
    assert str(error.value) == (
        "Made: expected fields with plain defaults, got one with default_factory"
    )


def test_blocks_that_are_left_to_python() -> None:
    text = "with torch.jit._IgnoreContextManager(a='inp:int', c='out:int'):\n    c = a + 1\n"
    context = frontend.make_source_context(text, "some file.py", 7, 0)
    block = ast.parse(text).body[0]
    assert frontend.is_torch_jit_ignore_context_manager(block)
    printed = on_one_line(str(frontend.build_stmt(context, block)))
    assert "(ident func_ignore_some_file_py_1)) (list (variable (ident a))) (list)" in printed
    assert frontend.func_ignore_some_file_py_1(4) == 5  # type: ignore[attr-defined]


def test_places() -> None:
    parsed = frontend.parse_def(Point.plain)
    place = frontend.find_before(parsed.ctx, 40, "def", (1, -1))
    assert parsed.source[place.start : place.end] == "e"
    with pytest.raises(ValueError):
        frontend.find_before(parsed.ctx, 3, "nothing")


# ---- types ---------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("annotation", "printed"),
    [
        (int, "int"),
        (treadle.Tensor, "Tensor"),
        (treadle.nn.Parameter, "Tensor"),
        (None, "NoneType"),
        (Any, "Any"),
        (treadle.device, "Device"),
        (treadle.dtype, "int"),
        (List[int], "List[int]"),
        (Dict[str, treadle.Tensor], "Dict[str, Tensor]"),
        (Tuple[int, str], "Tuple[int, str]"),
        (Tuple[()], "Tuple[()]"),
        (Optional[List[int]], "Optional[List[int]]"),
        (Union[int, str, None], "Union[int, str, NoneType]"),
        (treadle.futures.Future[int], "Future[int]"),
        (Colour, "Enum<__torch__.Colour>"),
        (set, None),
        (object, None),
    ],
)
def test_types_of_annotations(annotation: Any, printed: Optional[str]) -> None:
    found = annotations.try_ann_to_type(annotation, None)
    assert (None if found is None else str(found)) == printed
    if printed is None:
        with pytest.raises(ValueError) as error:
            annotations.ann_to_type(annotation, None)
        assert str(error.value) == (f"expected a type that TorchScript has, got {annotation!r}")
    else:
        assert annotations.ann_to_type(annotation, None).annotation_str == printed


def test_annotations_without_the_types_of_elements() -> None:
    for bare in (List, Dict, Tuple, Optional, Union):
        with pytest.raises(RuntimeError) as error:
            annotations.try_ann_to_type(bare, None)
        assert str(error.value) == (f"expected {bare} with the types of its elements, got it alone")
    with pytest.raises(RuntimeError, match="^expected a dict from numbers, texts or tensors, got "):
        annotations.try_ann_to_type(Dict[Tuple[int], int], None)
    assert annotations.is_optional(Optional[int]) and annotations.is_union(Optional[int])
    assert annotations.is_list(list[int]) and not annotations.is_list(list)


def test_types_of_types() -> None:
    number, text = treadle.IntType.get(), treadle.StringType.get()
    assert number is treadle._C.IntType.get() and number != text
    assert treadle.ListType(number) == treadle.ListType.ofInts() != treadle.ListType.ofFloats()
    assert treadle.UnionType([number, text]) == treadle.UnionType([text, number])
    optional = treadle.OptionalType(number)
    assert str(treadle.OptionalType(optional)) == "Optional[int]"
    assert optional == treadle.UnionType([number, treadle.NoneType.get()])
    assert number.isSubtypeOf(optional) and not optional.isSubtypeOf(number)
    for wider in (treadle.AnyType, treadle.NumberType):
        assert number.isSubtypeOf(wider.get()) and not wider.get().isSubtypeOf(number)
    pair = treadle.TupleType([number]), treadle.TupleType([optional])
    assert pair[0].isSubtypeOf(pair[1]) and not pair[1].isSubtypeOf(pair[0])
    assert not treadle.ListType(number).isSubtypeOf(treadle.ListType(optional))
    assert str(treadle.unify_type_list([number, treadle.NoneType.get()])) == "Optional[int]"
    with pytest.raises(RuntimeError) as error:
        treadle.unify_type_list([number, text])
    assert str(error.value) == "unify_type_list: expected types that fit, got [int, str]"
    with pytest.raises(RuntimeError, match="^unify_type_list: expected types, got none$"):
        treadle.unify_type_list([])


def plain(a, b):  # type: ignore[no-untyped-def]
    return a


def test_signatures() -> None:
    def printed(fn: Any, is_method: bool = False) -> str:
        return str(annotations.get_signature(fn, None, None, is_method))

    assert printed(with_comment) == "([int, List[Tensor]], Tuple[int, str])"
    assert printed(Point.scaled, True) == "([int], Tensor)"
    assert printed(Point.plain) == "([int], int)"
    assert printed(plain) == "None"
    assert annotations.get_param_names(with_comment, 1) == ["a", "b"]
    assert annotations.get_param_names(len, 2) == ["0", "1"]
    annotations.check_fn(with_comment, None)
    with pytest.raises(RuntimeError, match="^expected one function, got <lambda>$"):
        annotations.check_fn(lambda: 1, None)


def test_comments() -> None:
    several = "def f(a,  # type: int\n  b,  # type: Tensor\n ):\n    # type: (...) -> int\n    pass"
    assert annotations.get_type_line(several) == "# type: (int, Tensor) -> int"
    assert annotations.get_type_line("def f(a):\n  # type: ignore\n  return a") is None
    with pytest.raises(RuntimeError) as error:
        annotations.get_type_line("def f(a,  # type: int\n  b,  # type: int\n  ): pass")
    assert str(error.value) == (
        "expected one comment `# type: (...) -> ...` below those of the arguments, got 0"
    )
    line = "# type: (int, List[Tensor]) -> Tuple[int, torch.Tensor]"
    assert annotations.split_type_line(line) == ("(int, List[Tensor])", "Tuple[int, torch.Tensor]")
    assert str(annotations.parse_type_line(line, None, None)) == (
        "([int, List[Tensor]], Tuple[int, Tensor])"
    )
    own = annotations.parse_type_line("# type: (Mine) -> None", {"Mine": float}.get, None)
    assert str(own) == "([float], NoneType)"
    with pytest.raises(RuntimeError) as error:
        annotations.split_type_line("# type: (int)")
    assert str(error.value) == "expected a type with ->, got '# type: (int)'"
    with pytest.raises(RuntimeError) as error:
        annotations.parse_type_line("# type: (Nobody) -> int", None, None)
    assert str(error.value) == "expected types, got '(Nobody)'"
    decl = treadle.parse_type_comment("# type: (int) -> str")
    with pytest.raises(RuntimeError) as error:
        treadle.merge_type_from_type_comment(
            frontend.get_jit_def(with_comment, "f").decl(), decl, False
        )
    assert str(error.value) == ("type comment: expected 2 types, one for each argument, got 1")


def test_module_of_names() -> None:
    names = annotations.Module("names", {"a": 1})
    assert names.a == 1
    with pytest.raises(RuntimeError) as error:
        names.b  # noqa: B018
    assert str(error.value) == "names: expected one of ['a'], got b"


def test_marks() -> None:
    from treadle._jit_internal import (
        FunctionModifiers,
        get_static_fn,
        get_torchscript_modifier,
        is_ignored_fn,
        should_drop,
    )

    def made(decorate: Any) -> Any:
        return decorate(lambda: 1)

    dropped = made(treadle.jit.unused), made(treadle.jit.ignore(drop=True))
    assert all(should_drop(f) and is_ignored_fn(f) for f in dropped)
    kept = made(treadle.jit.ignore)
    assert is_ignored_fn(kept) and not should_drop(kept) and kept() == 1
    assert get_torchscript_modifier(made(treadle.jit.export)) == FunctionModifiers.EXPORT
    assert get_torchscript_modifier(len) == FunctionModifiers.DEFAULT
    assert get_torchscript_modifier(1) is None
    assert get_static_fn(Point, "plain")(3) == 3
