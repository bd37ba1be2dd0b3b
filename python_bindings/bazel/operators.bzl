"""Operator libraries outside of Treadle.

    treadle_operator_library(
        name = "my_ops",
        schema = "my_ops.yaml",
        derivatives = "derivatives.yaml",
        kernels = ["kernels.cc"],
    )

makes the Python package `my_ops` in the folder `gen` of the outputs: PYTHONPATH=bazel-bin/gen is all that
a program needs to import it. The repository @treadle is made by repository.bzl.
"""

load("@treadle//:config.bzl", "CFLAGS", "EXT_SUFFIX", "PYTHON", "STAMP")

_LIBRARIES = [
    "@treadle//:lib/libtreadle.so",
    "@treadle//:lib/libtreadle_python.so",
]

def _generate_impl(ctx):
    library = ctx.attr.library
    shards = range(ctx.attr.shards)
    declared = {
        "sources": ["%s_%d.cc" % (kind, k) for kind in ["ops", "kernels_cpu", "variable_type", "bindings"] for k in shards] +
                   ["shards.cc", "module.cc"],
        "headers": ["library.h", "functions.h"],
        "python": ["__init__.py", "_operators.py", "_operators.pyi", "opmodel.json", "py.typed"],
    }
    groups = {
        group: [ctx.actions.declare_file("gen/%s/%s" % (library, name)) for name in names]
        for group, names in declared.items()
    }
    groups["headers"].append(ctx.actions.declare_directory("gen/%s/ops" % library))
    root = groups["python"][0].dirname.rpartition("/")[0]
    arguments = ["-B", "-m", "treadle.codegen", ctx.file.schema.path, "--name", library, "--out", root]
    arguments += ["--shards", str(ctx.attr.shards)]
    inputs = [ctx.file.schema]
    if ctx.file.derivatives:
        arguments += ["--derivatives", ctx.file.derivatives.path]
        inputs.append(ctx.file.derivatives)
    outputs = [f for files in groups.values() for f in files]
    ctx.actions.run(
        executable = PYTHON,
        arguments = arguments,
        inputs = inputs,
        outputs = outputs,
        # Another Treadle makes other code.
        env = {"TREADLE_STAMP": STAMP, "PYTHONHASHSEED": "0"},
        mnemonic = "TreadleCodegen",
        progress_message = "Generating the operators of %s" % library,
    )
    return [
        DefaultInfo(files = depset(outputs)),
        OutputGroupInfo(**{group: depset(files) for group, files in groups.items()}),
    ]

_generate = rule(
    implementation = _generate_impl,
    attrs = {
        "library": attr.string(mandatory = True),
        "schema": attr.label(mandatory = True, allow_single_file = [".yaml"]),
        "derivatives": attr.label(allow_single_file = [".yaml"]),
        "shards": attr.int(default = 1),
    },
)

def treadle_operator_library(
        name,
        schema,
        derivatives = None,
        kernels = [],
        deps = [],
        copts = [],
        linkopts = [],
        shards = 1,
        visibility = None):
    """A Python package of operators.

    Args:
      name: of the package, and the namespace of the operators.
      schema: the .yaml file of the entries.
      derivatives: the .yaml file of their derivatives.
      kernels: C++ files, and headers of their own.
      deps: libraries that the kernels use.
      copts: for the compiler, after Treadle's own options.
      linkopts: for the linker.
      shards: into how many C++ files of each kind the generated code is spread.
      visibility: of the package.
    """
    generated = name + ".generated"
    _generate(
        name = generated,
        library = name,
        schema = schema,
        derivatives = derivatives,
        shards = shards,
        visibility = ["//visibility:private"],
    )
    for group in ["sources", "headers", "python"]:
        native.filegroup(
            name = "%s.%s" % (name, group),
            srcs = [generated],
            output_group = group,
            visibility = ["//visibility:private"],
        )
    native.cc_library(
        name = name + ".includes",
        hdrs = [":%s.headers" % name],
        includes = ["gen"],
        # Vector code includes its own file once for each instruction set.
        textual_hdrs = [":%s.sources" % name],
        visibility = visibility,
        deps = ["@treadle//:headers"],
    )
    extension = "gen/%s/_C%s" % (name, EXT_SUFFIX)
    native.cc_binary(
        name = extension,
        srcs = [":%s.sources" % name] + kernels,
        additional_linker_inputs = _LIBRARIES,
        copts = CFLAGS + copts,
        linkopts = ["-fopenmp"] + ["$(execpath %s)" % x for x in _LIBRARIES] + linkopts,
        linkshared = 1,
        visibility = ["//visibility:private"],
        deps = [":%s.includes" % name] + deps,
    )
    native.filegroup(
        name = name,
        srcs = [
            extension,
            ":%s.python" % name,
        ],
        visibility = visibility,
    )
