"""Compiler options that belong to some targets only; what holds for all of them is in .bazelrc."""

# Loops over elements. Not under the sanitizers, which are slow to compile as it is. Vector code needs SSE4 on every x86-64
# machine (aten/backend/cpu/targets.h), so plain loops may use it, too.
KERNEL_COPTS = select({
    "//tools/bazel:sanitizers": [],
    "//conditions:default": ["-O3"],
}) + select({
    "//tools/bazel:x86_64": ["-msse4.2"],
    "//conditions:default": [],
})

# Generated kernels: for every instruction set, or for quick builds only for the one that every machine has.
TARGET_COPTS = select({
    "//tools/bazel:one_target": ["-DTREADLE_ONE_TARGET"],
    "//conditions:default": [],
})

# Vector code, compiled for each instruction set. GCC's own headers switch these two warnings off where they leave a vector
# undefined on purpose; in a precompiled header that is lost.
VECTOR_COPTS = KERNEL_COPTS + TARGET_COPTS + ["-Wno-uninitialized", "-Wno-maybe-uninitialized"]

# Code that runs seldom, or only while the library is built. It compiles a fifth faster than with -O1.
COLD_COPTS = select({
    "//tools/bazel:sanitizers": [],
    "//conditions:default": ["-Og"],
})

# A library calls its own functions without looking their names up, which takes a millisecond of each import.
# Variables are still shared with other libraries that have them, as those of inline functions are.
OWN_FUNCTIONS = ["-Wl,-Bsymbolic-functions"]

# A shared library that lacks a symbol is an error when it is made, not when it is loaded. Sanitized code
# takes its run-time library from the program.
NO_UNDEFINED = select({
    "//tools/bazel:sanitizers": [],
    "//conditions:default": ["-Wl,-z,defs"],
})
