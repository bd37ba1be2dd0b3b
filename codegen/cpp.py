"""C++ text for model types, arguments and expressions: the one place that knows how a schema type
is spelled in C++."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Optional

from .library import Library
from .model import Arg, Entry, Form, Model, Return, Tree, Type

# Schema base type -> C++ type, for plain, optional and list arguments.
_PLAIN = {
    "int": "int64_t",
    "SymInt": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "Scalar": "const Scalar&",
    "ScalarType": "ScalarType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "const Generator&",
}
_LIST = {
    "int": "IntList",
    "SymInt": "IntList",
    "float": "DoubleList",
    "Scalar": "ScalarList",
    "Tensor": "TensorList",
}

KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval "
    "constexpr constinit continue decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq".split()
)
# What the templates call their variables, and functions that they call beside the arguments.
LOCALS = frozenset(
    "active add_edges any_defined any_backend as_list as_view as_views below boxed bump_versions "
    "call "
    "call_below call_kernel cast check_in_place common_device copy_to_out copy_to_outs "
    "copy_to_self count_decomposed device dispatch dispatch_below dtype_of fail grads guarded "
    "has_edge input_grads kept_for_backward kernel kernel_or_boxed make_intrusive name names "
    "nested no_kernel none object op or_zeros out parts pointwise pointwise_inplace pointwise_out "
    "put rebase_history rebase_undifferentiable recorded records reduce reduce_out reject_out "
    "require_mode require_tensors result results returned run set_history should_compute size_at "
    "spec with_requires_grad wrap".split()
)


def plain_name(name: str) -> str:
    """A schema argument's name in a declaration, where nothing but a keyword is in its way."""
    return name + "_" if name in KEYWORDS or name == "dispatch" else name


def cpp_name(name: str) -> str:
    """A schema argument's name in the code of a function, among its variables."""
    return name + "_" if name in KEYWORDS or name in LOCALS else name


def arg_type(t: Type) -> str:
    if t.base == "Tensor":
        return "TensorList" if t.list else "const Tensor&"
    if t.list:
        if t.base == "bool":
            return f"std::array<bool, {t.list_size}>"
        plain = _LIST[t.base]
        if t.optional:
            return "OptionalIntList" if plain == "IntList" else f"std::optional<{plain}>"
        return plain
    plain = _PLAIN[t.base]
    if t.optional and t.base != "Generator":
        return "const std::optional<Scalar>&" if t.base == "Scalar" else f"std::optional<{plain}>"
    return plain


def value_type(t: Type) -> str:
    """The type that holds such an argument by value for later (saved for backward)."""
    if t.base == "Tensor":
        return "std::vector<Tensor>" if t.list else "Tensor"
    if t.list:
        if t.base == "bool":
            return arg_type(t)
        plain = {
            "IntList": "DimVector",
            "DoubleList": "std::vector<double>",
            "ScalarList": "std::vector<Scalar>",
        }[_LIST[t.base]]
        return f"std::optional<{plain}>" if t.optional else plain
    if t.base == "str":
        return "std::optional<std::string>" if t.optional else "std::string"
    plain = _PLAIN[t.base].removeprefix("const ").removesuffix("&")
    return f"std::optional<{plain}>" if t.optional and t.base != "Generator" else plain


def return_type(returns: Iterable[Return]) -> str:
    one = {
        "int": "int64_t",
        "SymInt": "int64_t",
        "float": "double",
        "bool": "bool",
        "Scalar": "Scalar",
        "ScalarType": "ScalarType",
    }

    def single(r: Return) -> str:
        if r.type.base == "Tensor":
            return "std::vector<Tensor>" if r.type.list else "Tensor"
        return one[r.type.base]

    texts = [single(r) for r in returns]
    if not texts:
        return "void"
    return texts[0] if len(texts) == 1 else f"std::tuple<{', '.join(texts)}>"


def out_names(e: Entry) -> list[str]:
    """Names of the out= arguments: `out`, or the returns' names, or out0, out1."""
    if len(e.returns) == 1:
        return ["out"]
    return [plain_name(r.name) if r.name else f"out{i}" for i, r in enumerate(e.returns)]


