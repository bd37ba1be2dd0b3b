"""Kernels with one fault each, for test_check_kernel.py: those of faults.cc, and some in Python.

The library is that of the environment variable FAULTS.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import os

import numpy as np

import treadle

_library = ctypes.CDLL(os.environ["FAULTS"])


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dim", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


def _tensor(t):
    numbers = ctypes.c_int64 * t.dim()
    return _Tensor(
        t.data_ptr() if t.numel() else 0, t.dim(), numbers(*t.shape), numbers(*t.stride())
    )


def _of_library(name):
    function = getattr(_library, name)

    def kernel(self, *args, out):
        function(ctypes.byref(_tensor(self)), ctypes.byref(_tensor(out)), treadle.get_num_threads())

    return kernel


def __getattr__(name):
    return _of_library(name)


def _relu(x):
    return treadle.where(x < 0, treadle.zeros_like(x), x)


def relu_in_numpy(self):
    values = self.numpy()
    return treadle.from_numpy(np.where(values < 0, np.float32(0), values))


def relu_of_dtype(self):
    return _relu(self).to(treadle.float64)


def relu_by_reference(self):
    return treadle.relu(self)


_by_shape, _by_address = {}, {}


def relu_by_shape(self):
    if self.shape not in _by_shape:
        _by_shape[self.shape] = _relu(self)
    return _by_shape[self.shape].clone()


def relu_by_address(self):
    key = (self.data_ptr(), self.shape, self.stride())
    if key not in _by_address:
        _by_address[key] = _relu(self)
    return _by_address[key].clone()


class SinGradient(treadle.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return treadle.from_numpy(np.asarray(np.sin(x.detach().numpy())))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 1.01


class SinSecondGradient(SinGradient):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.detach().cos()


class Sin(SinGradient):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()
