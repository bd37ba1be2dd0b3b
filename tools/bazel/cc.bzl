"""C++ rules whose objects are rebuilt only when a header they really include has changed.

Bazel's own compile action depends on the whole list of headers that a library declares: one new header
in that list, and everything that could see it is compiled again. Here every operator has a header of its
own, so a new operator would cost the whole tree. `treadle_cc_library` and `treadle_cc_test` therefore
compile through an action that reports the headers it did not open (`unused_inputs_list`), which Bazel
then leaves out of its decision: see tools/bazel/compile.sh.

    treadle_cc_library(
        name = "aten",
        srcs = glob(["**/*.cc"]),
        hdrs = glob(["**/*.h"]),
        deps = ["//core"],
    )
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_COMPILE = "c++-compile"

def _objects_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    headers = depset(ctx.files.hdrs, transitive = [context.headers, toolchain.all_files])
    compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = _COMPILE)
    objects = []
    for source in ctx.files.srcs:
        if source.extension != "cc":
            fail("%s: expected .cc files in srcs, got %s" % (ctx.label, source.short_path))
        path = source.short_path
        if path.startswith(ctx.label.package + "/"):
            path = path[len(ctx.label.package) + 1:]
        stem = "_objects/%s/%s" % (ctx.attr.library, path[:-len(".cc")])
        obj = ctx.actions.declare_file(stem + ".pic.o")
        unused = ctx.actions.declare_file(stem + ".unused")
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = source.path,
            output_file = obj.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            include_directories = context.includes,
            quote_include_directories = depset([".", ctx.bin_dir.path], transitive = [context.quote_includes]),
            system_include_directories = context.system_includes,
            preprocessor_defines = depset(ctx.attr.local_defines, transitive = [context.defines]),
            use_pic = True,
        )
        command = ctx.actions.args()
        command.add(unused)
        command.add(ctx.bin_dir.path)
        command.add(compiler)
        command.add_all(cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = _COMPILE,
            variables = variables,
        ))
        ctx.actions.run(
            executable = ctx.executable._compile,
            arguments = [command],
            inputs = depset([source], transitive = [headers]),
            outputs = [obj, unused],
            unused_inputs_list = unused,
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = _COMPILE,
                variables = variables,
            ),
            mnemonic = "CppCompile",
            progress_message = "Compiling %s" % source.short_path,
        )
        objects.append(obj)
    return [DefaultInfo(files = depset(objects))]

_objects = rule(
    implementation = _objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "local_defines": attr.string_list(),
        "library": attr.string(),
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

def treadle_cc_library(name, srcs = [], hdrs = [], deps = [], copts = [], local_defines = [], testonly = 0, target_compatible_with = [], **kwargs):
    """A cc_library compiled header by header. Every object is kept when linking (kernels register themselves)."""
    _objects(
        name = name + ".objects",
        srcs = srcs,
        hdrs = hdrs,
        deps = deps,
        copts = copts,
        local_defines = local_defines,
        library = name,
        testonly = testonly,
        target_compatible_with = target_compatible_with,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [name + ".objects"],
        hdrs = hdrs,
        deps = deps,
        linkstatic = 1,
        alwayslink = 1,
        testonly = testonly,
        target_compatible_with = target_compatible_with,
        **kwargs
    )

def treadle_cc_test(name, srcs, deps = [], copts = [], local_defines = [], target_compatible_with = [], **kwargs):
    """A GoogleTest program compiled header by header."""
    treadle_cc_library(
        name = name + ".cases",
        srcs = srcs,
        copts = copts,
        local_defines = local_defines,
        testonly = 1,
        target_compatible_with = target_compatible_with,
        deps = deps + ["@googletest//:gtest_main"],
    )
    native.cc_test(
        name = name,
        target_compatible_with = target_compatible_with,
        deps = [name + ".cases"],
        **kwargs
    )

def treadle_cc_tests(files, **kwargs):
    """One test for each `*_test.cc` in `files`, named after it."""
    for source in files:
        treadle_cc_test(name = source[:-len(".cc")].replace("/", "_"), srcs = [source], **kwargs)

def _headers_impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    return [CcInfo(compilation_context = merged.compilation_context)]

cc_headers = rule(
    doc = """The headers of `deps` without their code, for what links against libtreadle.so instead.""",
    implementation = _headers_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def treadle_cc_benchmarks(files, deps = []):
    """One program of Google Benchmark for each file, named after it."""
    for source in files:
        name = source[:-len(".cc")]
        treadle_cc_library(
            name = name + ".cases",
            srcs = [source],
            testonly = 1,
            deps = deps + ["@benchmark"],
        )
        native.cc_binary(name = name, testonly = 1, deps = [name + ".cases"])