def parameters(
    e: Entry, form: Form, name_of: Callable[[str], str] = cpp_name
) -> list[tuple[str, str]]:
    """(type, name) of each C++ parameter of a form."""
    out = [(arg_type(a.type), name_of(a.name)) for a in e.args]
    if form.form == "out":
        out += [("const Tensor&", n) for n in out_names(e)]
    return out


def returns_of(e: Entry, form: Form) -> str:
    if form.form == "functional" or not e.returns:
        return return_type(e.returns)
    if form.form == "inplace" or len(e.returns) == 1:
        return "Tensor"
    return f"std::tuple<{', '.join('Tensor' for _ in e.returns)}>"


def types_only(e: Entry, form: Form) -> str:
    return ", ".join(t for t, _ in parameters(e, form))


def declaration(e: Entry, form: Form) -> str:
    return ", ".join(f"{t} {n}" for t, n in parameters(e, form))


def names_only(e: Entry, form: Form) -> str:
    return ", ".join(n for _, n in parameters(e, form))


def plain_names_only(e: Entry, form: Form) -> str:
    return ", ".join(n for _, n in parameters(e, form, plain_name))


def kernel_types(e: Entry) -> str:
    """The kernel signature: for structured kernels, all arguments and then the outputs; returns
    nothing."""
    if e.kind == "pointwise":
        return "void(const PointwiseCall&)"
    if e.kind == "reduce":
        return "void(const ReduceCall&)"
    arguments = [arg_type(a.type) for a in e.args]
    if e.kind == "kernel":
        return f"void({', '.join(arguments + ['const Tensor&'] * len(e.returns))})"
    if e.kind == "mutating" and e.dispatch and e.dispatch[0].key != "Composite":
        return f"void({', '.join(arguments)})"
    return f"{return_type(e.returns)}({', '.join(arguments)})"


def linked_function(e: Entry) -> Optional[tuple[str, str]]:
    """(namespace, declaration) of the hand-written function a composite or view entry calls, or
    None."""
    if e.kind not in ("composite", "view", "mutating"):
        return None
    kernel = linked_kernel(e)
    if kernel is None or e.foreach_of:
        return None
    namespace, function = kernel
    declaration = ", ".join(f"{arg_type(a.type)} {plain_name(a.name)}" for a in e.args)
    return namespace, f"{return_type(e.returns)} {function}({declaration})"


def linked_kernel(e: Entry) -> Optional[tuple[str, str]]:
    """(namespace, function) for entries whose kernel is found by the linker."""
    for d in e.dispatch:
        if d.key == "View":
            return "views", d.kernel
        if d.key == "Composite":
            return "composite", d.kernel
    return ("composite", e.id) if e.kind == "composite" else None


def has_scalar_lists(entries: Iterable[Entry]) -> bool:
    return any(a.type.base == "Scalar" and a.type.list for e in entries for a in e.args)


def foreach_lists(e: Entry) -> list[Arg]:
    """The arguments of an operator on lists that have an element for each place."""
    of = {here: name for name, here in e.foreach_of.arguments.items()}  # type: ignore[union-attr]
    return [a for a in e.args if a.name in of and a.type.list and not a.type.list_size]


def foreach_numbers(e: Entry, model: Model) -> Optional[Arg]:
    """The tensor that holds a number for each place of the lists."""
    of = model.by_full_name[e.foreach_of.of]  # type: ignore[union-attr]
    for name, here in e.foreach_of.arguments.items():  # type: ignore[union-attr]
        if of.arg(name).type.base == "Scalar" and e.arg(here).type.is_tensor:
            return e.arg(here)
    return None


def foreach_shared(e: Entry, model: Model) -> list[Arg]:
    """The tensors that are the same for all places."""
    numbers = foreach_numbers(e, model)
    return [a for a in e.tensor_args if a is not numbers]


def foreach_function(e: Entry, model: Model) -> str:
    """The function that is called for each place."""
    of = model.by_full_name[e.foreach_of.of]  # type: ignore[union-attr]
    return of.form(e.foreach_of.form).name  # type: ignore[union-attr]


