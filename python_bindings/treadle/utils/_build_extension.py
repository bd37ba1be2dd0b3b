"""Extensions in the setup.py of a project: the command build_ext, over the compiler of `load`.

The wheel of an operator library has the generated package (functions, stubs, model) with its
extension module; files of the project's own package win over generated ones.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Optional, Sequence

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from . import _compiler

__all__ = ["BuildExtension", "CppExtension"]

# The files of a generated folder that belong to the Python package.
_PACKAGE_FILES = ("*.py", "*.pyi", "py.typed", "opmodel.json")
_BANNER = "# Generated from "


def CppExtension(
    name: str,
    sources: Sequence[str],
    *args: Any,
    derivatives: Optional[str] = None,
    **kwargs: Any,
) -> Extension:
    """A setuptools.Extension with Treadle's headers and libraries, to be built by BuildExtension.

    Args:
        name: of the module; with a .yaml file among the sources the package of the library, whose
            last part is the namespace of the operators.
        sources: C++ files, and at most one .yaml file with the entries of operators.
        derivatives: the .yaml file of their derivatives.
        args, kwargs: as of setuptools.Extension; include_dirs, define_macros, extra_compile_args,
            extra_link_args and library_dirs and libraries are used.
    """
    schemas = [s for s in sources if s.endswith((".yaml", ".yml"))]
    if len(schemas) > 1:
        raise ValueError(f"CppExtension: expected at most one .yaml file, got {len(schemas)}")
    if derivatives is not None and not schemas:
        raise ValueError("CppExtension: expected a .yaml file beside the derivatives")
    kwargs.setdefault("language", "c++")
    full_name = f"{name}._C" if schemas else name
    extension = Extension(full_name, list(sources), *args, **kwargs)
    extension.treadle_schema = schemas[0] if schemas else None
    extension.treadle_derivatives = derivatives
    extension.depends += [*schemas, *([derivatives] if derivatives else [])]
    return extension


class BuildExtension(build_ext):
    """The command build_ext for extensions made by CppExtension; others are built as ever.

    Sources are compiled side by side, MAX_JOBS at a time. CXX, CXXFLAGS and LDFLAGS are honoured.
    """

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The command with options; use_ninja and no_python_abi_suffix are accepted, and unused."""

        class WithOptions(cls):  # type: ignore[misc,valid-type]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                kwargs.update(options)
                super().__init__(*args, **kwargs)

        return WithOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args)
        self.kept_options = kwargs

    def build_extension(self, ext: Extension) -> None:
        """Compiles and links one extension, and lays its generated package beside it."""
        if not hasattr(ext, "treadle_schema"):
            super().build_extension(ext)
            return
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        work = Path(self.build_temp).resolve() / ext.name
        name = ext.name.removesuffix("._C").rpartition(".")[2]
        sources = [Path(s) for s in ext.sources if s != ext.treadle_schema]
        options = _options(ext)
        with _compiler.locked(work):
            if ext.treadle_schema is not None:
                from treadle.codegen.outside import generate  # type: ignore[import-not-found]

                made = generate(
                    ext.treadle_schema,
                    ext.treadle_derivatives,
                    name=name,
                    out=work / "gen",
                    shards=int(self.kept_options.get("shards", 1)),
                )
                sources += [p for p in made if p.suffix == ".cc"]
                options.includes = [str(work / "gen"), *options.includes]
            else:
                options.cflags = [f"-DTREADLE_EXTENSION_NAME={name}", *options.cflags]
            objects = _compiler.compile_all(sources, work / "objects", options)
            _compiler.link(objects, target, options)
            if ext.treadle_schema is not None:
                _lay_out(work / "gen" / name, target.parent)

    def copy_extensions_to_source(self) -> None:
        """For `build_ext --inplace`: the generated packages go where the project's own are."""
        build_py = self.get_finalized_command("build_py")
        for ext in self.extensions:
            if getattr(ext, "treadle_schema", None) is not None:
                package = Path(build_py.get_package_dir(ext.name.removesuffix("._C")))
                package.mkdir(parents=True, exist_ok=True)
                _lay_out(Path(self.build_lib, *ext.name.split(".")[:-1]), package)
        super().copy_extensions_to_source()


def _lay_out(generated: Path, package: Path) -> None:
    """Copies the generated package's files; those written by hand are left alone."""
    for pattern in _PACKAGE_FILES:
        for file in generated.glob(pattern):
            there = package / file.name
            if file.suffix != ".py" or not there.exists() or _BANNER in there.read_text():
                shutil.copyfile(file, there)


def _options(ext: Extension) -> _compiler.Options:
    macros = [f"-D{k}" if v is None else f"-D{k}={v}" for k, v in ext.define_macros]
    flags = ext.extra_compile_args
    if isinstance(flags, dict):  # {"cxx": [...]}
        flags = flags.get("cxx", [])
    libraries = [f"-L{path}" for path in ext.library_dirs] + [f"-l{x}" for x in ext.libraries]
    return _compiler.Options(
        includes=[os.path.abspath(path) for path in ext.include_dirs],
        cflags=[*macros, *flags],
        ldflags=[*libraries, *ext.extra_link_args],
    )
