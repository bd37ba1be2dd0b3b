"""The labels of operators with kernels, by their shape rule: what a rule computes of shapes, its
kernels compute of elements.

A pattern gives the dimensions of the arguments that are tensors, and of the results: a letter is a
label, `_` a dimension that stays whole, `*` any number of labelled dimensions before the others,
`.` any number of whole ones.

    "*nk,*km->*nm"      # batched products; k is missing in the result: an addition along it

Arguments may have fewer dimensions than the pattern, as in broadcasting: it is read from the right.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable, Dict, FrozenSet, List, Optional, Sequence

from treadle.distributed.tensor._labels import Call, Labelling, Labels, dims_of, without

Rule = Callable[[Call], Optional[Labelling]]


def _fitted(pattern: str, ndim: int) -> Labels:
    """The labels that a pattern gives a tensor with so many dimensions."""
    if "." in pattern:
        before, after = pattern.split(".")
        missing = ndim - len(before) - len(after)
        pattern = before + "_" * missing + after
    elif "*" in pattern:
        before, after = pattern.split("*")
        count = ndim - len(before) - len(after)
        batch = [f"*{i}" for i in range(count)][-count:] if count > 0 else []
        labels = [*before, *batch, *after]
        return [None if label == "_" else label for label in labels[-ndim:] if ndim]
    return [None if label == "_" else label for label in pattern[-ndim:] if ndim]


def by_pattern(
    pattern: str, linear: Sequence[str] = (), sizes: Optional[Dict[str, str]] = None
) -> Rule:
    """The rule of a pattern; `linear` names sets of arguments in which results are linear, with +
    between; `sizes` has patterns of arguments that are lists of sizes."""

    def rule(call: Call) -> Optional[Labelling]:
        left, right = pattern.split("->")
        return labelled(call, left.split(","), right.split(","), linear, sizes)

    return rule


def labelled(
    call: Call,
    inputs: Sequence[str],
    outputs: Sequence[str],
    linear: Sequence[str] = (),
    sizes: Optional[Dict[str, str]] = None,
) -> Optional[Labelling]:
    """The labels by patterns, one for each argument that is a tensor, given or not."""
    patterns = dict(zip(call.facts.tensors, inputs))
    found: List[Labels] = []
    longest = 0
    for i, name in enumerate(call.names):
        labels = _fitted(patterns[name], len(call.shape(i)))
        if len(labels) != len(call.shape(i)):
            return None
        longest = max(longest, sum(1 for label in labels if label and label[0] == "*"))
        found.append(labels)
    # Batch dimensions are counted from the right, so that those of fewer dimensions fit.
    for labels in found:
        own = [d for d, label in enumerate(labels) if label and label[0] == "*"]
        for k, d in enumerate(own):
            labels[d] = f"*{longest - len(own) + k}"
    results: List[Labels] = []
    batch: Labels = [f"*{i}" for i in range(longest)]
    for each in outputs:
        labels = []
        for token in each:
            labels += batch if token == "*" else [] if token == "." else [token]
        results.append([None if label == "_" else label for label in labels])
        if "." in each:
            results[-1].append("...")
    _only_equal(call, found)
    known = {label for labels in found for label in labels if label}
    results = [[x if x in known or x == "..." else None for x in labels] for labels in results]
    ways = {label: "sum" for label in known if any(label not in r for r in results)}
    groups = [frozenset(i for name in names.split("+") for i in call.of(name)) for names in linear]
    lists = {}
    for name, each in (sizes or {}).items():
        value = call.args.get(name)
        lists[name] = _fitted(each, len(value) if isinstance(value, (list, tuple)) else 1)
    return Labelling(found, results, ways=ways, linear=groups, sizes=lists)


def _only_equal(call: Call, found: List[Labels]) -> None:
    """Take the labels from dimensions of one element that others have more of."""
    sizes: Dict[str, int] = {}
    for i, labels in enumerate(found):
        for label, size in zip(labels, call.shape(i)):
            if label:
                sizes[label] = max(sizes.get(label, 0), size)
    for i, labels in enumerate(found):
        for d, size in enumerate(call.shape(i)):
            label = labels[d]
            if label and size == 1 and sizes[label] > 1:
                labels[d] = None


# ---- along dimensions ----


def elementwise(call: Call) -> Optional[Labelling]:
    """Tensors of one shape, element by element."""
    return _except(call, [])


def along(call: Call) -> Optional[Labelling]:
    """Tensors of one shape, of which dimensions are taken together: these are whole."""
    ndim = len(call.shape(0))
    word = next((w for w in ("dim", "dims") if w in call.args), None)
    dims = dims_of(call.args.get(word) if word else None, ndim)
    return _except(call, dims)


def _except(call: Call, dims: Sequence[int], drops: bool = False) -> Optional[Labelling]:
    ndim = len(call.shape(0))
    if any(len(call.shape(i)) != ndim for i in range(len(call.tensors))):
        return None
    labels: Labels = [None if d in dims else f"d{d}" for d in range(ndim)]
    for d in range(ndim):
        if len({call.shape(i)[d] for i in range(len(call.tensors))}) > 1:
            labels[d] = None
    result = without(labels, dims, not drops)
    count = len(call.facts.entry["returns"])
    return Labelling([list(labels) for _ in call.tensors], [list(result) for _ in range(count)])


def selecting(call: Call) -> Optional[Labelling]:
    """One element is made along a dimension, which the results have not, or have with one."""
    ndim = len(call.shape(0))
    dims = dims_of(call.args.get("dim"), ndim)
    return _except(call, dims, drops=not call.args.get("keepdim"))


def last(count: int) -> Rule:
    """The last dimensions of all tensors are whole, those before are labelled."""

    def rule(call: Call) -> Optional[Labelling]:
        batch = [len(call.shape(i)) - count for i in range(len(call.tensors))]
        if min(batch) < 0 or len(set(batch)) > 1:
            return None
        shared: Labels = [f"*{d}" for d in range(batch[0])]
        for d in range(batch[0]):
            if len({call.shape(i)[d] for i in range(len(call.tensors))}) > 1:
                shared[d] = None
        inputs: List[Labels] = [[*shared, *[None] * count] for _ in call.tensors]
        results: List[Labels] = [[*shared, "..."] for _ in call.facts.entry["returns"]]
        sizes = {}
        for name in ("input_size", "output_size"):
            value = call.args.get(name)
            if isinstance(value, (list, tuple)) and len(value) == len(call.shape(0)):
                sizes[name] = inputs[0]
        return Labelling(inputs, results, sizes=sizes)

    return rule


def spatial(call: Call) -> Optional[Labelling]:
    """Windows over the last dimensions, as many as the list of their sizes has, or `spatial`."""
    for name in ("kernel_size", "output_size"):
        value = call.args.get(name)
        if isinstance(value, (list, tuple)):
            full = len(value) == len(call.shape(0))
            count = call.args.get("spatial")
            if full and not isinstance(count, int):
                return None
            return last(count if isinstance(count, int) else len(value))(call)
    count = call.args.get("spatial")
    return last(count)(call) if isinstance(count, int) else None


def resampled(call: Call) -> Optional[Labelling]:
    """Windows along one dimension."""
    return _except(call, dims_of(call.args["dim"], len(call.shape(0))))


# ---- families ----


def convolution(call: Call) -> Optional[Labelling]:
    """The batch of the input, and the channels of the result."""
    batch = "n" if len(call.shape(0)) == len(call.shape(1)) else ""
    if call.args.get("groups", 1) != 1:
        return labelled(call, [f"{batch}.", "_.", "_"], [f"{batch}."])
    weight = "co." if call.args.get("transposed") else "oc."
    linear = ["input+bias", "weight+bias"]
    return labelled(call, [f"{batch}c.", weight, "o"], [f"{batch}o."], linear)


def convolution_grad_weight(call: Call) -> Optional[Labelling]:
    """A sum over the batch."""
    if len(call.shape(0)) < len(call.args["weight_size"]):
        return None
    return labelled(call, ["n.", "n."], ["."], ["grad", "input"])


def normalised(call: Call) -> Optional[Labelling]:
    """The last dimensions are normalised together, with weights of their shape."""
    count = len(call.args["normalized_shape"])
    rows = "*" + "_" * count
    inputs = ["_" * count if name in ("weight", "bias") else rows for name in call.facts.tensors]
    outputs = [
        "_" * count if name in ("grad_weight", "grad_bias") else "*."
        for name in call.facts.entry["result_names"]
    ]
    found = labelled(call, inputs, outputs)
    if found is None or any(len(call.shape(i)) < count for i in range(len(call.tensors))):
        return None
    return found


def channels(call: Call) -> Optional[Labelling]:
    """Each channel is normalised by itself."""
    inputs = ["_c." if name in ("grad", "input") else "c" for name in call.facts.tensors]
    outputs = [
        "_c." if name in ("output", "grad_input") else "c"
        for name in call.facts.entry["result_names"]
    ]
    return labelled(call, inputs, outputs)


def groups(call: Call) -> Optional[Labelling]:
    """Each image is normalised by itself."""
    inputs = ["_" if name in ("weight", "bias") else "n." for name in call.facts.tensors]
    outputs = [
        "_" if name in ("grad_weight", "grad_bias") else "n."
        for name in call.facts.entry["result_names"]
    ]
    return labelled(call, inputs, outputs, sizes={"N": "n"})


def attention(call: Call) -> Optional[Labelling]:
    """The batch and the heads; a mask is broadcast."""
    if call.args.get("dropout_p", 0.0):
        return None
    inputs = ["*_" if name == "logsumexp" else "*__" for name in call.facts.tensors]
    outputs = ["*_" if name == "logsumexp" else "*__" for name in call.facts.entry["result_names"]]
    return labelled(call, inputs, outputs)


def joined(call: Call) -> Optional[Labelling]:
    """Tensors one after another along a dimension."""
    shapes = [call.shape(i) for i in range(len(call.tensors))]
    ndim = max(len(shape) for shape in shapes)
    if any(len(shape) != ndim for shape in shapes):
        return None
    found = _except(call, dims_of(call.args["dim"], ndim))
    if found is not None:
        found.linear, found.moves = [frozenset(range(len(call.tensors)))], True
    return found


def stacked(call: Call) -> Optional[Labelling]:
    """Tensors along a new dimension."""
    ndim = len(call.shape(0))
    labels: Labels = [f"d{d}" for d in range(ndim)]
    dim = int(call.args.get("dim", 0)) % (ndim + 1)
    result = [*labels[:dim], None, *labels[dim:]]
    everything: FrozenSet[int] = frozenset(range(len(call.tensors)))
    inputs = [list(labels) for _ in call.tensors]
    return Labelling(inputs, [result], linear=[everything], moves=True)


def index_select(call: Call) -> Optional[Labelling]:
    """Rows that an index names: the index may be cut, or other dimensions of the rows."""
    ndim = len(call.shape(0))
    if not ndim or not call.shape(1):
        return None
    dim = dims_of(call.args["dim"], ndim)[0]
    rows: Labels = [None if d == dim else f"d{d}" for d in range(ndim)]
    result = ["i" if d == dim else label for d, label in enumerate(rows)]
    return Labelling([rows, ["i"]], [result], linear=[frozenset([0])], moves=True)


def index_write(call: Call) -> Optional[Labelling]:
    """Rows that an index names are written."""
    ndim = len(call.shape(0))
    dim = dims_of(call.args["dim"], ndim)[0]
    rows: Labels = [None if d == dim else f"d{d}" for d in range(ndim)]
    found: List[Labels] = []
    for i, name in enumerate(call.names):
        if name == "index":
            found.append([None] * len(call.shape(i)))
        elif len(call.shape(i)) == ndim:
            found.append(list(rows))
        else:
            return None
    return Labelling(found, [list(rows)])


def index_integer(call: Call) -> Optional[Labelling]:
    """Elements that tensors of indices name, for some of the dimensions next to each other."""
    indices = call.args["indices"]
    given = [d for d, index in enumerate(indices) if index is not None]
    if not given or given != list(range(given[0], given[-1] + 1)):
        return None
    first, end = given[0], given[-1] + 1
    ndim = len(call.shape(0))
    rows: Labels = [None if first <= d < end else f"d{d}" for d in range(ndim)]
    places = call.of("indices")
    wide = max(len(call.shape(i)) for i in places)
    is_read = "values" not in call.facts.tensors
    index: Labels = [f"i{k}" if is_read else None for k in range(wide)]
    result = [*rows[:first], *index, *rows[end:]]
    found: List[Labels] = []
    for i, name in enumerate(call.names):
        shape = call.shape(i)
        if name == "self":
            found.append(list(rows))
        else:
            whole = index if name == "indices" else result
            found.append(list(whole[len(whole) - len(shape) :]) if shape else [])
    _only_equal(call, found)
    return Labelling(found, [result if is_read else list(rows)])


def embedding_grad(call: Call) -> Optional[Labelling]:
    """A sum over the indices, unless each row is divided by how often it is named."""
    if call.args.get("scale_grad_by_freq"):
        return labelled(call, [".d", "."], ["_d"], ["grad_output"])
    return labelled(call, ["*d", "*"], ["_d"], ["grad_output"])


def nll_loss(call: Call) -> Optional[Labelling]:
    """Each sample has its own loss; their sum is a sum over samples, the mean is none."""
    reduction = call.args["reduction"]
    if len(call.shape(0)) < 2 or reduction == 1:
        return None
    return labelled(call, ["n_.", "n.", "_"], ["n.", "_"] if reduction == 0 else [".", "."])


def nll_loss_grad(call: Call) -> Optional[Labelling]:
    """Each sample has its own gradient."""
    place = call.of("self")[0]
    if len(call.shape(place)) < 2:
        return None
    grad = "n." if call.shape(call.of("grad")[0]) else "."
    return labelled(call, [grad, "n_.", "n.", "_", "."], ["n_."])


def searched(call: Call) -> Optional[Labelling]:
    """One sequence for all values, or one for each row of them."""
    if len(call.shape(0)) > 1:
        return along_last(call)
    labels: Labels = [f"d{d}" for d in range(len(call.shape(1)))]
    whole: List[Labels] = [[None] * len(call.shape(i)) for i in range(len(call.tensors))]
    whole[1] = labels
    return Labelling(whole, [list(labels)])


def along_last(call: Call) -> Optional[Labelling]:
    """The last dimension is whole."""
    return _except(call, [len(call.shape(0)) - 1])


_MATRICES = last(2)

# The rules, by the name of the shape rule of entries. Operators of other rules are computed whole.
RULES: Dict[str, Rule] = {
    **dict.fromkeys(
        ("softmax", "softmax_backward", "sort", "scan", "scan_same", "topk", "along_dim", "flip",
         "gather", "scatter", "scatter_value", "fft_c2c", "fft_c2r", "fft_r2c"), along,
    ),
    **dict.fromkeys(("select_one", "kthvalue", "argreduce", "variance"), selecting),
    **dict.fromkeys(("resample", "resample_grad"), resampled),
    **dict.fromkeys(
        ("pool", "avg_pool", "avg_pool_grad", "max_pool", "max_pool_grad", "max_pool_gather",
         "adaptive_pool", "adaptive_pool_grad", "adaptive_max_pool"), spatial,
    ),
    **dict.fromkeys(
        ("triangle", "linalg_cholesky", "linalg_eig", "linalg_eigh", "linalg_householder_product",
         "linalg_ldl", "linalg_lu", "linalg_matrix_exp", "linalg_qr", "linalg_solve",
         "linalg_solve_triangular", "linalg_svd", "geqrf", "ormqr"), _MATRICES,
    ),
    "mm": by_pattern("nk,km->nm", ["self", "mat2"]),
    "addmm": by_pattern("nm,nk,km->nm", ["self+mat1", "self+mat2"]),
    "bmm": by_pattern("bnk,bkm->bnm", ["self", "mat2"]),
    "baddbmm": by_pattern("bnm,bnk,bkm->bnm", ["self+batch1", "self+batch2"]),
    "cdist": by_pattern("*n_,*m_->*nm"),
    "convolution": convolution,
    "convolution_grad_weight": convolution_grad_weight,
    "embedding": by_pattern("_d,*->*d", ["weight"]),
    "embedding_dense_backward": embedding_grad,
    "layer_norm": normalised,
    "layer_norm_grad": normalised,
    "rms_norm": normalised,
    "rms_norm_grad": normalised,
    "batch_norm": channels,
    "batch_norm_grad": channels,
    "group_norm": groups,
    "group_norm_grad": groups,
    "attention": attention,
    "attention_grad": attention,
    "lstm_cell": by_pattern("b_,b_->b_,b_"),
    "lstm_cell_grad": by_pattern("b_,b_,b_,b_,b_->b_,b_"),
    "cat": joined,
    "stack": stacked,
    "index_select": index_select,
    "index_fill": index_write,
    "index_write": index_write,
    "index_integer": index_integer,
    "index_put_integer": index_integer,
    "grid_sampler": by_pattern("nc.,n.->nc."),
    "nll_loss": nll_loss,
    "nll_loss_grad": nll_loss_grad,
    "searchsorted": searched,
    "frexp": by_pattern("*->*,*"),
    "same_as_each": elementwise,
}  # fmt: skip

__all__ = ["RULES"]
