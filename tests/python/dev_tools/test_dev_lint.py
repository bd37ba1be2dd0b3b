"""./dev lint: the rules of folders, on small trees that are made up."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tool_modules import importing

LAYERS = (
    "plugin/treadle <- core <- aten <- autograd <- plugin/host <- stable_abi <- python_bindings"
)
CROWDED = "files beside each other, 40 allowed; split the folder by what its files are about"


@pytest.fixture(scope="module")
def folders() -> Iterator[ModuleType]:
    with importing("dev") as load:
        yield load("folders")


@pytest.fixture
def sources() -> Iterator[ModuleType]:
    with importing("dev") as load:
        yield load("sources")


# ---- files beside each other ---------------------------------------------------------------------


def test_a_folder_holds_so_many_files(folders: ModuleType) -> None:
    names = [f"aten/cpu/kernel_{i}.cc" for i in range(107)]
    names += [f"aten/shape/rule_{i}.h" for i in range(40)]
    # Files of sub-folders do not count, and no kind of file is left out.
    names += [f"core/{part}/{i}.h" for part in ("base", "tensor") for i in range(30)]
    names += [f"tests/data/{i}.bin" for i in range(41)]
    names += [f"{i}.md" for i in range(41)]
    counts = (".: 41", "aten/cpu: 107", "tests/data: 41")
    assert list(folders.crowded(names)) == [f"{count} {CROWDED}" for count in counts]


def test_the_files_are_those_that_git_knows(
    sources: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / ".gitignore").write_text("build\n")
    for folder, count in (("build", 50), ("data", 41), ("core", 2)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            (tmp_path / folder / f"{i}.h").write_text('#include "autograd/graph/node.h"\n')
    above = f"includes autograd/graph/node.h, but core is below autograd; the layers are {LAYERS}"
    assert sources.folder_problems() == [
        f"data: 41 {CROWDED}",
        f"core/0.h:1: {above}",
        f"core/1.h:1: {above}",
    ]


# ---- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user, used",
    [
        ("core/base/error.cc", "core/tensor/tensor.h"),
        ("aten/ops/fft/composite.cc", "core/tensor/tensor.h"),
        ("aten/ops/fft/gradients.cc", "autograd/ops_syntax.h"),
        ("aten/ops/linalg/gradients_spectral.h", "aten/ops/linalg/gradients.h"),
        ("autograd/graph/engine.cc", "aten/ops/views/gradients.h"),
        ("autograd/graph/engine.cc", "aten/ops/add.h"),
        ("plugin/host/api.cc", "autograd/meta.h"),
        ("plugin/host/api.h", "plugin/treadle/plugin.h"),
        ("python_bindings/csrc/module.cc", "plugin/host/loader.h"),
        # Tests, and files outside of the layers.
        ("core/tensor/tensor_test.cc", "aten/ops/add.h"),
        ("core/device/testing_backend.h", "aten/ops/add.h"),
        ("tests/cuda_emulator/cudnn.cc", "autograd/graph/engine.h"),
        ("core/base/half.h", "hwy/highway.h"),
    ],
)
def test_includes_that_go_down(folders: ModuleType, user: str, used: str) -> None:
    assert list(folders.includes_upwards({user: f'#include "{used}"\n'})) == []


@pytest.mark.parametrize(
    "user, used, lower, upper",
    [
        ("core/base/error.cc", "aten/ops/add.h", "core", "aten"),
        ("core/base/error.cc", "python_bindings/csrc/binding.h", "core", "python_bindings"),
        ("aten/engine/copy.cu", "autograd/meta.h", "aten", "autograd"),
        ("aten/ops/linalg/composite.cc", "aten/ops/linalg/gradients.h", "aten", "autograd"),
        ("aten/ops/linalg/gradients.cc", "plugin/host/api.h", "autograd", "plugin/host"),
        ("plugin/host/api.cc", "python_bindings/csrc/x.h", "plugin/host", "python_bindings"),
        ("plugin/treadle/plugin.hpp", "core/base/error.h", "plugin/treadle", "core"),
    ],
)
def test_includes_that_go_up(
    folders: ModuleType, user: str, used: str, lower: str, upper: str
) -> None:
    text = f'// A file.\n#include <vector>\n\n  #  include "{used}"\n// #include "autograd/a.h"\n'
    assert list(folders.includes_upwards({user: text})) == [
        f"{user}:4: includes {used}, but {lower} is below {upper}; the layers are {LAYERS}"
    ]


# ---- cycles of includes --------------------------------------------------------------------------


def include_cycles(folders: ModuleType, includes: dict[str, str]) -> list[str]:
    """The cycles below core, of files with the files that they include."""
    texts = {
        f"core/{name}": "".join(f'#include "core/{used}"\n' for used in text.split())
        for name, text in includes.items()
    }
    return list(folders.cycles("core", "include", folders.uses_by_includes(texts, "core")))


def test_folders_that_do_not_include_each_other(folders: ModuleType) -> None:
    texts = {
        "base/error.h": "base/checked.h",
        "base/checked.h": "base/error.h",  # in one folder, a compiler's matter
        "tensor/tensor.cc": "tensor/tensor.h base/error.h memory/allocator.h",
        "memory/allocator.cc": "base/checked.h",
        "memory/allocator_test.cc": "tensor/tensor.h",
        "dispatch/dispatcher.cc": "tensor/tensor.h memory/allocator.h",
    }
    assert include_cycles(folders, texts) == []


def test_two_folders_that_include_each_other(folders: ModuleType) -> None:
    texts = {
        "base/error.h": "base/checked.h tensor/tensor.h",
        "tensor/storage.cc": "memory/allocator.h",
        "tensor/tensor.cc": "base/checked.h",
    }
    assert include_cycles(folders, texts) == [
        "core: parts include each other in a cycle: core/base/error.h:2 includes "
        "core/tensor/tensor.h, core/tensor/tensor.cc:1 includes core/base/checked.h"
    ]


def test_the_shortest_cycle_of_each_group(folders: ModuleType) -> None:
    texts = {
        # One group: base -> tensor -> device -> base, and device -> tensor.
        "base/error.h": "tensor/tensor.h",
        "tensor/tensor.h": "device/device.h",
        "device/device.h": "base/error.h tensor/tensor.h",
        # Another, with a file of no folder.
        "schema/parser.h": "version.h",
        "version.h": "dispatch/table.h",
        "dispatch/table.h": "schema/parser.h base/error.h",
        "memory/allocator.h": "base/error.h",
    }
    assert include_cycles(folders, texts) == [
        "core: parts include each other in a cycle: core/device/device.h:2 includes "
        "core/tensor/tensor.h, core/tensor/tensor.h:1 includes core/device/device.h",
        "core: parts include each other in a cycle: core/version.h:1 includes "
        "core/dispatch/table.h, core/dispatch/table.h:1 includes core/schema/parser.h, "
        "core/schema/parser.h:1 includes core/version.h",
    ]


# ---- cycles of imports ---------------------------------------------------------------------------


def import_cycles(folders: ModuleType, modules: dict[str, str]) -> list[str]:
    """The cycles of a package lib/codegen."""
    texts = {"lib/codegen/_C.pyi": "x: int", "lib/codegen/__init__.py": ""}
    texts |= {f"lib/codegen/{name}.py": text for name, text in modules.items()}
    uses = folders.uses_by_imports(texts, "lib/codegen")
    return list(folders.cycles("lib/codegen", "import", uses))


def test_imports_that_go_one_way(folders: ModuleType) -> None:
    modules = {
        "__init__": "from .model import Model\nfrom . import library, render",
        "model": "import json\nfrom . import _C\nfrom codegen import _C as again",
        "render": "import codegen.model, numpy\nfrom .cpp.names import name\nfrom . import cpp",
        # A generated module, which the tree does not have.
        "library": "from ._operators import add\nfrom . import _operators",
        "cpp/names": "from ..model import Model\nfrom . import types\nimport os.path",
        "cpp/types": "from .names import name",  # in one sub-package
    }
    assert import_cycles(folders, modules) == []


def test_imports_that_are_not_run_at_import(folders: ModuleType) -> None:
    modules = {
        "model": """
            import typing
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from .render import Renderer
            if typing.TYPE_CHECKING:
                from . import render
            def draw():
                from .render import render
                class Inner:
                    import codegen.render
            async def later():
                from . import render
        """.replace("\n            ", "\n"),
        "render": "from .model import Model",
    }
    assert import_cycles(folders, modules) == []


@pytest.mark.parametrize(
    "line",
    [
        "from .render import Renderer",
        "from . import json, render",
        "import codegen.render as r",
        "from codegen.render import Renderer",
        "try:\n    from .render import Renderer\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    from .render import Renderer",
        "if True:\n    pass\nelse:\n    from .render import Renderer",
        "class A:\n    from .render import Renderer",
    ],
)
def test_two_modules_that_import_each_other(folders: ModuleType, line: str) -> None:
    number = 1 + line.partition("render")[0].count("\n")
    cycle = import_cycles(folders, {"model": line, "render": "\nfrom .model import Model"})
    assert cycle == [
        "lib/codegen: parts import each other in a cycle: "
        f"lib/codegen/model.py:{number} imports lib/codegen/render.py, "
        "lib/codegen/render.py:2 imports lib/codegen/model.py"
    ]


def test_sub_packages_that_import_each_other(folders: ModuleType) -> None:
    modules = {
        "cpp/__init__": "from . import names\nfrom ..operators.samples import sample",
        "cpp/names": "",
        "operators/samples": "from ..cpp import types",
        "cpp/types": "",
    }
    assert import_cycles(folders, modules) == [
        "lib/codegen: parts import each other in a cycle: lib/codegen/cpp/__init__.py:2 imports "
        "lib/codegen/operators/samples.py, lib/codegen/operators/samples.py:1 imports "
        "lib/codegen/cpp/types.py"
    ]


@pytest.mark.parametrize("line", ["import codegen", "from codegen import Model", "from . import M"])
def test_a_module_that_imports_the_root(folders: ModuleType, line: str) -> None:
    assert import_cycles(folders, {"__init__": "from .model import Model", "model": line}) == [
        "lib/codegen: parts import each other in a cycle: lib/codegen/__init__.py:1 imports "
        "lib/codegen/model.py, lib/codegen/model.py:1 imports lib/codegen/__init__.py"
    ]


def test_a_module_that_does_not_parse_is_left_to_its_own_rule(folders: ModuleType) -> None:
    modules = {"model": "from . import", "render": "from .model import Model"}
    assert import_cycles(folders, modules) == []


# ---- imports of a root that only re-exports ------------------------------------------------------


def imports_of_root(folders: ModuleType, line: str, module: str = "model") -> list[str]:
    """The imports of the root of a package lib/codegen by one of its modules."""
    texts = {"lib/codegen/_C.pyi": "x: int", "lib/codegen/render.py": ""}
    texts |= {"lib/codegen/__init__.py": "from . import *", f"lib/codegen/{module}.py": line}
    return list(folders.imports_of_root(texts, "lib/codegen"))


@pytest.mark.parametrize(
    "line",
    [
        "import codegen",
        "import codegen as package",
        "import codegen.render",  # binds the name codegen
        "from codegen import Model",
        "from codegen import render, Model",
        "from codegen import *",
        "from . import Model",
        "if TYPE_CHECKING:\n    from codegen import Model",
        "def f():\n    import codegen",
        "class A:\n    def f(self):\n        from . import Model",
    ],
)
def test_a_root_that_a_module_imports(folders: ModuleType, line: str) -> None:
    assert imports_of_root(folders, line) == [
        f"lib/codegen/model.py:{1 + line.count(chr(10))}: imports codegen, whose root re-exports "
        "what modules define; import the module that defines the name"
    ]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model", "import codegen.render as r, codegenerator"),
        ("model", "from codegen import _C, render"),
        ("model", "from codegen.render import Renderer"),
        ("model", "from . import render"),
        ("cpp/names", "from . import Types"),  # of codegen.cpp
        ("cpp/names", "from .. import render"),
        ("cpp/__init__", "from . import names"),
        ("__init__", "from . import Model"),  # in the root itself
    ],
)
def test_modules_that_are_imported_from_the_root(
    folders: ModuleType, module: str, line: str
) -> None:
    assert imports_of_root(folders, line, module) == []


def test_a_root_that_a_sub_package_imports(folders: ModuleType) -> None:
    assert imports_of_root(folders, "import os\nfrom .. import Model", "cpp/names") == [
        "lib/codegen/cpp/names.py:2: imports codegen, whose root re-exports what modules define; "
        "import the module that defines the name"
    ]


# ---- this tree -----------------------------------------------------------------------------------


def test_the_tree_keeps_the_rules(sources: ModuleType) -> None:
    assert sources.folder_problems() == []
