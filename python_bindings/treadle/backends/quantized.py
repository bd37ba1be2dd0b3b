"""Engines of quantized operators: there are no such operators."""

engine = "none"
supported_engines = ["none"]
