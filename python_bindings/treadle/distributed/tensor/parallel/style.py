"""Styles: how the parameters of a module are spread, and what its inputs and outputs become."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from treadle import nn
from treadle._C import Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor._api import DTensor, distribute_tensor
from treadle.distributed.tensor._modules import distribute_module
from treadle.distributed.tensor.placement_types import Placement, Replicate, Shard

Layouts = Union[None, Placement, Tuple[Optional[Placement], ...]]


def _spread(value: Any, mesh: DeviceMesh, layout: Placement) -> DTensor:
    """A DTensor of what each process has, unless it is one."""
    if isinstance(value, DTensor):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"expected a tensor for the layout {layout!r}, got {type(value).__name__}")
    return DTensor.from_local(value, mesh, (layout,), run_check=False)


def _brought(value: DTensor, layout: Placement, is_local: bool) -> Tensor:
    """The tensor with another placement, as a DTensor or as what this process has."""
    wanted = Shard(layout.dim % value.dim()) if isinstance(layout, Shard) else layout
    if value.placements != (wanted,):
        value = value.redistribute(placements=(wanted,))
    return value.to_local() if is_local else value


def _first_of(inputs: Any, tensor: Any) -> Any:
    """The inputs with another first one."""
    return (tensor, *inputs[1:]) if isinstance(inputs, tuple) else tensor


class ParallelStyle(abc.ABC):
    """The change of a module by parallelize_module(); a style of a program's own defines
    `_apply`."""

    src_data_rank: Optional[int] = 0

    @abc.abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        """Change the module, and return it."""

    def _set(self, module: nn.Module, name: str, mesh: DeviceMesh, placement: Placement) -> None:
        """Spread a parameter of the module."""
        parameter = getattr(module, name)
        if parameter is None or isinstance(parameter, DTensor):
            return
        spread = distribute_tensor(
            parameter.detach(), mesh, [placement], src_data_rank=self.src_data_rank
        )
        made = nn.Parameter(spread, requires_grad=parameter.requires_grad)
        module.register_parameter(name, made)


class _OfLayer(ParallelStyle):
    """A style of one layer, with one input and one output."""

    input_layouts: Tuple[Placement, ...]
    output_layouts: Tuple[Placement, ...]
    use_local_output: bool

    def _converted(
        self, module: nn.Module, mesh: DeviceMesh, partition: Any, wanted: Placement
    ) -> nn.Module:
        def before(module: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            tensor = _spread(inputs[0], mesh, self.input_layouts[0])
            return _first_of(inputs, _brought(tensor, wanted, False))

        def after(module: nn.Module, outputs: Any, mesh: DeviceMesh) -> Any:
            return _brought(outputs, self.output_layouts[0], self.use_local_output)

        return distribute_module(module, mesh, partition, before, after)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_OfLayer):
    """A Linear, or an Embedding, of which each process computes some of the outputs.

    Args:
        input_layouts: how the input lies, if it is no DTensor; by default Replicate.
        output_layouts: how the output is to lie; by default Shard(-1).
        use_local_output: whether the output is what this process has, instead of a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Optional[Placement] = None,
        output_layouts: Optional[Placement] = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, (nn.Linear, nn.Embedding)):
            raise NotImplementedError(
                "ColwiseParallel currently only support nn.Linear and nn.Embedding!"
            )
        placement = Shard(0 if isinstance(module, nn.Linear) else 1)

        def partition(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
            for each in list(part._parameters):
                self._set(part, each, mesh, placement)

        return self._converted(module, device_mesh, partition, self.desired_input_layouts[0])


class RowwiseParallel(_OfLayer):
    """A Linear of which each process has some of the inputs, or an Embedding of which it has some
    of the rows: the outputs are parts of a sum.

    Args:
        input_layouts: how the input lies, if it is no DTensor; by default Shard(-1). For an
            Embedding, Replicate is usual.
        output_layouts: how the output is to lie; by default Replicate.
        use_local_output: whether the output is what this process has, instead of a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Optional[Placement] = None,
        output_layouts: Optional[Placement] = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, (nn.Linear, nn.Embedding)):
            raise NotImplementedError(
                "RowwiseParallel currently only support nn.Linear and nn.Embedding!"
            )
        is_linear = isinstance(module, nn.Linear)
        placement = Shard(1 if is_linear else 0)
        self.desired_input_layouts: Tuple[Placement, ...]
        self.desired_input_layouts = (Shard(-1) if is_linear else Replicate(),)

        def partition(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
            self._set(part, "weight", mesh, placement)
            if is_linear:
                self._set(part, "bias", mesh, Replicate())

        return self._converted(module, device_mesh, partition, self.desired_input_layouts[0])


class SequenceParallel(ParallelStyle):
    """A module with replicated parameters, such as LayerNorm, RMSNorm or Dropout, of an input that
    is cut along the sequence.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: whether the output is what this process has, instead of a DTensor.

    An input that is no DTensor is taken for this process's part of the sequence.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def partition(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
            for each in list(part._parameters):
                self._set(part, each, mesh, Replicate())

        def before(module: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            if not isinstance(inputs[0], Tensor):
                raise ValueError(
                    f"expecting input of {module} to be a torch.Tensor or DTensor, but got "
                    f"{inputs[0]}"
                )
            tensor = _spread(inputs[0], mesh, self.sequence_sharding[0])
            return _first_of(inputs, _brought(tensor, self.sequence_sharding[0], False))

        def after(module: nn.Module, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, partition, before, after)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(sequence_dim={self.sequence_sharding[0].dim}, "
            f"use_local_output={self.use_local_output})"
        )


def _listed(layouts: Layouts) -> Optional[Tuple[Optional[Placement], ...]]:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _same_length(what: str, first: Any, second: Any) -> None:
    if len(first) != len(second):
        raise ValueError(
            f"{what}: expected as many desired layouts as layouts, got {len(first)} layouts and "
            f"{len(second)} desired ones"
        )


class PrepareModuleInput(ParallelStyle):
    """The placements of the inputs of a module.

    Args:
        input_layouts: how each input lies, if it is no DTensor; None for one that stays as it is.
        desired_input_layouts: how each input is to lie.
        input_kwarg_layouts: the same for inputs that have names.
        desired_input_kwarg_layouts: likewise.
        use_local_output: whether the module gets what this process has, instead of DTensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Optional[Dict[str, Placement]] = None,
        desired_input_kwarg_layouts: Optional[Dict[str, Placement]] = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            name = "PrepareModuleInput"
            _same_length(name, self.input_layouts, self.desired_input_layouts or ())
        _same_length(
            "PrepareModuleInput", self.input_kwarg_layouts, self.desired_input_kwarg_layouts
        )

    def _prepared(self, value: Any, mesh: DeviceMesh, layout: Any, wanted: Any) -> Any:
        if layout is None:
            return value
        tensor = _spread(value, mesh, layout)
        if wanted is None:
            return tensor.to_local() if self.use_local_output else tensor
        return _brought(tensor, wanted, self.use_local_output)

    def _all_prepared(self, inputs: Tuple[Any, ...], mesh: DeviceMesh) -> Tuple[Any, ...]:
        if self.input_layouts is None:
            return inputs
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        layouts = zip(self.input_layouts, self.desired_input_layouts or ())
        return tuple(
            self._prepared(value, mesh, layout, wanted)
            for value, (layout, wanted) in zip(inputs, layouts)
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def before(module: nn.Module, inputs: Any, kwargs: Dict[str, Any]) -> Any:
            named = {
                name: self._prepared(
                    value,
                    device_mesh,
                    self.input_kwarg_layouts.get(name),
                    self.desired_input_kwarg_layouts.get(name),
                )
                for name, value in kwargs.items()
            }
            return self._all_prepared(inputs, device_mesh), named

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """The placements of the outputs of a module.

    Args:
        output_layouts: how each output lies, if it is no DTensor; None for one that stays.
        desired_output_layouts: how each output is to lie.
        use_local_output: whether outputs are what this process has, instead of DTensors.
    """

    def __init__(
        self,
        *,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts: Sequence[Any] = _listed(output_layouts) or ()
        self.desired_output_layouts: Sequence[Any] = _listed(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        _same_length("PrepareModuleOutput", self.output_layouts, self.desired_output_layouts)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def after(module: nn.Module, inputs: Any, outputs: Any) -> Any:
            given = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(given) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            layouts = zip(self.output_layouts, self.desired_output_layouts)
            found = tuple(
                value
                if layout is None
                else _brought(_spread(value, device_mesh, layout), wanted, self.use_local_output)
                for value, (layout, wanted) in zip(given, layouts)
            )
            return found[0] if len(found) == 1 else found

        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """The placements of the inputs and outputs of a module; the arguments are those of
    PrepareModuleInput and PrepareModuleOutput, where `use_local_input` is of the first one."""

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Optional[Dict[str, Placement]] = None,
        desired_input_kwarg_layouts: Optional[Dict[str, Placement]] = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.prepare_module_input}, {self.prepare_module_output})"


__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]
