"""The library's functions on nested tensors: functions of elements work on the values,
those along a dimension on the values or on each part, and others are refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.nested._tensor import NestedTensor, RaggedSize, in_order, joined

# Functions of elements that are made of several operators, or draw.
_OF_ELEMENTS = frozenset(
    """__abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __idiv__ __imul__
    __invert__ __isub__ __itruediv__ __le__ __lt__ __mod__ __mul__ __ne__ __neg__ __or__ __pow__
    __radd__ __rand__ __rfloordiv__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rtruediv__
    __rxor__ __sub__ __truediv__ __xor__ alpha_dropout bernoulli bfloat16 bool celu clamp clamp_
    clamp_max clamp_min clip dropout dropout_ double elu elu_ empty_like fill_ float full_like gelu
    half hardsigmoid hardswish hardtanh int isclose isfinite isinf isneginf isposinf leaky_relu
    logsigmoid long masked_fill masked_fill_ mish nan_to_num ones_like rand_like randn_like relu6
    rrelu selu silu softplus softsign sub tanhshrink type_as zero_ zeros_like""".split()
)
_REDUCTIONS = frozenset(
    "all amax amin any argmax argmin logsumexp max mean min prod std sum var".split()
)
_ALONG = frozenset("cumprod cumsum log_softmax logcumsumexp softmax softmin".split())


def _is_nested(value: Any) -> bool:
    return issubclass(type(value), NestedTensor)


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: expected dense tensors, got a nested one; unbind() and to_padded_tensor() give "
        "dense ones"
    )


def _is_pointwise(name: str) -> bool:
    from treadle._introspection.tags import Tag
    from treadle._ops import ops

    if name in _OF_ELEMENTS:
        return True
    packet: Any = getattr(ops.aten, name, None)
    overloads = packet.overloads() if hasattr(packet, "overloads") else []
    return any(Tag.pointwise in getattr(packet, o).tags for o in overloads)


# ---- functions of elements -----------------------------------------------------------------------


def _for_values(name: str, like: NestedTensor, tensor: Tensor) -> Tensor:
    """A dense tensor as the values of `like` see it, broadcast."""
    missing = like.dim() - tensor.dim()
    if tensor.dim() == 0:
        return tensor
    sizes = tuple(tensor.shape)
    ragged = like._ragged_idx
    fits = missing >= 0
    if fits:
        tensor = tensor.reshape((1,) * missing + sizes)
        fits = tensor.shape[0] in (1, len(like)) and tensor.shape[ragged] in (
            1,
            like._get_max_seqlen(),
        )
    if not fits:
        raise RuntimeError(
            f"{name}: expected a tensor that is broadcast to {tuple(like.shape)}, got shape {sizes}"
        )
    if tensor.shape[0] == 1 and tensor.shape[ragged] == 1:
        return tensor.squeeze(0)
    parts, places = like._owners()
    moved = tensor.movedim(ragged, 1)
    parts = parts if tensor.shape[0] > 1 else _C.zeros_like(parts)
    places = places if tensor.shape[ragged] > 1 else _C.zeros_like(places)
    return moved[parts, places].movedim(0, ragged - 1)


def _pointwise(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    nested = [a for a in (*args, *kwargs.values()) if _is_nested(a)]
    first = nested[0]
    if any(other._lengths is not first._lengths for other in nested):
        packed = {id(n): n._packed() for n in nested}
        first = packed[id(first)]
        args = tuple(packed.get(id(a), a) for a in args)
        kwargs = {key: packed.get(id(a), a) for key, a in kwargs.items()}
        nested = list(packed.values())
    # Those with most dimensions say which is ragged; others are broadcast as dense ones are.
    first = max(nested, key=lambda n: n.dim())
    for other in nested:
        same = other._offsets is first._offsets
        lined_up = other.dim() - other._ragged_idx == first.dim() - first._ragged_idx
        if not same or not (lined_up or other.dim() == first.dim()) or (
            other.dim() == first.dim() and other._ragged_idx != first._ragged_idx
        ):  # fmt: skip
            raise RuntimeError(
                f"{name}: expected nested tensors with the same offsets, got "
                f"{tuple(first.shape)} and {tuple(other.shape)}"
            )

    def values(argument: Any) -> Any:
        if _is_nested(argument):
            return argument._values
        if isinstance(argument, Tensor):
            return _for_values(name, first, argument)
        return argument

    result = func(*map(values, args), **{key: values(a) for key, a in kwargs.items()})
    if result is first._values:
        return first
    return first._like(result)


# ---- along dimensions ----------------------------------------------------------------------------


def _per_part(parts: List[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return type(parts[0])([_C.stack(list(column)) for column in zip(*parts)])
    return _C.stack(parts)


def _wrapped(x: NestedTensor, result: Any, ragged: int) -> Any:
    if isinstance(result, tuple):
        return type(result)([x._like(part, ragged) for part in result])
    return x._like(result, ragged)


def _reduce(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    kwargs = dict(kwargs)
    x, rest = args[0]._packed(), list(args[1:])
    if rest and isinstance(rest[0], Tensor):
        return _pointwise(func, name, args, kwargs)
    dim = kwargs.pop("dim", kwargs.pop("axis", None))
    if dim is None and rest and not isinstance(rest[0], bool):
        dim = rest.pop(0)
    keepdim = kwargs.pop("keepdim", rest.pop(0) if rest else False)
    if dim is None or dim == ():
        return func(x._values, **kwargs)
    several = isinstance(dim, (tuple, list))
    dims = sorted(in_order(name, d, x.dim()) for d in (dim if several else (dim,)))
    ragged = x._ragged_idx
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{name}: expected the ragged dimension {ragged} beside that of the parts, got "
            f"dim = {dim}"
        )

    def on(tensor: Tensor, chosen: List[int]) -> Any:
        return func(tensor, tuple(chosen) if several else chosen[0], keepdim=keepdim, **kwargs)

    if 0 in dims:
        result = on(x._values, [d - 1 for d in dims if d])
        return result.unsqueeze(0) if keepdim else result
    inner = [d - 1 for d in dims]
    if ragged in dims:
        return _per_part([on(part, inner) for part in x.unbind()])
    left = ragged if keepdim else ragged - sum(d < ragged for d in dims)
    return _wrapped(x, on(x._values, inner), left)


def _along(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    kwargs = dict(kwargs)
    x, rest = args[0]._packed(), list(args[1:])
    dim = in_order(name, kwargs.pop("dim") if "dim" in kwargs else rest.pop(0), x.dim())
    if dim == 0:
        raise RuntimeError(f"{name}: expected another dimension than that of the parts, got 0")
    if dim != x._ragged_idx:
        return x._like(func(x._values, dim - 1, *rest, **kwargs))
    done = [func(part, dim - 1, *rest, **kwargs) for part in x.unbind()]
    return x._like(_C.cat(done, dim - 1))


def _normalised(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    shape = kwargs["normalized_shape"] if "normalized_shape" in kwargs else args[1]
    count = 1 if isinstance(shape, int) else len(shape)
    if count >= x.dim() - x._ragged_idx:
        raise RuntimeError(
            f"{name}: expected normalized_shape within the dimensions behind the ragged one, got "
            f"{tuple(shape)} for {tuple(x.shape)}"
        )
    return x._like(func(x._values, *args[1:], **kwargs))


def _on_last(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    if x._ragged_idx == x.dim() - 1:
        raise RuntimeError(
            f"{name}: expected a last dimension that is not ragged, got {tuple(x.shape)}"
        )
    return x._like(func(x._values, *args[1:], **kwargs))


def _embedding(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    return x._like(func(x._values, *args[1:], **kwargs))


# ---- products ------------------------------------------------------------------------------------


def _matmul(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    a, b = args
    if name == "__rmatmul__":
        a, b = b, a
    if not _is_nested(b) and isinstance(b, Tensor) and b.dim() <= 2 and (
        a._ragged_idx < a.dim() - 1
    ):  # fmt: skip
        result = _C.matmul(a._values, b)
        return a._like(result)
    for one in (a, b):
        if not _is_nested(one) and (one.dim() < 3 or one.shape[0] not in (1, len(_other(a, b)))):
            raise RuntimeError(
                f"{name}: expected a matrix or one for each part, got shape {tuple(one.shape)}"
            )
    count = len(a) if _is_nested(a) else len(b)
    lefts = list(a) if len(a) == count else [a[0]] * count
    rights = list(b) if len(b) == count else [b[0]] * count
    return _gathered([_C.matmul(x, y) for x, y in zip(lefts, rights)], a, b)


def _other(a: Any, b: Any) -> Any:
    return a if _is_nested(a) else b


def _gathered(parts: List[Tensor], *sources: Any) -> Any:
    """Results of the parts: nested with the offsets of a source that they fit, or dense."""
    for source in sources:
        if not _is_nested(source):
            continue
        sizes = source._packed()._sizes()
        # Rows of a product are rows of a factor, columns are columns.
        ragged = parts[0].dim() + 1 - (source.dim() - source._ragged_idx)
        rest = {tuple(s for d, s in enumerate(p.shape, 1) if d != ragged) for p in parts}
        if len(rest) == 1 and [p.shape[ragged - 1] for p in parts] == sizes:
            return source._packed()._like(_C.cat(parts, ragged - 1), ragged)
    if len({tuple(p.shape) for p in parts}) == 1:
        return _C.stack(parts)
    return joined(parts, None, _C.strided)


def _attention(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args)), **kwargs}
    query, key, value = (given.pop(n) for n in names[:3])
    if not all(map(_is_nested, (query, key, value))) or query._ragged_idx != query.dim() - 2:
        raise RuntimeError(
            f"{name}: expected nested query, key and value (parts, ..., ragged size, size), got "
            f"{[tuple(t.shape) for t in (query, key, value)]}"
        )
    if given.get("attn_mask") is not None:
        raise NotImplementedError(f"{name}: expected no attn_mask for nested tensors, got one")
    if not len(query) == len(key) == len(value):
        raise RuntimeError(
            f"{name}: expected as many parts in all, got {len(query)}, {len(key)}, {len(value)}"
        )
    done = [func(q, k, v, **given) for q, k, v in zip(query, key, value)]
    packed = query._packed()
    return packed._like(_C.cat(done, packed._ragged_idx - 1))


# ---- shapes --------------------------------------------------------------------------------------


def _order(name: str, x: NestedTensor, order: List[int]) -> NestedTensor:
    if sorted(order) != list(range(x.dim())) or order[0] != 0:
        raise ValueError(
            f"{name}: expected each dimension once, that of the parts first, got {tuple(order)}"
        )
    return x._like(x._values.permute([d - 1 for d in order[1:]]), order.index(x._ragged_idx))


def _transpose(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, dims = args[0], [*args[1:], *kwargs.values()]
    a, b = (in_order(name, d, x.dim()) for d in dims)
    order = list(range(x.dim()))
    order[a], order[b] = b, a
    return _order(name, x, order)


def _permute(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, dims = args[0], args[1:] or tuple(kwargs.values())
    given = dims[0] if isinstance(dims[0], (tuple, list)) else dims
    return _order(name, x, [in_order(name, d, x.dim()) for d in given])


def _unsqueeze(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, given = args[0], [*args[1:], *kwargs.values()][0]
    dim = in_order(name, given, x.dim() + 1)
    if dim == 0:
        raise RuntimeError(f"{name}: expected a place behind that of the parts, got {given}")
    return x._like(x._values.unsqueeze(dim - 1), x._ragged_idx + (dim <= x._ragged_idx))


def _squeeze(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, given = args[0], [*args[1:], *kwargs.values()]
    if not given:
        raise RuntimeError(f"{name}: expected a dimension for a nested tensor, got none")
    dim = in_order(name, given[0], x.dim())
    if dim in (0, x._ragged_idx) or x._values.shape[dim - 1] != 1:
        return x
    return x._like(x._values.squeeze(dim - 1), x._ragged_idx - (dim < x._ragged_idx))


def _view(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    if len(args) > 1 and isinstance(args[1], _C.dtype):
        return x._like(x._values.view(args[1]))
    given = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    sizes: List[Any] = list(given or kwargs["size"])
    named = [d for d, size in enumerate(sizes) if issubclass(type(size), RaggedSize)]
    ragged = named[0] if named else next((d for d in range(1, len(sizes)) if sizes[d] == -1), 0)
    shape = tuple(x._values.shape)
    before, behind = math.prod(shape[: x._ragged_idx - 1]), math.prod(shape[x._ragged_idx :])
    if not ragged or sizes[0] not in (-1, len(x)):
        raise RuntimeError(
            f"{name}: expected {len(x)} parts and a ragged size (or -1 for it), got {tuple(sizes)}"
        )

    def known(part: List[int], total: int) -> List[int]:
        rest = math.prod(s for s in part if s != -1)
        part = [total // rest if s == -1 and rest else s for s in part]
        if math.prod(part) != total:
            raise RuntimeError(
                f"{name}: expected sizes with {before} elements before the ragged one and {behind} "
                f"behind it, got {tuple(sizes)}"
            )
        return part

    head, tail = known(sizes[1:ragged], before), known(sizes[ragged + 1 :], behind)
    change = x._values.view if name == "view" else x._values.reshape
    return x._like(change(*head, shape[x._ragged_idx - 1], *tail), ragged)


def _unflatten(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    dim, sizes = [*args[1:], *kwargs.values()]
    dim = in_order(name, dim, x.dim())
    _inner(name, x, dim)
    more = (len(sizes) - 1) * (dim < x._ragged_idx)
    return x._like(x._values.unflatten(dim - 1, sizes), x._ragged_idx + more)


def _flatten(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, given = args[0], list(args[1:])
    start = in_order(name, given[0] if given else kwargs.get("start_dim", 0), x.dim())
    end = given[1] if len(given) > 1 else kwargs.get("end_dim", -1)
    end = in_order(name, end, x.dim())
    if start == 0 or start <= x._ragged_idx <= end:
        raise RuntimeError(
            f"{name}: expected dimensions on one side of the ragged one, got {start} to {end}"
        )
    less = (end - start) * (end < x._ragged_idx)
    return x._like(x._values.flatten(start - 1, end - 1), x._ragged_idx - less)


def _inner(name: str, x: NestedTensor, dim: int) -> int:
    if dim in (0, x._ragged_idx):
        raise RuntimeError(
            f"{name}: expected a dimension that all parts have in common, got {dim} of "
            f"{tuple(x.shape)}"
        )
    return dim


def _narrow(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, dim, *rest = args
    dim = _inner(name, x, in_order(name, dim, x.dim()))
    return x._like(x._values.narrow(dim - 1, *rest, **kwargs))


def _select(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x = args[0]
    dim, index = [*args[1:], *kwargs.values()]
    dim = in_order(name, dim, x.dim())
    return _index(func, name, (x, (*(slice(None),) * dim, index)), {})


def _pieces(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, rest, kwargs = args[0], list(args[1:]), dict(kwargs)
    size = rest.pop(0)
    given = rest.pop(0) if rest else kwargs.pop("dim", 0)
    dim = in_order(name, given, x.dim())
    if dim == 0:
        groups = getattr(_C, name)(_C.arange(len(x)), size)
        parts = x.unbind()
        return tuple(joined([parts[i] for i in g], x._ragged_idx, x._layout) for g in groups)
    _inner(name, x, dim)
    return tuple(x._like(piece) for piece in func(x._values, size, dim - 1, **kwargs))


def _cat(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    tensors = args[0] if args else kwargs["tensors"]
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    first = next(t for t in tensors if _is_nested(t))
    dim = in_order(name, dim, first.dim())
    if dim == 0:
        parts = [part for t in tensors for part in t.unbind()]
        return joined(parts, first._ragged_idx, first._layout)
    _inner(name, first, dim)
    for other in tensors:
        if not _is_nested(other) or other._offsets is not first._offsets:
            raise RuntimeError(f"{name}: expected nested tensors with the same offsets")
    return first._like(_C.cat([t._values for t in tensors], dim - 1))


def _expand(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, given = args[0], args[1:]
    sizes: List[Any] = list(given[0] if isinstance(given[0], (tuple, list)) else given)
    if len(sizes) != x.dim() or sizes[0] not in (-1, len(x)) or (
        not (issubclass(type(sizes[x._ragged_idx]), RaggedSize) or sizes[x._ragged_idx] == -1)
    ):  # fmt: skip
        raise RuntimeError(f"{name}: expected sizes that fit {tuple(x.shape)}, got {tuple(sizes)}")
    sizes[x._ragged_idx] = -1
    return x._like(x._values.expand(sizes[1:]))


def _index(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    x, item = args[0]._packed(), args[1]
    given = list(item) if isinstance(item, tuple) else [item]
    if any(g is Ellipsis for g in given):
        place = next(i for i, g in enumerate(given) if g is Ellipsis)
        given[place : place + 1] = [slice(None)] * (x.dim() - len(given) + 1)
    if len(given) > x.dim() or any(g is None for g in given):
        raise IndexError(f"index: expected at most {x.dim()} places, got {item!r}")
    which, rest = given[0], given[1:]
    if isinstance(which, int):
        if not -len(x) <= which < len(x):
            raise IndexError(f"index: expected a part from 0 to {len(x) - 1}, got {which}")
        part = x.unbind()[which]
        return part[tuple(rest)] if rest else part
    if not (isinstance(which, slice) and which == slice(None)):
        chosen = _C.arange(len(x))[which].tolist()
        parts = x.unbind()
        x = joined([parts[i] for i in chosen], x._ragged_idx, x._layout)
    if not rest:
        return x
    ragged = x._ragged_idx - 1
    whole = len(rest) <= ragged or (isinstance(rest[ragged], slice) and rest[ragged] == slice(None))
    if not whole:
        parts = [part[tuple(rest)] for part in x.unbind()]
        if isinstance(rest[ragged], int):
            return _C.stack(parts)
        gone = sum(isinstance(g, int) for g in rest[:ragged])
        return joined(parts, ragged + 1 - gone, x._layout)
    if not all(isinstance(g, (int, slice)) for g in rest):
        raise _refused("indexing by tensors behind the parts")
    gone = sum(isinstance(g, int) for g in rest[:ragged])
    return x._like(x._values[tuple(rest)], x._ragged_idx - gone)


def _equal(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> bool:
    a, b = args
    if not (_is_nested(a) and _is_nested(b)) or len(a) != len(b):
        return False
    return all(func(x, y, **kwargs) for x, y in zip(a, b))


def _own(func: Any, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    return getattr(args[0], name)(*args[1:], **kwargs)


_RULES: Dict[str, Callable] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(_ALONG, _along),
    **dict.fromkeys(("layer_norm", "rms_norm"), _normalised),
    **dict.fromkeys(("linear", "glu"), _on_last),
    "embedding": _embedding,
    **dict.fromkeys(("matmul", "bmm", "mm", "__matmul__", "__rmatmul__"), _matmul),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    **dict.fromkeys(("view", "reshape"), _view),
    "unflatten": _unflatten,
    "flatten": _flatten,
    "narrow": _narrow,
    "select": _select,
    **dict.fromkeys(("chunk", "split"), _pieces),
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    "expand": _expand,
    "__getitem__": _index,
    **dict.fromkeys(("equal", "allclose"), _equal),
    **dict.fromkeys(("unbind", "clone", "detach", "contiguous", "to_padded_tensor", "is_same_size",
                     "to", "numel", "is_floating_point", "is_complex", "dim", "size"), _own),
}  # fmt: skip


def call(func: Callable, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    """func(*args, **kwargs), where some argument is a nested tensor."""
    name = getattr(func, "__name__", str(func))
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}: expected no out= for nested tensors, got one")
    if not args and "input" in kwargs:
        kwargs = dict(kwargs)
        args = (kwargs.pop("input"),)
    rule = _RULES.get(name)
    if rule is not None:
        if name not in ("cat", "concat", "concatenate") and not any(map(_is_nested, args[:3])):
            raise _refused(name)
        return rule(func, name, args, kwargs)
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if _is_pointwise(name) or _is_pointwise(plain):
        return _pointwise(func, name, args, kwargs)
    raise _refused(name)


def _operator(name: str) -> Callable:
    def method(self: NestedTensor, *args: Any) -> Any:
        return call(getattr(Tensor, name), (self, *args), {})

    method.__name__ = name
    return method


for _name in (*(n for n in _OF_ELEMENTS if n.startswith("__")), "__matmul__", "__rmatmul__",
              "__getitem__"):  # fmt: skip
    if hasattr(Tensor, _name):
        setattr(NestedTensor, _name, _operator(_name))
setattr(NestedTensor, "__hash__", object.__hash__)  # noqa: B010  __eq__ took it away
