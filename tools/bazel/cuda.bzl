"""CUDA code: .cu files compiled by nvcc with the host compiler of the C++ toolchain.

    cuda_library(
        name = "kernels",
        srcs = glob(["kernels/*.cu"]),
        hdrs = glob(["*.h", "*.cuh"]),
        deps = ["//core"],
    )

As in cc.bzl, a header that a file did not open does not compile it again. The machine code is made for the
architectures of --define=treadle_cuda_architectures=80,90 (those by default), with PTX of the last one for
newer devices.

Targets with `target_compatible_with = CUDA_ONLY` exist under --config=cuda alone: a plain `bazel build //...`
leaves them out and does not look for the toolkit.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@python//:config.bzl", "PYTHON")

CUDA_ONLY = select({
    "//tools/bazel:cuda": [],
    "//conditions:default": ["//tools/bazel:incompatible"],
})

# Warnings of nvcc that mean nothing here: a thread-local's model, which device code ignores, and the template
# parameter of a lambda that is given in full.
_QUIET = ["-diag-suppress=1835,445"]

def cuda_deps(deps):
    """Dependencies on @cuda, which is not looked at without --config=cuda."""
    return select({
        "//tools/bazel:cuda": deps,
        "//conditions:default": [],
    })

def _architectures(ctx):
    flags = []
    numbers = ctx.var.get("treadle_cuda_architectures", "80,90").split(",")
    for number in numbers:
        code = "sm_" + number
        if number == numbers[-1]:
            code = "[%s,compute_%s]" % (code, number)
        flags.append("-gencode=arch=compute_%s,code=%s" % (number, code))
    return flags

def _objects_impl(ctx):
    if not ctx.files.nvcc:
        return [DefaultInfo()]
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile")
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    headers = depset(ctx.files.hdrs, transitive = [context.headers, toolchain.all_files])
    nvcc = ctx.files.nvcc[0]
    objects = []
    for source in ctx.files.srcs:
        stem = "_objects/%s/%s" % (ctx.attr.library, source.basename[:-len(".cu")])
        obj = ctx.actions.declare_file(stem + ".cu.o")
        unused = ctx.actions.declare_file(stem + ".cu.unused")
        command = ctx.actions.args()
        command.add_all([unused, ctx.bin_dir.path, nvcc])
        command.add_all(["-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-ccbin", compiler, "-Xcompiler=-fPIC,-Wall,-Wextra"])
        command.add_all(_QUIET + _architectures(ctx))
        command.add_all([".", ctx.bin_dir.path], format_each = "-I%s")
        command.add_all(context.includes, format_each = "-I%s")
        command.add_all(context.quote_includes, format_each = "-I%s")
        command.add_all(context.system_includes, format_each = "-isystem=%s")
        command.add_all(context.defines, format_each = "-D%s")
        command.add_all(ctx.attr.copts)
        command.add_all(["-c", source, "-o", obj])
        ctx.actions.run(
            executable = ctx.executable._compile,
            arguments = [command],
            inputs = depset([source], transitive = [headers]),
            tools = [nvcc],
            outputs = [obj, unused],
            unused_inputs_list = unused,
            # nvcc names temporary files by its process number, which is the same in each sandbox. So they lie in
            # the sandbox, not in the /tmp that all sandboxes share.
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "."},
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % source.short_path,
        )
        objects.append(obj)
    return [DefaultInfo(files = depset(objects))]

_objects = rule(
    implementation = _objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "library": attr.string(),
        "nvcc": attr.label_list(allow_files = True),
        "_compile": attr.label(
            default = "//tools/bazel:compile.sh",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], **kwargs):
    """A library of .cu files, for --config=cuda. Every object is kept when linking: kernels register themselves."""
    _objects(
        name = name + ".objects",
        srcs = srcs,
        hdrs = hdrs,
        copts = copts,
        library = name,
        nvcc = cuda_deps(["@cuda//:nvcc"]),
        target_compatible_with = CUDA_ONLY,
        visibility = ["//visibility:private"],
        deps = deps + cuda_deps(["@cuda//:headers"]),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".objects"],
        hdrs = [h for h in hdrs if h.endswith(".h")],
        linkstatic = 1,
        alwayslink = 1,
        target_compatible_with = CUDA_ONLY,
        deps = deps + cuda_deps(["@cuda//:runtime"]),
        **kwargs
    )

def _host_sources_impl(ctx):
    sources, headers = [], []
    for file in ctx.files.srcs:
        if file.extension == "cu":
            sources.append(ctx.actions.declare_file("translated/" + file.basename[:-len("cu")] + "cc"))
        elif file.extension == "cuh":
            headers.append(ctx.actions.declare_file("translated/" + file.basename))
    files = [f for f in ctx.files.srcs if f.extension in ("cu", "cuh")]
    ctx.actions.run(
        executable = PYTHON,
        arguments = ["-B", ctx.file._translate.path, sources[0].dirname] + [f.path for f in files],
        inputs = files + [ctx.file._translate],
        outputs = sources + headers,
        mnemonic = "CudaTranslate",
        progress_message = "Writing CUDA code as C++",
    )
    return [
        DefaultInfo(files = depset(sources + headers)),
        OutputGroupInfo(sources = depset(sources), headers = depset(headers)),
    ]

cuda_host_sources = rule(
    doc = """C++ for the host of .cu and .cuh files, for the emulator (tests/cuda_emulator/translate.py).""",
    implementation = _host_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"]),
        "_translate": attr.label(default = "//tests/cuda_emulator:translate.py", allow_single_file = True),
    },
)
