"""The dtypes of the array API standard by kind, which its tests run over."""

# SPDX-License-Identifier: Apache-2.0

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX
ALL = ("bool", *NUMBERS)