def foreach_call(e: Entry, model: Model, tensor_as: str = "") -> str:
    """Its arguments in place i, each through the function `tensor_as` where one is named."""
    of = model.by_full_name[e.foreach_of.of]  # type: ignore[union-attr]
    lists, numbers = foreach_lists(e), foreach_numbers(e, model)
    texts = []
    for a in of.args:
        here = e.foreach_of.arguments.get(a.name)  # type: ignore[union-attr]
        if here is None:
            texts.append(default_value(a) or "{}")
        elif numbers is not None and here == numbers.name:
            texts.append("numbers[i]")
        else:
            each = any(here == one.name for one in lists)
            text = cpp_name(here) + ("[i]" if each else "")
            is_tensor = a.type.base == "Tensor"
            texts.append(f"{tensor_as}({text})" if tensor_as and is_tensor else text)
    return ", ".join(texts)


def foreach_headers(entries: Iterable[Entry], model: Model) -> list[str]:
    """Base names of the operators that those on lists call."""
    return sorted({model.by_full_name[e.foreach_of.of].name for e in entries if e.foreach_of})


_SCALAR_TYPE_NAMES = {
    "bool": "Bool", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
    "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "float64": "Float64",
    "complex64": "Complex64", "complex128": "Complex128",
}  # fmt: skip
_CPP_TYPES = {
    "bool": "bool",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "Half", "bfloat16": "BFloat16", "float32": "float", "float64": "double",
    "complex64": "std::complex<float>", "complex128": "std::complex<double>",
}  # fmt: skip


def all_dtypes() -> tuple[str, ...]:
    """Every dtype, in the order of ScalarType."""
    return tuple(_SCALAR_TYPE_NAMES)


def scalar_type(dtype: str) -> str:
    """'float32' -> 'Float32', the enumerator of ScalarType."""
    return _SCALAR_TYPE_NAMES[dtype]


def cpp_type(dtype: str) -> str:
    """'float32' -> 'float'."""
    return _CPP_TYPES[dtype]


