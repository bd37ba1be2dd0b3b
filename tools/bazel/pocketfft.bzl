"""pocketfft as the repository @pocketfft: one header, found in a package of the build's Python.

No Debian package holds the C++ header by itself. The Python package pythran does, unchanged, under
`pythran/pythonic/numpy/fft/`; nothing else of pythran is used, and none of it at run time.

    @pocketfft//:pocketfft    #include "pocketfft/pocketfft.hpp"
    @pocketfft//:license      the header's notice, which goes where its code goes: into the wheel
"""

load("//tools/bazel:run_python.bzl", "run_python")

_PROBE = """
import importlib.util, sys
spec = importlib.util.find_spec("pythran")
if spec is None:
    sys.exit("it lacks the module pythran, whose files hold pocketfft.hpp; ./dev build sets up a Python that has it")
print(spec.submodule_search_locations[0] + "/pythonic/numpy/fft/pocketfft.hpp")
"""

def _pocketfft_impl(ctx):
    header = run_python(ctx, "@pocketfft", "python3", _PROBE)
    if not ctx.path(header).exists:
        fail("@pocketfft: %s was not found; another release of pythran may have it" % header)
    ctx.symlink(header, "include/pocketfft/pocketfft.hpp")
    notice, found, _ = ctx.read(header).partition("*/")
    if not found or "Redistribution" not in notice:
        fail("@pocketfft: expected %s to open with its licence" % header)
    ctx.file("LICENSE.pocketfft", notice[notice.find("/*") + 2:].strip() + "\n")
    ctx.file("BUILD.bazel", """# Written by tools/bazel/pocketfft.bzl.
cc_library(
    name = "pocketfft",
    hdrs = ["include/pocketfft/pocketfft.hpp"],
    includes = ["include"],
    visibility = ["//visibility:public"],
)

filegroup(
    name = "license",
    srcs = ["LICENSE.pocketfft"],
    visibility = ["//visibility:public"],
)
""")

pocketfft_repository = repository_rule(
    doc = "Finds pocketfft's header.",
    implementation = _pocketfft_impl,
    environ = ["TREADLE_PYTHON", "TREADLE_PYTHON_IS"],
    local = True,
)
