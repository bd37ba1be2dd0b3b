"""parallelize_module: a plan of styles, applied to the modules that it names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import fnmatch
import warnings
from typing import Dict, Optional, Union

from treadle import nn
from treadle.distributed.device_mesh import DeviceMesh, _mesh_resources
from treadle.distributed.tensor.parallel.style import ParallelStyle

Plan = Union[ParallelStyle, Dict[str, ParallelStyle]]


def parallelize_module(
    module: nn.Module,
    device_mesh: Optional[DeviceMesh] = None,
    parallelize_plan: Optional[Plan] = None,
    *,
    src_data_rank: Optional[int] = 0,
) -> nn.Module:
    """Spread the parameters of modules, in place, and convert what goes in and out.

    Args:
        module: the module.
        device_mesh: a mesh of one dimension; by default the one that the program is in.
        parallelize_plan: a style for the module, or a mapping from names of modules within it to
            styles. "layers.*.attention" names modules of all layers; `*`, `?` and `[...]` match
            within a part of a name. "" is the module itself.
        src_data_rank: the place in the mesh of the process whose parameters are spread; None where
            each process takes its part of its own.

    Returns the module. A name that no module has, and no plan, are warned of. TypeError for another
    plan.
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so "
            "this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        first, _, rest = path.partition(".")
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        children = [c for name, c in module.named_children() if fnmatch.fnmatch(name, first)]
        if not children:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
                f"'{first}' in module {module}, skipping this plan entry.",
                stacklevel=2,
            )
        for child in children:
            plan: Plan = {rest: style} if rest else style
            parallelize_module(child, mesh, plan, src_data_rank=src_data_rank)
    return module


__all__ = ["parallelize_module"]