def default_value(a: Arg) -> Optional[str]:
    """The C++ default argument, or None when the argument has no default."""
    d = a.default
    if d is None:
        return None
    t = a.type
    if d.kind == "none":
        if t.base == "Tensor":
            return "{}"
        return "nullptr" if t.base == "Generator" else "std::nullopt"
    if d.kind == "bool":
        return "true" if d.value else "false"
    if d.kind == "string":
        return '"' + str(d.value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if d.kind == "list":
        text = (
            "{"
            + ", ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in d.value)
            + "}"
        )
        return f"IntList({text})" if t.optional else text
    if d.kind == "name":
        return {
            "Mean": "1",
            "contiguous_format": "MemoryFormat::Contiguous",
            "preserve_format": "MemoryFormat::Preserve",
            "Sum": "2",
            "channels_last": "MemoryFormat::ChannelsLast",
            "channels_last_3d": "MemoryFormat::ChannelsLast3d",
            "byte": "ScalarType::UInt8",
            "char": "ScalarType::Int8",
            "short": "ScalarType::Int16",
            "int": "ScalarType::Int32",
            "long": "ScalarType::Int64",
            "half": "ScalarType::Float16",
            "float": "ScalarType::Float32",
            "double": "ScalarType::Float64",
            "inf": "std::numeric_limits<double>::infinity()",
            "-inf": "-std::numeric_limits<double>::infinity()",
            "nan": "std::numeric_limits<double>::quiet_NaN()",
            "strided": "Layout::Strided",
            **{name: f"ScalarType::{scalar_type(name)}" for name in all_dtypes()},
        }[d.text]
    if t.list and t.base in ("int", "SymInt"):  # int[2] stride=1: every entry the same
        return "{" + ", ".join([d.text] * (t.list_size or 1)) + "}"
    if t.base == "Scalar" and d.kind == "int":
        return f"Scalar({d.text})"
    return d.text


def default_storage(a: Arg) -> Optional[str]:
    """A static array that backs a list default, so that a view of it may outlive the statement;
    None when not needed."""
    value = default_value(a)
    if value is None or not a.type.list or a.default is None or a.default.kind == "none":
        return None
    return value


def _required(e: Entry, form: Form) -> int:
    """How many leading parameters have no C++ default: a default counts only where every later
    parameter has one too."""
    params = parameters(e, form)
    defaults = [default_value(a) for a in e.args] + [None] * (len(params) - len(e.args))
    count = len(params)
    while count and defaults[count - 1] is not None:
        count -= 1
    return count


def required_parameters(entries: Iterable[Entry]) -> dict[str, int]:
    """Form id -> leading parameters without a default, for the overloads of one name. Where two
    overloads could both be called with the same types, only the earlier keeps the defaults that
    allow it."""
    taken: set[tuple[str, ...]] = set()
    out = {}
    for e in entries:
        for f in e.forms:
            name = "out" if f.form == "out" else f.name
            types = [name] + [t for t, _ in parameters(e, f)]
            calls = [tuple(types[: n + 1]) for n in range(_required(e, f), len(types))]
            clash = max((i for i, c in enumerate(calls[:-1]) if c in taken), default=-1)
            out[f.id] = _required(e, f) + clash + 1
            taken.update(calls[clash + 1 :])
    return out


def with_defaults_list(e: Entry, form: Form, required: int = 0) -> list[str]:
    """Parameters with C++ defaults after the first `required`, as a declaration has them."""
    params = parameters(e, form, plain_name)
    defaults = [default_value(a) for a in e.args] + [None] * (len(params) - len(e.args))
    first = max(required, _required(e, form))
    texts: list[str] = []
    for i, ((t, n), d) in reversed(list(enumerate(zip(params, defaults)))):
        open_tail = i >= first
        texts.append(f"{t} {n} = {d}" if open_tail else f"{t} {n}")
    return list(reversed(texts))


def with_defaults(e: Entry, form: Form, required: int = 0) -> str:
    return ", ".join(with_defaults_list(e, form, required))


def is_method(e: Entry) -> bool:
    """Whether the class Tensor of programs has the operator as a member function."""
    return "method" in e.variants and any(_is_self(a) for a in e.args)


def _is_self(a: Arg) -> bool:
    return a.name == "self" and a.type.is_tensor


def method_declaration(e: Entry, form: Form) -> str:
    """Parameters beside self, wherever that is, with defaults, for a member function."""
    texts = with_defaults_list(e, form)
    return ", ".join(text for text, a in zip(texts, e.args) if not _is_self(a))


def method_arguments(e: Entry) -> str:
    return ", ".join("*this" if _is_self(a) else plain_name(a.name) for a in e.args)


# ---- expressions ---------------------------------------------------------------------------------

Resolver = Callable[[Tree], Optional[str]]

# Names that mean the same in every expression.
CONSTANTS = {
    dtype: f"ScalarType::{enumerator}" for dtype, enumerator in _SCALAR_TYPE_NAMES.items()
} | {
    "inf": "std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
    "pi": "std::numbers::pi",
}

_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip


def cpp_expr(tree: Tree, resolve: Resolver = lambda _: None, parent: int = 0) -> str:
    """C++ for an expression tree. `resolve` may give the text of any subtree itself (names,
    literals, calls)."""
    given = resolve(tree)
    if given is not None:
        return given
    op = tree["op"]
    if op == "name":
        return CONSTANTS.get(tree["name"]) or cpp_name(tree["name"])
    if op in ("int", "float"):
        return str(tree["value"])
    if op == "bool":
        return "true" if tree["value"] else "false"
    if op == "string":
        return '"' + tree["value"] + '"'
    if op == "none":
        return "std::nullopt"
    if op == "call":
        return f"{tree['fn']}({', '.join(cpp_expr(a, resolve) for a in tree['args'])})"
    if op == "method":
        return (
            f"{cpp_expr(tree['on'], resolve, 9)}.{tree['name']}"
            f"({', '.join(cpp_expr(a, resolve) for a in tree['args'])})"
        )
    if op == "index":
        return f"{cpp_expr(tree['on'], resolve, 9)}[{cpp_expr(tree['index'], resolve)}]"
    if op == "unary":
        of = cpp_expr(tree["of"], resolve, 8)
        # `--x` is another operator of C++.
        return f"{tree['operator']}({of})" if of.startswith("-") else f"{tree['operator']}{of}"
    if op == "binary":
        mine = _PRECEDENCE[tree["operator"]]
        text = (
            f"{cpp_expr(tree['lhs'], resolve, mine)} {tree['operator']} "
            f"{cpp_expr(tree['rhs'], resolve, mine + 1)}"
        )
        return f"({text})" if mine < parent else text
    if op == "select":
        text = (
            f"{cpp_expr(tree['cond'], resolve, 1)} ? {cpp_expr(tree['then'], resolve, 1)} : "
            f"{cpp_expr(tree['else'], resolve)}"
        )
        return f"({text})" if parent else text
    if op == "list":
        return "{" + ", ".join(cpp_expr(i, resolve) for i in tree["items"]) + "}"
    raise ValueError(f"unknown expression node {op}")


def walk(tree: Tree) -> Iterator[Tree]:
    """The nodes of an expression tree, the root first."""
    yield tree
    for value in tree.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict) and "op" in child:
                yield from walk(child)


