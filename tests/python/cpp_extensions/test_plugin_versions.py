"""Plug-ins of other times: what was built against the released header of the interface, by whatever
compiler, loads and works.

tests/data/plugin_v1/plugin.h is the header of version 1 as it was released. It is never edited; the
header of today may only add to it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from pathlib import Path

import pytest

import plugins

RELEASED = plugins.ROOT / "tests" / "data" / "plugin_v1"
CURRENT = plugins.ROOT / "plugin" / "treadle"

# A backend with a kernel and an operator, as a user of version 1 wrote it.
BEFORE = (
    plugins.C_BACKEND
    + """
static const treadle_api* host;

/* out = self @ mat2, and counts its calls in the context. */
static treadle_status mm(void* context, const treadle_value* a, size_t count,
                         treadle_value* results, size_t result_count) {
  const treadle_tensor *self = a[0].as.tensor, *mat2 = a[1].as.tensor, *out = a[2].as.tensor;
  const int64_t *s = host->strides(self), *m = host->strides(mat2);
  const float *x = host->data(self), *y = host->data(mat2);
  float* z = host->data(out);
  const int64_t n = host->sizes(out)[0], k = host->sizes(self)[1], w = host->sizes(out)[1];
  (void)results, (void)result_count;
  if (count != 3) return host->set_error(TREADLE_RUNTIME_ERROR, "mm: expected 3 values");
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < w; ++j) {
      z[i * w + j] = 0;
      for (int64_t l = 0; l < k; ++l)
        z[i * w + j] += x[i * s[0] + l * s[1]] * y[l * m[0] + j * m[1]];
    }
  ++*(int*)context;
  return TREADLE_OK;
}

/* old::calls(Tensor x) -> int: how often mm was called. */
static treadle_status calls(void* context, const treadle_value* a, size_t count,
                            treadle_value* results, size_t result_count) {
  (void)a;
  if (count != 1 || result_count != 1) return host->set_error(TREADLE_RUNTIME_ERROR, "calls");
  results[0].tag = TREADLE_TAG_INT;
  results[0].as.integer = *(int*)context;
  return TREADLE_OK;
}

static treadle_status fail(void* context, const treadle_value* a, size_t count,
                           treadle_value* results, size_t result_count) {
  (void)context, (void)a, (void)count, (void)results, (void)result_count;
  return host->set_error(TREADLE_INDEX_ERROR, "fail: as it was told");
}
"""
)
START = """
  static int counted = 0;
  treadle_device_type type;
  treadle_backend b = backend_named("old");
  treadle_definition calls_definition = {.size = sizeof(treadle_definition),
                                         .schema = "old::calls(Tensor x) -> int",
                                         .context = &counted, .kernel = &calls};
  treadle_definition fail_definition = {.size = sizeof(treadle_definition),
                                        .schema = "old::fail(Tensor x) -> Tensor",
                                        .kernel = &fail};
  const treadle_dtype dtypes[] = {TREADLE_FLOAT32};
  treadle_status status;
  host = api;
  if (api->version < 1 || api->size < sizeof(treadle_api))
    return api->set_error(TREADLE_RUNTIME_ERROR, "an older host");
  if ((status = api->register_backend(&b, &type))) return status;
  if ((status = api->define_operator(&calls_definition))) return status;
  if ((status = api->define_operator(&fail_definition))) return status;
  return api->register_kernel("mm(Tensor self, Tensor mat2) -> Tensor", type, dtypes, 1, &mm,
                              &counted);
"""
PROGRAM = """
    import sys
    import treadle

    treadle.load_backend(sys.argv[1])
    x = treadle.arange(6.0).reshape(2, 3)
    y = x.to("old")
    z = y @ y.t() + 1
    print(z.device, treadle.equal(z.cpu(), x @ x.t() + 1), treadle.ops.old.calls(y))
    treadle.mm(y, y.t(), out=z)
    print(treadle.equal(z.cpu(), x @ x.t()), treadle.ops.old.calls(y))
    try:
        treadle.ops.old.fail(y)
    except IndexError as error:
        print(error)
"""


def source() -> str:
    text = plugins.c_plugin("old", START, before=BEFORE)
    return text.replace("#include <treadle/plugin.h>", '#include "plugin.h"')


@pytest.mark.parametrize("compiler", plugins.compilers("gcc", "clang"))
def test_a_plugin_of_version_1_loads(compiler: str, tmp_path: Path) -> None:
    path = plugins.build(tmp_path, "old", source(), compiler=compiler, include=RELEASED)
    assert plugins.run_program(PROGRAM, path).splitlines() == [
        "old:0 True 1",
        "True 2",
        "fail: as it was told",
    ]


def test_a_structure_may_be_shorter(tmp_path: Path) -> None:
    """A plug-in that was built before the last members existed says so by the size."""
    start = START.replace(
        "  host = api;", "  b.size = offsetof(treadle_backend, synchronize);\n  host = api;"
    )
    start = start.replace("host = api;", "host = api; b.storage_tag = (const char*)1;")
    text = plugins.c_plugin("old", start, before=BEFORE)
    path = plugins.build(tmp_path, "short", text)
    assert plugins.run_program(PROGRAM, path).startswith("old:0 True 1\n")


# ---- the header only grows -----------------------------------------------------------------------


def declarations(header: Path) -> dict[str, list[str]]:
    """The words of each structure and function type by name; the enumerators of all enums."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
    found = {
        name: re.findall(r"\w+|[^\w\s]", body)
        for body, name in re.findall(r"typedef struct \w+ {(.*?)^} (\w+);", text, re.M | re.S)
    }
    for declaration in re.findall(r"^typedef [^{}]*?;", text, re.MULTILINE | re.DOTALL):
        words = re.findall(r"\w+|[^\w\s]", declaration)
        found[f"typedef {' '.join(words)}"] = words
    for name, value in re.findall(r"\b(TREADLE_\w+) = (\d+)", text):
        found[name] = [value]
    for name, value in re.findall(r"#define (TREADLE_\w+) (\S+)$", text, re.MULTILINE):
        found[name] = [value]
    return found


def test_the_header_only_grew() -> None:
    released, current = (declarations(folder / "plugin.h") for folder in (RELEASED, CURRENT))
    assert len(released) > 60
    for name, words in released.items():
        if name == "TREADLE_PLUGIN_VERSION":
            continue
        assert name in current, name
        assert current[name][: len(words)] == words, name
