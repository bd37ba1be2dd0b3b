"""The Python that the build is for, as the repository @python.

It is the interpreter named by the environment variable TREADLE_PYTHON (./dev names the project's virtual
environment in .bazelrc.user), or `python3`. Everything about it comes from its own `sysconfig`: a Python
on the PATH need not be the system's.

    @python//:headers      Python.h
    @python//:config.bzl   PYTHON (absolute path), EXT_SUFFIX, WHEEL_PYTHON_TAG

Bazel looks again when TREADLE_PYTHON_IS changes, which ./dev sets to what distinguishes this Python from another
one at the same path.
"""

load("//tools/bazel:run_python.bzl", "run_python")

_PROBE = """
import importlib.util, platform, sys, sysconfig
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed, got " + platform.python_version())
missing = [m for m in ("jinja2", "auditwheel") if importlib.util.find_spec(m) is None]
if missing:
    sys.exit("it lacks the modules " + ", ".join(missing) + "; ./dev build sets up a Python that has them")
tag = "cp%d%d" % sys.version_info[:2]
print(sys.executable)
print(sysconfig.get_paths()["include"])
print(sysconfig.get_config_var("EXT_SUFFIX"))
print(tag + "-" + tag)
"""

def _python_impl(ctx):
    found = run_python(ctx, "@python", "python3 python3-venv python3-dev", _PROBE)
    executable, include, suffix, tag = found.split("\n")
    if not ctx.path(include + "/Python.h").exists:
        fail("@python: %s/Python.h was not found; install it with: apt-get install python3-dev" % include)
    ctx.symlink(include, "include")
    ctx.file("config.bzl", """# Written by tools/bazel/python.bzl.
PYTHON = %r
EXT_SUFFIX = %r
WHEEL_PYTHON_TAG = %r
""" % (executable, suffix, tag))
    ctx.file("BUILD.bazel", """# Written by tools/bazel/python.bzl.
cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

python_repository = repository_rule(
    doc = "Finds the Python to build for.",
    implementation = _python_impl,
    environ = ["TREADLE_PYTHON", "TREADLE_PYTHON_IS"],
    local = True,
)