_LOGIC = {"&&": "logical_and", "||": "logical_or"}


def element_expr(tree: Tree) -> str:
    """C++ over one element (or one vector of them): literals become constants of the element
    type V."""

    def resolve(t: Tree) -> Optional[str]:
        op = t["op"]
        if op in ("int", "float"):
            return f"constant<V>({t['value']})"
        if op == "name" and t["name"] in CONSTANTS:
            return f"constant<V>({CONSTANTS[t['name']]})"
        if op == "bool":
            return f"constant<V>({int(t['value'])})"
        if op == "select":
            return f"where({', '.join(cpp_expr(t[k], resolve) for k in ('cond', 'then', 'else'))})"
        if op == "binary" and t["operator"] in _LOGIC:
            return (
                f"{_LOGIC[t['operator']]}"
                f"({cpp_expr(t['lhs'], resolve)}, {cpp_expr(t['rhs'], resolve)})"
            )
        if op == "binary" and t["operator"] == "%":
            return f"remainder({cpp_expr(t['lhs'], resolve)}, {cpp_expr(t['rhs'], resolve)})"
        if op == "unary" and t["operator"] == "!":
            return f"logical_not({cpp_expr(t['of'], resolve)})"
        return None

    return cpp_expr(tree, resolve)


def inputs_of(e: Entry, first: int = 0) -> str:
    """C++ for the addresses of the tensor arguments from the one of number `first` on, those in
    lists included."""
    arguments = [a for a in e.args if a.type.base == "Tensor"][first:]
    names = [cpp_name(a.name) for a in arguments]
    if any(a.type.list for a in arguments):
        return f"contract::inputs_of({', '.join(names)})"
    return "{" + ", ".join(f"&{n}" for n in names) + "}"


def tensors(e: Entry) -> list[str]:
    """Names of the plain Tensor arguments."""
    return [cpp_name(a.name) for a in e.tensor_args]


def arguments_of_form(e: Entry, f: Form) -> list[str]:
    """The arguments that a form passes on to the function that makes the result. The out= form of a
    factory makes a result of the dtype of `out` where none is given."""
    names = [cpp_name(a.name) for a in e.args]
    if f.form == "out" and not e.tensor_args and "dtype" in names:
        of_out = "dtype || !out.defined() ? dtype : std::optional<ScalarType>(out.dtype())"
        names[names.index("dtype")] = of_out
    return names


def tensors_and_lists(e: Entry) -> list[str]:
    """Names of the arguments that are tensors or lists of them."""
    return [cpp_name(a.name) for a in e.args if a.type.base == "Tensor"]


def written_lists(e: Entry) -> list[str]:
    """Names of the lists of tensors that the operator writes."""
    return [cpp_name(a.name) for a in e.args if a.type.is_tensor_list and a.type.writes]


def is_composed_in_place(e: Entry, form: Form) -> bool:
    """Whether the form writes to `self` what the operators that make up the functional form
    compute."""
    return form.form == "inplace" and linked_kernel(e) is not None and not e.args[0].type.writes


def composes_in_place(entries: Iterable[Entry]) -> bool:
    return any(is_composed_in_place(e, f) for e in entries for f in e.forms)


def arguments_before_change(e: Entry) -> str:
    """The arguments of such a form, with `before` in the place of what is changed."""
    changed, *others = [cpp_name(a.name) for a in e.args]
    replaced = tensors(e)
    return ", ".join(
        ["before"]
        + [f"{n}.is_same({changed}) ? before : {n}" if n in replaced else n for n in others]
    )


