"""C++ extensions and operator libraries, built with the installed package and a compiler alone.

Just in time, in one call:

    my_ops = load("my_ops", ["my_ops.yaml", "kernels.cc"], derivatives="derivatives.yaml")
    y = my_ops.rotary(x)

In the setup.py of a project:

    setup(
        name="my-ops",
        ext_modules=[CppExtension("my_ops", ["my_ops.yaml", "kernels.cc"])],
        cmdclass={"build_ext": BuildExtension},
        install_requires=[requirement()],
    )

A source that includes torch/csrc/stable/library.h makes an extension for PyTorch's stable ABI,
which runs on PyTorch, too. A source that ends with .yaml has the entries of operators: it is a
library, whose module has their functions (treadle.codegen). Other sources define a module
themselves, by TREADLE_MODULE of treadle/extension.h.
`python -m treadle.utils.cpp_extension --cflags --ldflags` prints the
compiler's options for those who call it by other means.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Optional, Sequence, Union

from . import _compiler, operator_library
from ._cache_folder import cache_folder
from ._compiler import CompilerError

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CUDA_HOME",
    "CompilerError",
    "CppExtension",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
    "requirement",
]

# Where CUDA is installed: this Treadle has no use for it.
CUDA_HOME: Optional[str] = None

_NO_CUDA = "expected extensions in C++, got one for CUDA; this Treadle is built without CUDA"


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders that a compiler must search for headers, Treadle's and Python's; none without
    `torch_include_dirs`."""
    _only_cpu("include_paths", device_type)
    return _compiler.include_paths() if torch_include_dirs else []


def library_paths(
    device_type: str = "cpu",
    torch_include_dirs: bool = True,
    cross_target_platform: Optional[str] = None,
) -> list[str]:
    """The folders of the libraries that an extension is linked with; none without
    `torch_include_dirs`. ValueError for another platform than this one."""
    _only_cpu("library_paths", device_type)
    if cross_target_platform is not None:
        raise ValueError(
            "library_paths: expected cross_target_platform=None, got "
            f"{cross_target_platform!r}: extensions are built for this machine"
        )
    return _compiler.library_paths() if torch_include_dirs else []


def _only_cpu(who: str, device_type: str) -> None:
    if device_type == "cuda":
        raise OSError(f"{who}: {_NO_CUDA}")
    if device_type != "cpu":
        raise ValueError(f"{who}: expected the device type 'cpu', got {device_type!r}")


def requirement() -> str:
    """The requirement of a project that is compiled against this Treadle: "treadle==0.1.0".

    Its C++ code fits no other release, so pip must not put another one beside it.
    """
    return f"treadle=={operator_library.stamp().version}"


def get_cxx_compiler() -> str:
    """The command of the C++ compiler. CompilerError where there is none."""
    return _compiler.compiler()[0]


def _says(*command: str) -> str:
    """The output of a program, all of it; "" where it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a command is GCC's compiler of C++."""
    return bool(re.search(r"^gcc version", _says(compiler, "-v"), re.M))


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a command is a compiler of GCC's or Clang's."""
    said = _says(compiler, "-v")
    return bool(re.search(r"^gcc version|clang version", said, re.M))


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, Any]:
    """(whether extensions can be built with a command, its version); 0.0.0 for one that is not
    there. Warns of one that is neither GCC's nor Clang's."""
    from treadle.torch_version import TorchVersion

    if not check_compiler_ok_for_platform(compiler):
        warnings.warn(
            f"{compiler}: expected a compiler of GCC or Clang, as extensions have the same ABI",
            stacklevel=2,
        )
        return False, TorchVersion("0.0.0")
    found = re.search(r"\d+(\.\d+)*", _says(compiler, "-dumpfullversion", "-dumpversion"))
    return True, TorchVersion(found.group(0) if found else "0.0.0")


def is_ninja_available() -> bool:
    """Whether the program ninja is there. load() does not need it."""
    return bool(_says("ninja", "--version"))


def verify_ninja_availability() -> None:
    """RuntimeError where is_ninja_available() is False."""
    if not is_ninja_available():
        raise RuntimeError("ninja: expected the program to be installed, got none")


def remove_extension_h_precompiler_headers() -> None:
    """Nothing to do: no headers are compiled beforehand."""


def SyclExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: extensions are in C++ for the CPU."""
    raise RuntimeError(f"{name}: expected an extension in C++, got one for devices of Intel's")


def get_default_build_root() -> str:
    """The folder of what `load` builds: $TREADLE_EXTENSIONS_DIR, or one in the user's cache."""
    named = os.environ.get("TREADLE_EXTENSIONS_DIR")
    if named:
        return named
    return os.path.join(cache_folder(), "treadle_extensions")


