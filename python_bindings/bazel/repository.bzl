"""The installed package treadle as a repository: its headers, its libraries, and the Python that has it.

    treadle_repository(
        name = "treadle",
        python = "/home/you/venv/bin/python",
    )

    @treadle//:headers       what C++ code includes, Python's headers among it
    @treadle//:config.bzl    PYTHON, EXT_SUFFIX, STAMP, CFLAGS
"""

_PROBE = """
import sysconfig
from treadle.utils import _compiler, operator_library
print(sysconfig.get_paths()["include"])
print(operator_library.EXTENSION_SUFFIX)
print(operator_library.PACKAGE.resolve())
print(operator_library.stamp())
print(" ".join(_compiler.FLAGS))
"""

def _treadle_impl(ctx):
    named = ctx.attr.python
    python = named if named.startswith("/") else ctx.which(named)
    if python == None:
        fail("@%s: %s was not found on the PATH" % (ctx.name, named))
    result = ctx.execute([python, "-c", _PROBE])
    if result.return_code:
        fail("@%s: %s has no package treadle that can be used: %s" % (ctx.name, python, result.stderr.strip()))
    include, suffix, package, stamp, flags = result.stdout.strip().split("\n")
    ctx.symlink(package + "/include", "include")
    ctx.symlink(include, "python")
    ctx.symlink(package + "/lib/libtreadle.so", "lib/libtreadle.so")
    ctx.symlink(package + "/_C" + suffix, "lib/libtreadle_python.so")
    ctx.file("config.bzl", """# Written by repository.bzl.
PYTHON = %r
EXT_SUFFIX = %r
STAMP = %r
CFLAGS = %r
""" % (str(python), suffix, stamp, flags.split(" ")))
    ctx.file("BUILD.bazel", """# Written by repository.bzl.
cc_library(
    name = "headers",
    hdrs = glob([
        "include/**/*.h",
        "include/**/*.hpp",
        "python/**/*.h",
    ]),
    includes = [
        "include",
        "python",
    ],
    visibility = ["//visibility:public"],
)

exports_files([
    "lib/libtreadle.so",
    "lib/libtreadle_python.so",
])
""")

treadle_repository = repository_rule(
    doc = "Finds the package treadle that a Python has.",
    implementation = _treadle_impl,
    local = True,
    attrs = {"python": attr.string(default = "python3", doc = "an interpreter: a path, or a name on the PATH")},
)