def numbers(e: Entry) -> list[Arg]:
    """The number arguments of a pointwise entry, in order: what its expression may name beside
    tensors."""
    return [
        a for a in e.args if a.type.base in ("Scalar", "float", "int", "bool") and not a.type.list
    ]


def as_scalar(name: str) -> str:
    return f"Scalar({name})"


def promoting(e: Entry) -> int:
    """Bit mask of the numbers that are operands: Scalars given by position and without a
    default."""
    mask = 0
    for i, a in enumerate(numbers(e)):
        if a.type.base == "Scalar" and not a.kwarg_only and a.default is None:
            mask |= 1 << i
    return mask


def named_arg(e: Entry, *names: str) -> Optional[Arg]:
    return next((a for a in e.args if a.name in names), None)


def reduce_dims(e: Entry) -> str:
    """The dims argument of a reduction as an OptionalIntList."""
    a = named_arg(e, "dim")
    if a is None:
        return "std::nullopt"
    if a.type.list:
        return "OptionalIntList(dim)"
    return (
        "dim ? OptionalIntList(IntList(&*dim, 1)) : OptionalIntList()"
        if a.type.optional
        else "OptionalIntList(IntList(&dim, 1))"
    )


def key_dtype(e: Entry) -> str:
    """C++ for the dtype that selects the kernel."""
    if e.dtype_of:
        a = e.arg(e.dtype_of)
        n = cpp_name(a.name)
        if a.type.is_tensor_list:
            return f"{n}[0].dtype()"
        return f"{n}.dtype()" if a.type.is_tensor else n
    return "ScalarType::Float32"


def key_tensors(e: Entry) -> tuple[list[str], list[str]]:
    """C++ addresses of the tensors whose device and layout select the kernel, and their names in
    quotes: of a list its first, where no other says them."""
    plain = [a for a in e.args if a.type.is_tensor]
    lists = [a for a in e.args if a.type.is_tensor_list]
    lists = [a for a in lists if a.name == e.dtype_of] or ([] if plain else lists[:1])
    pointers = [f"&{cpp_name(a.name)}" for a in plain] + [f"&{cpp_name(a.name)}[0]" for a in lists]
    texts = [f'"{a.name}"' for a in plain] + [f'"{a.name}[0]"' for a in lists]
    return pointers, texts


def qualified_shape(e: Entry, library: Library) -> str:
    """The call of the shape rule, with the operator's name first."""
    tree = e.shape.tree  # type: ignore[union-attr]
    fn = tree["fn"] if tree["op"] == "call" else tree["name"]
    arguments = tree["args"] if tree["op"] == "call" else []
    return f"{library.rule(fn)}({', '.join(['name'] + [cpp_expr(a) for a in arguments])})"


def dtypes_text(e: Entry) -> str:
    return "; ".join(f"{device}: {' '.join(names)}" for device, names in e.dtypes.items())


def expression_text(e: Entry) -> str:
    if e.pointwise:
        return e.pointwise.text
    if e.reduce:
        return "; ".join(f"{k} = {v.text}" for k, v in e.reduce.items())
    return ""


PROMOTE = {
    "common": "Common",
    "real": "Real",
    "float": "Float",
    "compare": "Compare",
    "bool": "Bool",
    "none": "None",
}
REDUCE_PROMOTE = {"common": "Same", "none": "Same", "sum": "Sum", "float": "Float", "bool": "Bool"}


def promote_enumerator(e: Entry) -> str:
    table = PROMOTE if e.kind == "pointwise" else REDUCE_PROMOTE
    return table[e.promote or "common"]


def divides(e: Entry) -> bool:
    """Whether integers are divided, which a zero stops half-way."""
    divisions = {"floor_divide", "trunc_divide", "remainder", "fmod", "/", "%"}
    assert e.pointwise is not None
    return any(t.get("fn", t.get("operator")) in divisions for t in walk(e.pointwise.tree))


