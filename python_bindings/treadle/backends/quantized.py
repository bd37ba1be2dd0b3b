"""Engines of quantized operators. There is one set of kernels, used under any of the names."""

# SPDX-License-Identifier: Apache-2.0

engine = "x86"
supported_engines = ["qnnpack", "none", "onednn", "x86", "fbgemm"]
