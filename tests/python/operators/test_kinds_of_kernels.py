"""Each kind of kernel that the page about check-kernel shows: the check passes it as it is there,
and finds a fault that is planted in its text."""

# SPDX-License-Identifier: Apache-2.0

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.utils.cpp_extension import include_paths
from treadle_testing.kernels.checker import Checker

ROOT = Path(os.environ.get("TREADLE_SOURCE", Path(__file__).parents[3]))
PAGE = (ROOT / "docs" / "checking-kernels.md").read_text()
EXAMPLES = dict(re.findall(r"```cpp\n// (\S+)\n(.*?)```", PAGE, re.DOTALL))
# Zero in place of NaN.
RIGHT, FAULT = re.compile(r"from(\[i\])? < 0 \? 0 : from(\[i\])?"), r"from\1 > 0 ? from\1 : 0"

BACKEND_H = """
#include <treadle/plugin.hpp>
#include <cstdlib>
#include <cstring>
using namespace treadle::plugin;
class Card final : public Backend {
 public:
  void* allocate(int32_t, size_t bytes) override { return std::malloc(bytes); }
  void deallocate(int32_t, void* storage, size_t) override { std::free(storage); }
  bool copy(treadle_place to, treadle_place from, size_t bytes, bool) override {
    std::memmove((char*)to.storage + to.offset, (char*)from.storage + from.offset, bytes);
    return true;
  }
};
inline treadle_device_type register_device() {
  BackendDescription description;
  description.name = "my_card";
  description.host_visible = true;
  return register_backend<Card>(description);
}
"""
TVM_H = """
#include <cstdint>
struct DLTensor {
  void* data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct TVMFFIAny {
  int32_t type_index;
  uint32_t padding;
  union { int64_t v_int64; double v_float64; void* v_ptr; };
};
"""


def built(folder, kernel, text):
    """The kernel's name with its path in `folder`, where its library is built."""
    name = re.search(r"(\w+)\.(?:so|cc)", kernel)
    source = folder / f"{name[1]}.cc"
    source.write_text(text)
    file = folder / name[0]
    if "torch/csrc/stable" in text:
        # Built in a process of its own: loading it here would define its operator.
        program = "import sys; from treadle.utils.cpp_extension import load\n"
        program += (
            "load('stable', sys.argv[1], is_python_module=False, build_directory=sys.argv[2])"
        )
        subprocess.run([sys.executable, "-c", program, source, folder], check=True)
        (file,) = folder.glob("stable*.so")
    elif file.suffix == ".so":
        flags = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include_paths()[0]}"]
        subprocess.run(["c++", *flags, source, "-o", file], check=True)
    return kernel.replace(name[0], str(file))


@pytest.mark.slow
def test_right_kernels_pass_and_faults_are_found(tmp_path, monkeypatch):
    for name, lines, wanted in (
        ("right", [], []),
        ("wrong", ["relu f32 [5] nan"], ["wrong value"]),
    ):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("TREADLE_EXTENSIONS_DIR", str(folder / "built"))
        (folder / "backend.h").write_text(BACKEND_H)
        (folder / "tvm.h").write_text(TVM_H)
        with Checker() as checker:
            for kernel, text in EXAMPLES.items():
                assert f"check-kernel relu {kernel} " in PAGE and RIGHT.search(text)
                report = checker.check(
                    "relu",
                    built(folder, kernel, RIGHT.sub(FAULT, text) if lines else text),
                    dtypes=["float32"],
                    lines=lines,
                    only=bool(lines),
                    most=16,
                    speed=False,
                )
                assert [f.kind for f in report.findings] == wanted, report.text()
                assert report.lines - report.refused >= (1 if lines else 14), report.text()


def test_every_kind_has_an_example():
    kinds = re.findall(r"^\| `([^`]*)`", PAGE.partition("The second argument")[2], re.MULTILINE)[:5]
    assert len(kinds) == 5 and len(EXAMPLES) == 4
