"""System libraries as Bazel repositories: each is found on the machine, never downloaded.

A library that is missing stops the build with the name of the package to install:

    @openblas: cblas.h was not found; install it with: apt-get install libopenblas-openmp-dev

Most headers lie in the compiler's own search path, so that a repository is a set of link options, and the
look-up is there for the error. `FOLDER//NAME` names a file in a folder outside that path. A library whose
name ends with .a is linked into what uses it.
"""

_HEADER_DIRS = [
    "/usr/local/include",
    "/usr/include",
    "/usr/include/x86_64-linux-gnu",
    "/usr/include/aarch64-linux-gnu",
]

_LIBRARY_DIRS = [
    "/usr/local/lib",
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
]

def _find(ctx, dirs, name):
    for folder in dirs:
        if ctx.path(folder + "/" + name).exists:
            return folder
    fail("@%s: %s was not found; install it with: apt-get install %s\n(./dev does this by itself)" %
         (ctx.name, name, ctx.attr.package))

def _system_library_impl(ctx):
    linkopts, cross = [], []
    for header in ctx.attr.headers:
        folder, _, name = header.rpartition("//")
        found = _find(ctx, [d + "/" + folder for d in _HEADER_DIRS], name)
        if folder:
            ctx.symlink(found, "include")
    for library in ctx.attr.libraries:
        folder, _, name = library.rpartition("//")
        found = _find(ctx, [d + "/" + folder for d in _LIBRARY_DIRS], name)
        if folder:
            linkopts += ["-L" + found, "-Wl,-rpath," + found]
        option = "-l:" + name if name.endswith(".a") else "-l" + name[len("lib"):].rpartition(".")[0]
        linkopts.append(option)
        cross.append(option)  # found in the folders of @aarch64's toolchain
    if ctx.attr.shipped:
        _ship(ctx, _find(ctx, _HEADER_DIRS, ctx.attr.shipped), ctx.attr.shipped)
    ctx.file("BUILD.bazel", """# Written by tools/bazel/system_libraries.bzl.

cc_library(
    name = "%s",
    hdrs = glob(["include/*.h"]),
    includes = ["include"],
    linkopts = select({
        "@treadle//tools/bazel:cross_aarch64": %s,
        "//conditions:default": %s,
    }),
    visibility = ["//visibility:public"],
)

# Where the repository's rule names headers that go with the package.
filegroup(
    name = "shipped_headers",
    srcs = glob(["shipped/**/*.h"], exclude = ["shipped/*/tests/**"]),
    visibility = ["//visibility:public"],
)

filegroup(
    name = "license",
    srcs = glob(["LICENSE.*"]),
    visibility = ["//visibility:public"],
)
""" % (ctx.attr.target or ctx.name, repr(cross + ctx.attr.linkopts), repr(linkopts + ctx.attr.linkopts)))

# A folder of headers that outside code compiles against, and the notice with which one of them opens.
def _ship(ctx, found, folder):
    ctx.symlink(found + "/" + folder, "shipped/" + folder)
    text = ctx.read(found + "/" + folder + "/" + ctx.attr.notice)
    notice = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        notice.append(line[len("//"):].strip())
    if "License" not in "".join(notice):
        fail("@%s: expected %s/%s to open with its licence" % (ctx.name, folder, ctx.attr.notice))
    ctx.file("LICENSE." + ctx.name, "\n".join(notice) + "\n")

_system_library = repository_rule(
    doc = "A library of the system.",
    implementation = _system_library_impl,
    local = True,
    attrs = {
        "package": attr.string(mandatory = True, doc = "the Debian package to install"),
        "headers": attr.string_list(),
        "libraries": attr.string_list(),
        "linkopts": attr.string_list(),
        "shipped": attr.string(doc = "a folder of headers that the package ships"),
        "notice": attr.string(doc = "the one of them that opens with the licence"),
        "target": attr.string(doc = "the target's name, where it is not the repository's"),
    },
)

def treadle_system_libraries():
    """Declares every system library that the build uses."""
    _system_library(
        name = "openblas",
        package = "libopenblas-openmp-dev",
        # The OpenMP build, so that one pool of threads serves everything; beside it another build may be the default.
        headers = ["openblas-openmp//cblas.h"],
        libraries = ["openblas-openmp//libopenblas.so"],
    )
    _system_library(
        name = "onednn",
        package = "libdnnl-dev",
        headers = ["dnnl.hpp"],
        libraries = ["libdnnl.so"],
    )
    _system_library(
        name = "highway",
        package = "libhwy-dev",
        headers = ["hwy/highway.h"],
        libraries = [],  # aten/backend/cpu/chosen_target.cc says why
        # Outside operators are compiled with them, as those of the tree are.
        shipped = "hwy",
        notice = "highway.h",
    )
    _system_library(
        name = "yaml_cpp",
        package = "libyaml-cpp-dev",
        headers = ["yaml-cpp/yaml.h"],
        # In schemac, which the package carries.
        libraries = ["libyaml-cpp.a"],
    )
    _system_library(
        name = "nlohmann_json",
        package = "nlohmann-json3-dev",
        headers = ["nlohmann/json.hpp"],
        target = "json",
    )
    _system_library(
        name = "gloo",
        package = "libgloo-dev",
        headers = ["gloo/config.h"],
        libraries = ["libgloo.so"],
    )
    _system_library(
        name = "pybind11",
        package = "pybind11-dev",
        headers = ["pybind11/pybind11.h"],
    )
    _system_library(
        name = "benchmark",
        package = "libbenchmark-dev",
        headers = ["benchmark/benchmark.h"],
        libraries = ["libbenchmark_main.a", "libbenchmark.so"],
        linkopts = ["-lpthread"],
    )
    _system_library(
        name = "googletest",
        package = "libgtest-dev libgmock-dev",
        headers = ["gtest/gtest.h", "gmock/gmock.h"],
        libraries = ["libgmock_main.a", "libgmock.a", "libgtest.a"],
        linkopts = ["-lpthread"],
        target = "gtest_main",
    )
