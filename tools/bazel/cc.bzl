"""C++ rules whose objects are rebuilt only when a header they really include has changed.

Bazel's own compile action depends on the whole list of headers that a library declares: one new header
in that list, and everything that could see it is compiled again. Here every operator has a header of its
own, so a new operator would cost the whole tree. `treadle_cc_library` and `treadle_cc_test` therefore
compile through an action that reports the headers it did not open (`unused_inputs_list`), which Bazel
then leaves out of its decision: see tools/bazel/compile.sh.

Most files include the same headers of the standard library, which take half of the time of a small file. They
are parsed once, by `precompiled_header`, and each source begins with the result. Sources still include what they
use: `bazel build --config=lint` compiles them without the precompiled header.

    treadle_cc_library(
        name = "aten",
        srcs = glob(["**/*.cc"]),
        hdrs = glob(["**/*.h"]),
        deps = ["//core"],
    )
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_COMPILE = "c++-compile"

_PrecompiledInfo = provider(
    doc = "A header that was parsed before.",
    fields = {
        "header": "the header that a source includes first: the compiler takes `compiled`, which lies beside it",
        "compiled": "what the compiler made of it",
    },
)

def _compiler(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    return struct(
        toolchain = toolchain,
        features = features,
        context = context,
        program = cc_common.get_tool_for_action(feature_configuration = features, action_name = _COMPILE),
    )

def _variables(ctx, compiler, source, output, copts = []):
    return cc_common.create_compile_variables(
        feature_configuration = compiler.features,
        cc_toolchain = compiler.toolchain,
        source_file = source.path,
        output_file = output.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + copts,
        include_directories = compiler.context.includes,
        quote_include_directories = depset(
            [".", ctx.bin_dir.path],
            transitive = [compiler.context.quote_includes],
        ),
        system_include_directories = compiler.context.system_includes,
        preprocessor_defines = depset(ctx.attr.local_defines, transitive = [compiler.context.defines]),
        use_pic = True,
    )

def _run(ctx, compiler, source, output, unused, headers, copts, message):
    """Compiles one source; `unused` lists the headers that were not opened."""
    variables = _variables(ctx, compiler, source, output, copts)
    command = ctx.actions.args()
    command.add(unused)
    command.add(ctx.bin_dir.path)
    command.add(compiler.program)
    command.add_all(cc_common.get_memory_inefficient_command_line(
        feature_configuration = compiler.features,
        action_name = _COMPILE,
        variables = variables,
    ))
    ctx.actions.run(
        executable = ctx.executable._compile,
        arguments = [command],
        inputs = depset([source], transitive = [headers]),
        outputs = [output, unused],
        unused_inputs_list = unused,
        env = cc_common.get_environment_variables(
            feature_configuration = compiler.features,
            action_name = _COMPILE,
            variables = variables,
        ),
        mnemonic = "CppCompile",
        progress_message = message,
    )

def _precompiled_impl(ctx):
    compiler = _compiler(ctx)
    header = ctx.actions.declare_file("%s/%s" % (ctx.label.name, ctx.file.header.basename))
    compiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
    ctx.actions.symlink(output = header, target_file = ctx.file.header)
    _run(
        ctx,
        compiler,
        source = ctx.file.header,
        output = compiled,
        unused = ctx.actions.declare_file(header.basename + ".unused", sibling = header),
        headers = depset(transitive = [compiler.context.headers, compiler.toolchain.all_files]),
        copts = ["-x", "c++-header"],
        message = "Compiling %s" % ctx.file.header.short_path,
    )
    return [_PrecompiledInfo(header = header, compiled = compiled)]

_TO_COMPILE = {
    "deps": attr.label_list(providers = [CcInfo]),
    "copts": attr.string_list(),
    "local_defines": attr.string_list(),
    "_compile": attr.label(
        default = "//tools/bazel:compile.sh",
        allow_single_file = True,
        executable = True,
        cfg = "host",
    ),
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}

precompiled_header = rule(
    doc = """A header that libraries of the same `copts` begin with: `treadle_cc_library(precompiled = ...)`.

    It includes headers from outside of the tree only, since a change of any of them compiles every source again.
    """,
    implementation = _precompiled_impl,
    attrs = dict(_TO_COMPILE, header = attr.label(mandatory = True, allow_single_file = [".h"])),
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _objects_impl(ctx):
    compiler = _compiler(ctx)
    headers = [depset(ctx.files.hdrs), compiler.context.headers, compiler.toolchain.all_files]
    copts = []
    if ctx.attr.precompiled:
        precompiled = ctx.attr.precompiled[_PrecompiledInfo]
        headers.append(depset([precompiled.header, precompiled.compiled]))
        copts = ["-Winvalid-pch", "-include", precompiled.header.path]
    objects = []
    for source in ctx.files.srcs:
        if source.extension != "cc":
            fail("%s: expected .cc files in srcs, got %s" % (ctx.label, source.short_path))
        path = source.short_path
        if path.startswith(ctx.label.package + "/"):
            path = path[len(ctx.label.package) + 1:]
        stem = "_objects/%s/%s" % (ctx.attr.library, path[:-len(".cc")])
        objects.append(ctx.actions.declare_file(stem + ".pic.o"))
        _run(
            ctx,
            compiler,
            source = source,
            output = objects[-1],
            unused = ctx.actions.declare_file(stem + ".unused"),
            headers = depset(transitive = headers),
            copts = copts,
            message = "Compiling %s" % source.short_path,
        )
    return [DefaultInfo(files = depset(objects))]

_objects = rule(
    implementation = _objects_impl,
    attrs = dict(
        _TO_COMPILE,
        srcs = attr.label_list(allow_files = [".cc"]),
        hdrs = attr.label_list(allow_files = [".h", ".cuh"]),
        precompiled = attr.label(providers = [_PrecompiledInfo]),
        library = attr.string(),
    ),
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def treadle_cc_library(name, srcs = [], hdrs = [], deps = [], copts = [], precompiled = None, local_defines = [], testonly = 0, target_compatible_with = [], **kwargs):
    """A cc_library compiled header by header. Every object is kept when linking (kernels register themselves).

    `precompiled` is a `precompiled_header` of the same `copts`, or None.
    """
    _objects(
        name = name + ".objects",
        srcs = srcs,
        hdrs = hdrs,
        deps = deps,
        copts = copts,
        precompiled = select({
            "//tools/bazel:not_precompiled": None,
            "//conditions:default": precompiled,
        }),
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

def treadle_cc_test(name, srcs, deps = [], copts = [], precompiled = "//core:precompiled", local_defines = [], target_compatible_with = [], **kwargs):
    """A GoogleTest program compiled header by header."""
    treadle_cc_library(
        name = name + ".cases",
        srcs = srcs,
        copts = copts,
        precompiled = precompiled,
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
