"""Batch normalisation: each channel shifted and scaled by the statistics of the batch, or by
running ones."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C, _names, autograd
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class _NormBase(Module):
    """The settings, parameters and running statistics of batch and instance normalisation."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = Parameter(_C.empty((num_features,), **options))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(_C.empty((num_features,), **options))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", _C.zeros((num_features,), **options))
            self.register_buffer("running_var", _C.ones((num_features,), **options))
            count = _C.tensor(0, dtype=_C.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale one, shift zero, and no batches seen."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, *lists: Any
    ) -> None:
        # Checkpoints from before version 2 do not count batches; those of the layer go on.
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            known = own is not None and own.device.type != "meta"
            state_dict[key] = own if known else _C.tensor(0, dtype=_C.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """The common part of the layers; they differ in the inputs they take."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain average over all batches seen
                momentum = 1.0 / self.num_batches_tracked.item()
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        update = not self.training or self.track_running_stats
        running = (self.running_mean, self.running_var) if update else (None, None)
        return self._batch_norm(input, running, use_batch, momentum)

    def _batch_norm(
        self, input: Tensor, running: tuple, use_batch: bool, momentum: float
    ) -> Tensor:
        mean, var = running
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """For inputs (N, C) or (N, C, L)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """For images (N, C, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """For volumes (N, C, D, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose batch is that of all processes of a group together, of all there
    are if `process_group` is None. In training every process of the group must call it."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _batch_norm(
        self, input: Tensor, running: tuple, use_batch: bool, momentum: float
    ) -> Tensor:
        distributed = _names.package().distributed if use_batch and self.training else None
        if distributed is not None and distributed.is_initialized():
            group = self.process_group
            if distributed.get_world_size(group) > 1:
                return self._over_processes(input, running, momentum, group)
        return super()._batch_norm(input, running, use_batch, momentum)

    def _over_processes(self, input: Tensor, running: tuple, momentum: float, group: Any) -> Tensor:
        """Two sums go over all processes, that of the elements and that of their squared distances
        from the mean, so that no digits cancel."""
        wide = _C.promote_types(input.dtype, _C.float32)
        x = input.to(wide)
        others = [d for d in range(x.dim()) if d != 1]
        shape = [1, -1] + [1] * (x.dim() - 2)
        elements = _C.full((1,), x.numel() // max(x.shape[1], 1), dtype=wide)
        sums = _sum_over_processes(_C.cat([x.sum(others), elements]), group)
        count = sums[-1].item()
        if count <= 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape} in all processes together"
            )
        mean = sums[:-1] / count
        distance = x - mean.view(shape)
        variance = _sum_over_processes(distance.square().sum(others), group) / count
        result = distance * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            result = result * self.weight.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        with no_grad():
            unbiased = variance * (count / (count - 1))
            for value, new in zip(running, (mean, unbiased)):
                if value is not None:
                    value.lerp_(new.to(value.dtype), momentum)
        return result.to(input.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with every batch normalisation in it replaced by this class."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


def _sum_over_processes(tensor: Tensor, group: Any) -> Tensor:
    """The sum of the tensors that all processes of the group give, with its derivatives."""
    return _sum_function().apply(tensor, group)


_SUM: list = []


def _sum_function() -> Any:
    """The class, made at first use: few programs have several processes."""
    from treadle import distributed

    if not _SUM:

        class _Sum(autograd.Function):
            @staticmethod
            def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
                ctx.group = group
                total = tensor.clone()
                distributed.all_reduce(total, group=group)
                return total

            @staticmethod
            def backward(ctx: Any, grad: Tensor) -> tuple:
                # Each process's loss depends on the sum, so on what this one gave to it.
                return _sum_over_processes(grad, ctx.group), None

        _SUM.append(_Sum)
    return _SUM[0]
