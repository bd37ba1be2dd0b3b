"""Treadle: a tensor library whose operators are written once.

    import treadle

    x = treadle.randn(3, 4, requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)

Names, arguments and results are PyTorch's, so `import treadle as torch` works. The operators come
from the extension module `treadle._C`; parts of the package that a program may not need are
imported when they are first used.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib as _importlib
import math as _math
import typing as _typing

from treadle import _C, _names
from treadle._tensor import array_object as _array_object

if not _typing.TYPE_CHECKING:
    from treadle._C import *  # noqa: F401,F403  the operators and types

from treadle._device.default import install as _install_default_device
from treadle._device.default import set_default_device
from treadle._functions.batch_norm_out import native_batch_norm
from treadle._functions.linear_algebra import (
    block_diag,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    lu,
    pca_lowrank,
    svd_lowrank,
    tensordot,
)
from treadle._functions.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_warn_always,
    use_deterministic_algorithms,
)
from treadle._functions.variadic import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    meshgrid,
)
from treadle._tensor.legacy_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
)
from treadle._tensor.methods import install as _install_tensor_methods
from treadle._tensor.storage_types import STORAGE_NAMES as _STORAGE_NAMES
from treadle._tensor.storage_types import UNTYPED_NAME as _UNTYPED_NAME
from treadle._tensor.type_info import finfo, iinfo
from treadle.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from treadle.backends._discovery import autoload as _autoload_backends
from treadle.functional import (
    _assert,
    from_dlpack,
    histogramdd,
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
    is_tensor,
    nonzero,
    norm,
    numel,
    typename,
    unique,
    unique_consecutive,
    unravel_index,
)
from treadle.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

if _typing.TYPE_CHECKING:
    # Last, since a type checker takes the first of several: some are written in Python instead.
    from treadle._C import *  # type: ignore[assignment]

_install_default_device()
_install_tensor_methods()

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None
legacy_contiguous_format = contiguous_format  # noqa: F405
dsmm, saddmm = mm, addmm  # noqa: F405

# The version of the array API standard, whose names are partly here and all in array_api.
__array_api_version__ = "2025.12"

# Names imported at their first use, beside the modules of the package.
_LAZY = {
    "load": "treadle.serialization",
    "save": "treadle.serialization",
    "get_printoptions": "treadle._tensor_str",
    "printoptions": "treadle._tensor_str",
    "set_printoptions": "treadle._tensor_str",
    "explain": "treadle._introspection.explain",
    "fuse": "treadle.fusion",
    "vmap": "treadle.func",
    "__array_namespace_info__": "treadle.array_api",
    "__version__": "treadle._version",
    "autocast": "treadle.amp",
    **dict.fromkeys(
        (
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "get_autocast_ipu_dtype",
            "get_autocast_xla_dtype",
            "is_autocast_cpu_enabled",
            "is_autocast_enabled",
            "is_autocast_ipu_enabled",
            "is_autocast_xla_enabled",
            "set_autocast_cpu_dtype",
            "set_autocast_cpu_enabled",
            "set_autocast_dtype",
            "set_autocast_enabled",
            "set_autocast_gpu_dtype",
            "set_autocast_ipu_dtype",
            "set_autocast_ipu_enabled",
            "set_autocast_xla_dtype",
            "set_autocast_xla_enabled",
        ),
        "treadle.amp._state",
    ),
    "load_backend": "treadle.backends._loading",
    "get_device_module": "treadle._device.registry",
    **dict.fromkeys(("Event", "Stream"), "treadle._device.streams"),
    "compile": "treadle.compiler._compile",
    "Future": "treadle.futures",
    "_native_batch_norm_legit": "treadle._functions.batch_norm_out",
    "_int_mm": "treadle._functions.scaled_products",
    "_scaled_mm": "treadle._functions.scaled_products",
    "_scaled_mm_v2": "treadle._functions.scaled_products",
    "_convert_indices_from_coo_to_csr": "treadle._functions.older",
    "_convert_indices_from_csr_to_coo": "treadle._functions.older",
    "_shape_as_tensor": "treadle._functions.older",
    **dict.fromkeys(
        """_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long
        _cast_Short _segment_reduce""".split(),
        "treadle._functions.older",
    ),
    "Tag": "treadle._introspection.tags",
    "ops": "treadle._ops",
    **dict.fromkeys(
        (
            "_assert_async",
            "_check",
            "_check_index",
            "_check_is_size",
            "_check_not_implemented",
            "_check_tensor_all",
            "_check_tensor_all_with",
            "_check_type",
            "_check_value",
            "_check_with",
        ),
        "treadle._functions.checks",
    ),
    **dict.fromkeys(
        "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum".split(),
        "treadle._functions.symbolic",
    ),
    **dict.fromkeys(
        """AVG AcceleratorError AggregationType FatalError PRIVATE_OPS SUM USE_GLOBAL_DEPS
        USE_RTLD_GLOBAL_WITH_LIBTORCH classproperty compiled_with_cxx11_abi get_file_path
        has_cuda has_cudnn has_lapack has_mkl has_mkldnn has_mps has_openmp has_spectral
        init_num_threads is_vulkan_available per_channel_affine per_channel_affine_float_qparams
        per_channel_symmetric per_tensor_affine per_tensor_symmetric
        prepare_multiprocessing_environment qscheme""".split(),
        "treadle._introspection.build",
    ),
    **dict.fromkeys(
        """conv_tbc detach_ eig embedding_renorm_ fake_quantize_per_channel_affine
        fake_quantize_per_tensor_affine frobenius_norm get_device hsmm hspmm indices_copy
        is_distributed ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy
        lobpcg lstsq matrix_rank native_channel_shuffle native_dropout native_norm
        nuclear_norm resize_as_ smm solve sspaddmm values_copy""".split(),
        "treadle._functions.older",
    ),
    "fused_moving_avg_obs_fake_quant": "treadle._functions.fused_fake_quantization",
    **dict.fromkeys(("CompilationUnit", "ScriptFunction", "ScriptModule"), "treadle.jit"),
    **dict.fromkeys(("fork", "wait"), "treadle.jit"),
    **dict.fromkeys(
        """AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType
        FloatType FutureType IntType InterfaceType ListType NoneType NumberType
        OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType
        TensorType TupleType Type UnionType unify_type_list""".split(),
        "treadle.jit._type_objects",
    ),
    "ErrorReport": "treadle._sources",
    **dict.fromkeys(("Graph", "TracingState", "Value"), "treadle.jit._trace_graph"),
    "FileCheck": "treadle.testing._file_check",
    "merge_type_from_type_comment": "treadle.jit._type_comments",
    "parse_type_comment": "treadle.jit._type_comments",
    "FunctionSchema": "treadle._introspection.schema",
    "GradScaler": "treadle.amp",
    "thread_safe_generator": "treadle.random",
    "set_anomaly_enabled": "treadle.autograd.anomaly_mode",
    **dict.fromkeys(("DispatchKey", "DispatchKeySet"), "treadle._extension"),
    "ExcludeDispatchKeyGuard": "treadle._extension",
    **dict.fromkeys(
        (
            "Storage",
            "StorageBase",
            "TypedStorage",
            "from_file",
            *(name for name in _STORAGE_NAMES.values() if name != _UNTYPED_NAME),
        ),
        "treadle.storage",
    ),
    **dict.fromkeys(
        (
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_coo_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
            "spmm",
        ),
        "treadle.sparse",
    ),
}


def __getattr__(name: str) -> _typing.Any:
    if name in _LAZY:
        value = getattr(_importlib.import_module(_LAZY[name]), name)
        if name != "Storage":  # which follows the default dtype
            globals()[name] = value
        return value
    if name.startswith("_") and name in _C._private_operators():
        return getattr(_C, name)
    found = _names.otherwise(_names.PACKAGE, name)
    if found is None and name.startswith("_") and _C._library_overloads(f"aten::{name}"):
        # An operator without a function of its own: PyTorch has one for each.
        found = globals()[name] = getattr(_importlib.import_module("treadle._ops").ops.aten, name)
    if found is None:
        raise _names.missing(_names.PACKAGE, name)
    return found


def __dir__() -> list:
    import pkgutil

    modules = {m.name for m in pkgutil.iter_modules(__path__) if m.name != "__main__"}
    return sorted({*globals(), *modules, *_LAZY, *_C._private_operators()})


_autoload_backends()