def __getattr__(name: str) -> Any:
    # setuptools, which load() does not need, is imported where it is asked for.
    if name in ("BuildExtension", "CppExtension"):
        from . import _build_extension

        return getattr(_build_extension, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Raises OSError: this Treadle is built without CUDA."""
    raise OSError(f"CUDAExtension: {_NO_CUDA}")


# ---- just in time --------------------------------------------------------------------------------

# The loaded extensions of this program: name -> (what it was built from, what load() returned).
_loaded: dict[str, tuple[str, Any]] = {}


def load(
    name: str,
    sources: Union[str, Sequence[str]],
    extra_cflags: Optional[Sequence[str]] = None,
    extra_cuda_cflags: Optional[Sequence[str]] = None,
    extra_sycl_cflags: Optional[Sequence[str]] = None,
    extra_ldflags: Optional[Sequence[str]] = None,
    extra_include_paths: Optional[Sequence[str]] = None,
    build_directory: Optional[str] = None,
    verbose: bool = False,
    with_cuda: Optional[bool] = None,
    with_sycl: Optional[bool] = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    derivatives: Union[str, Path, None] = None,
) -> Any:
    """Builds an extension of the sources and loads it; what has not changed is not built again.

    Args:
        name: of the extension and its module; of a library with a .yaml source, the namespace of
            its operators too.
        sources: paths of C++ files, and at most one .yaml file with the entries of operators.
        extra_cflags, extra_ldflags, extra_include_paths: for the compiler and the linker.
        build_directory: where to build; by default a folder of get_default_build_root().
        verbose: prints the commands and what the compiler says.
        is_python_module: False for sources that register operators and define no module.
        is_standalone: makes a program instead.
        keep_intermediates: accepted for compatibility; objects stay, and are used again.
        derivatives: the .yaml file of the operators' derivatives.

    Returns:
        the module; the path of the library or program where it is none.

    Raises:
        CompilerError: a RuntimeError with the compiler's first error.
        treadle.codegen.outside.CodegenError: what is wrong with an entry.
        ImportError: the module could not be loaded.
        OSError: extensions for CUDA or SYCL are asked for.
    """
    if with_cuda or extra_cuda_cflags:
        raise OSError(f"load: {_NO_CUDA}")
    if with_sycl or extra_sycl_cflags:
        raise OSError("load: expected extensions in C++, got one for SYCL, which Treadle has not")
    paths = [Path(sources)] if isinstance(sources, (str, Path)) else [Path(s) for s in sources]
    for path in paths:
        if path.suffix in (".cu", ".cuh"):
            raise OSError(f"load: {_NO_CUDA}: {path}")
        if not path.exists():
            raise FileNotFoundError(f"load: expected the sources of {name}, got none at {path}")
    if not name.isidentifier():
        raise ValueError(f"load: expected the name of a module, got {name!r}")
    options = _compiler.Options(
        includes=[str(Path(p).resolve()) for p in extra_include_paths or ()],
        cflags=list(extra_cflags or ()),
        ldflags=list(extra_ldflags or ()),
        verbose=verbose,
        standalone=is_standalone,
    )
    folder = Path(build_directory) if build_directory else _default_folder(name)
    build = _Build(name, [p.resolve() for p in paths], derivatives, folder.resolve(), options)
    with _compiler.locked(build.folder):
        return build.load(is_python_module)


def _default_folder(name: str) -> Path:
    tag = f"py{sys.version_info[0]}{sys.version_info[1]}_cpu"
    return Path(get_default_build_root()) / tag / name


class _Build:
    """One call of load()."""

    def __init__(
        self,
        name: str,
        sources: Sequence[Path],
        derivatives: Union[str, Path, None],
        folder: Path,
        options: _compiler.Options,
    ):
        self.name, self.folder, self.options = name, folder, options
        schemas = [p for p in sources if p.suffix in (".yaml", ".yml")]
        if len(schemas) > 1:
            raise ValueError(f"load: expected at most one .yaml file, got {len(schemas)}")
        if derivatives is not None and not schemas:
            raise ValueError("load: expected a .yaml file of operators beside their derivatives")
        self.schema = schemas[0] if schemas else None
        self.derivatives = Path(derivatives).resolve() if derivatives is not None else None
        self.sources = [p for p in sources if p not in schemas]

    def load(self, is_python_module: bool) -> Any:
        objects = self._compile()
        built_from = _compiler.digest(
            *(_compiler.contents_of(str(o)) for o in objects), self.options.ldflags, self.folder
        )
        if self.name in _loaded and not self.options.standalone:
            known, result = _loaded[self.name]
            if known == built_from:
                return result
            if self.schema is not None:
                raise RuntimeError(
                    f"load: expected the library {self.name} as this program loaded it, got other "
                    "sources or options; operators cannot be taken out of a program: start it again"
                )
            return self._anew(is_python_module)
        target = self._target(is_python_module)
        self._link(objects, target, built_from)
        if self.options.standalone:
            return str(target)
        result = self._load(target, is_python_module)
        _loaded[self.name] = (built_from, result)
        return result

    def _anew(self, is_python_module: bool) -> Any:
        """The module of changed sources, beside the one that is loaded: name_v1, name_v2, ..."""
        stem, _, number = self.name.rpartition("_v")
        name = f"{stem}_v{int(number) + 1}" if stem and number.isdigit() else f"{self.name}_v1"
        self.options.cflags = [o for o in self.options.cflags if "TREADLE_EXTENSION_NAME" not in o]
        return _Build(name, self.sources, None, self.folder, self.options).load(is_python_module)

    def _compile(self) -> list[Path]:
        sources, options = list(self.sources), self.options
        if self.schema is not None:
            from treadle.codegen.outside import generate  # type: ignore[import-not-found]

            generated = self.folder / "gen"
            made = generate(self.schema, self.derivatives, name=self.name, out=generated)
            sources += [p for p in made if p.suffix == ".cc"]
            options.includes = [str(generated), *options.includes]
        else:
            options.cflags = [f"-DTREADLE_EXTENSION_NAME={self.name}", *options.cflags]
        return _compiler.compile_all(sources, self.folder / "objects", options)

    def _target(self, is_python_module: bool) -> Path:
        suffix = operator_library.EXTENSION_SUFFIX if is_python_module else ".so"
        if self.options.standalone:
            return self.folder / self.name
        if self.schema is not None:
            return self.folder / "gen" / self.name / f"_C{suffix}"
        return self.folder / f"{self.name}{suffix}"

    def _link(self, objects: Sequence[Path], target: Path, built_from: str) -> None:
        record = target.with_name(f".{target.name}.built_from")
        if target.exists() and record.exists() and record.read_text() == built_from:
            return
        _compiler.link(objects, target, self.options)
        record.write_text(built_from)

    def _load(self, target: Path, is_python_module: bool) -> Any:
        from treadle._ops import ops

        if not is_python_module:
            ops.load_library(target)
            return str(target)
        if self.schema is not None:
            return _import(self.name, target.parent / "__init__.py", target.parent)
        from treadle import _stable_abi

        needs = _stable_abi.needs_of(str(target))
        if _stable_abi.is_for_pytorch(needs):
            with _stable_abi.registrations(str(target), needs):
                return _import(self.name, target)
        operator_library.check_stamp(self.name, target)
        return _import(self.name, target)


def _import(name: str, path: Path, package: Optional[Path] = None) -> ModuleType:
    """Imports a module from its file, without any search."""
    places = [str(package)] if package else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def load_inline(
    name: str,
    cpp_sources: Union[str, Sequence[str]],
    cuda_sources: Union[str, Sequence[str], None] = None,
    sycl_sources: Union[str, Sequence[str], None] = None,
    functions: Union[str, Sequence[str], dict[str, str], None] = None,
    extra_cflags: Optional[Sequence[str]] = None,
    extra_cuda_cflags: Optional[Sequence[str]] = None,
    extra_sycl_cflags: Optional[Sequence[str]] = None,
    extra_ldflags: Optional[Sequence[str]] = None,
    extra_include_paths: Optional[Sequence[str]] = None,
    build_directory: Optional[str] = None,
    verbose: bool = False,
    with_cuda: Optional[bool] = None,
    with_sycl: Optional[bool] = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """Builds an extension of source texts and loads it, as `load` does of files.

    `functions` names functions of the sources that the module shall have, or maps them to their
    docstrings; their arguments and results are tensors, numbers, texts, and lists, tuples and
    optionals of those. treadle/extension.h is included unless `no_implicit_headers`.
    with_pytorch_error_handling, keep_intermediates and use_pch are accepted for compatibility.
    """
    if with_cuda or cuda_sources:
        raise OSError(f"load_inline: {_NO_CUDA}")
    if sycl_sources:
        raise OSError("load_inline: expected sources in C++, got some in SYCL")
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        texts.insert(0, "#include <treadle/extension.h>")
    if functions is not None:
        texts.append(_module_text(functions))
    folder = Path(build_directory) if build_directory else _default_folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "main.cpp"
    with _compiler.locked(folder / "text"):
        text = "\n".join(texts) + "\n"
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
    return load(
        name,
        [str(source)],
        extra_cflags,
        extra_cuda_cflags,
        extra_sycl_cflags,
        extra_ldflags,
        extra_include_paths,
        str(folder),
        verbose,
        with_cuda,
        with_sycl,
        is_python_module,
        keep_intermediates=keep_intermediates,
    )


def _module_text(functions: Union[str, Sequence[str], dict[str, str]]) -> str:
    if isinstance(functions, str):
        functions = [functions]
    docs = functions if isinstance(functions, dict) else {f: "" for f in functions}
    lines = []
    for function, doc in docs.items():
        escaped = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  m.def("{function}", &{function}, "{escaped}");')
    return "TREADLE_MODULE(TREADLE_EXTENSION_NAME, m) {\n" + "\n".join(lines) + "\n}"


# ---- for other build systems ---------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Prints the options of the compiler (--cflags), of the linker (--ldflags), or both."""
    known = {"--cflags": _compiler.compile_flags, "--ldflags": _compiler.link_flags}
    wrong = [word for word in argv if word not in known]
    if wrong or not argv:
        sys.stderr.write("usage: python -m treadle.utils.cpp_extension [--cflags] [--ldflags]\n")
        return 2
    print(" ".join(word for option in argv for word in known[option]()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
