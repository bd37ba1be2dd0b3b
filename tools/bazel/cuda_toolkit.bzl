"""The CUDA toolkit and cuDNN as the repository @cuda: found on the machine, never downloaded.

Looked for where CUDA_HOME says, else under /usr/local/cuda. Nothing of it is looked for before a target that
needs it is built (bazel build --config=cuda). A missing part stops such a build with the package to install:

    @cuda: bin/nvcc was not found in /usr/local/cuda; install the CUDA toolkit: apt-get install cuda-toolkit-13-0

@cuda//:nvcc is the compiler, @cuda//:headers what C++ code includes, @cuda//:runtime the CUDA runtime as a
static library. Its other libraries are opened while the program runs (aten/backend/cuda/shared_library.h).
"""

_CUDNN_DIRS = ["/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu"]
_NEEDED = ["bin/nvcc"] + ["include/" + header for header in [
    "cuda_runtime_api.h",
    "nvrtc.h",
    "cublasLt.h",
    "cufftXt.h",
    "cusolverDn.h",
    "cupti.h",
]]

def _toolkit_impl(ctx):
    root = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for name in _NEEDED:
        if not ctx.path(root + "/" + name).exists:
            fail("@cuda: %s was not found in %s; install the CUDA toolkit: apt-get install cuda-toolkit-13-0" %
                 (name, root))
    folders = [root + "/lib64", root + "/lib"]
    library = [f for f in folders if ctx.path(f + "/libcudart_static.a").exists]
    if not library:
        fail("@cuda: libcudart_static.a was not found in %s; install it with: apt-get install cuda-cudart-dev-13-0" %
             " or ".join(folders))
    cudnn = [d for d in [root + "/include"] + _CUDNN_DIRS if ctx.path(d + "/cudnn.h").exists]
    if not cudnn:
        fail("@cuda: cudnn.h was not found in %s/include or /usr/include; install it with: apt-get install cudnn9-cuda-13" %
             root)
    ctx.symlink(root + "/include", "include")
    if cudnn[0] != root + "/include":
        for header in ctx.path(cudnn[0]).readdir():
            if header.basename.startswith("cudnn"):
                ctx.symlink(header, "cudnn/" + header.basename)

    # The compiler finds the toolkit's other parts beside itself. In the list of what it opened (-MF) a file of
    # the tree is ./x.h, which everyone else calls x.h.
    ctx.file("nvcc", """#!/bin/sh
%s/bin/nvcc "$@" || exit
while [ $# -gt 0 ]; do
  [ "$1" = -MF ] && sed -i 's# \\./# #g' "$2"
  shift
done
""" % root, executable = True)
    ctx.file("BUILD.bazel", """# Written by tools/bazel/cuda_toolkit.bzl.

package(default_visibility = ["//visibility:public"])

exports_files(["nvcc"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h", "include/**/*.hpp", "cudnn/*.h"], exclude = ["include/cccl/**"]),
    includes = ["include", "cudnn"],
)

cc_library(
    name = "runtime",
    linkopts = ["-L%s", "-l:libcudart_static.a", "-ldl", "-lrt", "-lpthread"],
    deps = [":headers"],
)
""" % library[0])

cuda_toolkit_repository = repository_rule(
    doc = "The CUDA toolkit of the machine.",
    implementation = _toolkit_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
