"""Names that a backend may give its devices, and how many of them there may be."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

import pytest

import plugins
import treadle
from plugins import alone

# Each is the name of something else in the package: a module, a function, both.
TAKEN = ("nn", "ops", "tensor", "add", "linalg")
SOURCE = """
static treadle_status none(void* c, int32_t* count) { (void)c; *count = -1; return TREADLE_OK; }
static treadle_status many(void* c, int32_t* count) { (void)c; *count = 128; return TREADLE_OK; }
static treadle_status most(void* c, int32_t* count) { (void)c; *count = 127; return TREADLE_OK; }
"""
START = """
  static const char* const names[] = {"nn", "ops", "tensor", "add", "linalg", "none", "many",
                                      "most"};
  for (int i = 0; i < 8; ++i) {
    treadle_device_type type;
    treadle_backend b = backend_named(names[i]);
    b.device_count = i == 5 ? &none : i == 6 ? &many : i == 7 ? &most : NULL;
    treadle_status status = api->register_backend(&b, &type);
    if (status) return status;
  }
  return TREADLE_OK;
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = plugins.c_plugin("names", START, before=plugins.C_BACKEND + SOURCE)
    return plugins.build(Path(tmp_path_factory.mktemp("names")), "names", source)


@alone
def test_a_name_of_the_package_keeps_its_meaning(library: str) -> None:
    import treadle.linalg
    import treadle.nn

    before = {name: getattr(treadle, name) for name in TAKEN}
    treadle.load_backend(library)
    for name in TAKEN:
        assert getattr(treadle, name) is before[name]
        module = treadle.get_device_module(name)
        assert module is not before[name] and module.device_count() == 1
        x = treadle.ones(2, device=name)
        assert x.device == treadle.device(name, 0) and getattr(x, f"is_{name}")
        assert (x + 1).tolist() == [2, 2]
    x = treadle.ones(2, device="add")
    assert x.add(1).tolist() == [2, 2], "an operator's method is no copy to a device"


@alone
def test_more_devices_than_can_be_numbered_are_refused(library: str) -> None:
    treadle.load_backend(library)
    for name, count in (("none", -1), ("many", 128)):
        for call in (
            treadle.get_device_module(name).device_count,
            lambda: treadle.ones(2, device=f"{name}:1"),
        ):
            with pytest.raises(RuntimeError) as raised:
                call()
            assert f"{name}: expected at most 127 devices, got {count}" in str(raised.value)
    assert treadle.most.device_count() == 127
    assert treadle.ones(2, device="most:126").sum().item() == 2