def keeps_low_bits(e: Entry) -> bool:
    """Whether the lowest bits of a result follow from the lowest bits of the operands."""
    kept = {"+", "-", "*", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
    assert e.pointwise is not None
    return all(
        t["op"] in ("name", "int") or t.get("fn", t.get("operator")) in kept
        for t in walk(e.pointwise.tree)
    )


def returns_views(e: Entry) -> bool:
    """Whether the entry makes several views of an argument."""
    return any(r.type.base == "Tensor" and r.type.list and r.type.aliases for r in e.returns)


def has_cpu_kernels(e: Entry) -> bool:
    """Whether the generator makes CPU kernels for the entry."""
    return e.kind in ("pointwise", "reduce") and bool(e.dtypes_on("CPU"))


def element_names(e: Entry) -> list[str]:
    """Names in a pointwise expression: tensors in the schema's order, then numbers."""
    return tensors(e) + [cpp_name(a.name) for a in numbers(e)]


_FLOATING = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")


def computed_dtypes(e: Entry) -> list[str]:
    """The dtypes an entry's kernels are looked up by: what the operands are promoted to, not what
    they may be."""
    declared = e.dtypes_on("CPU")
    if e.promote == "float":
        return [d for d in declared if d in _FLOATING + _COMPLEX]
    if e.promote == "sum":
        return [d for d in declared if d == "int64" or d in _FLOATING + _COMPLEX]
    return list(declared)


def block_types(e: Entry) -> list[str]:
    """C++ types the inner loops of an entry are compiled for; 16-bit floats compute in float."""
    if e.promote == "bool":
        return ["bool"]
    out: list[str] = []
    for d in computed_dtypes(e):
        t = "float" if d in ("float16", "bfloat16") else cpp_type(d)
        if t not in out:
            out.append(t)
    return out


def multiplies(e: Entry) -> bool:
    """Whether a reduction joins partial results by multiplying them."""
    tree = e.reduce["combine"].tree if e.reduce else {}
    return tree.get("op") == "binary" and tree["operator"] == "*"


def row_cells(e: Entry) -> list[bool]:
    """For each ScalarType in order, whether the entry has a generated kernel."""
    have = computed_dtypes(e)
    return [name in have for name in _SCALAR_TYPE_NAMES]


def shape_declaration(e: Entry) -> Optional[str]:
    """The declaration of the shape rule as this entry calls it."""
    if e.shape is None or e.shape.tree is None:
        return None
    tree = e.shape.tree
    fn = tree["fn"] if tree["op"] == "call" else tree["name"]
    arguments = tree["args"] if tree["op"] == "call" else []
    n = len(e.returns)
    result = {0: "void", 1: "TensorSpec"}.get(n, f"std::array<TensorSpec, {n}>")
    return f"{result} {fn}({', '.join(['const char* op'] + [_expr_type(e, a) for a in arguments])})"


def hand_written(entries: Iterable[Entry], library: Library) -> list[tuple[str, str]]:
    """(namespace, declaration) of the shape rules, composites and views that the entries name."""
    found = []
    for e in entries:
        rule, linked = shape_declaration(e), linked_function(e)
        if rule:
            name = rule.partition("(")[0].rpartition(" ")[2]
            owner = library.owner if library.is_own_rule(name) else "treadle"
            found.append((f"{owner}::shape", rule))
        if linked:
            found.append((f"{library.owner}::{linked[0]}", linked[1]))
    return list(dict.fromkeys(found))


_METHOD_TYPES = {
    "dim": "int64_t", "size": "int64_t", "numel": "int64_t",
    "sizes": "IntList", "strides": "IntList",
    "dtype": "ScalarType", "scalar_type": "ScalarType", "device": "Device",
}  # fmt: skip


def _expr_type(e: Entry, t: Tree) -> str:
    op = t["op"]
    if op == "name":
        return arg_type(e.arg(t["name"]).type)
    if op == "method" and t["name"] in _METHOD_TYPES:
        return _METHOD_TYPES[t["name"]]
    if op in ("int", "float", "bool", "string"):
        return {
            "int": "int64_t",
            "float": "double",
            "bool": "bool",
            "string": "std::string_view",
        }[op]
    if op in ("binary", "unary", "select"):
        inner = t.get("lhs") or t.get("of") or t.get("then")
        return (
            "bool"
            if t.get("operator") in ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "!")
            else _expr_type(e, inner)
        )
    raise SystemExit(
        f"{e.file}:{e.line}: error: an argument of shape rule of {e.full_name} has no plain type: "
        f"{cpp_expr(t)}"
    )
