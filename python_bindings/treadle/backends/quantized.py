"""Engines of quantized operators: there are no such operators."""

# SPDX-License-Identifier: Apache-2.0

engine = "none"
supported_engines = ["none"]
