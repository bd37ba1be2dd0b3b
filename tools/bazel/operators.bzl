"""From YAML to code: `treadle_operators` runs schemac and render and declares every file that they make.

    treadle_operators(
        name = "operators",
        functions = "//:native_functions.yaml",
        derivatives = "//:derivatives.yaml",
        formulas = "//autograd:formulas.yaml",
        scalars = "//aten:scalar/functions.yaml",
        names = OPERATOR_NAMES,
        shards = 16,
        kernel_shards = 40,
    )

One action makes all files; Bazel compares their contents, so that only what changed is compiled again. The
files are grouped for the libraries that compile them: `filegroup(srcs = [":operators"], output_group = "ops")`.
"""

load("@python//:config.bzl", "PYTHON")

def _operators_impl(ctx):
    model = ctx.actions.declare_file("treadle/opmodel.json")
    ctx.actions.run(
        executable = ctx.executable._schemac,
        arguments = [
            "--functions",
            ctx.file.functions.path,
            "--derivatives",
            ctx.file.derivatives.path,
            "--formulas",
            ctx.file.formulas.path,
            "--scalars",
            ctx.file.scalars.path,
            "--out",
            model.path,
        ],
        inputs = [ctx.file.functions, ctx.file.derivatives, ctx.file.formulas, ctx.file.scalars],
        outputs = [model],
        # It may be a sanitized build; what a tool has not freed when it exits is no matter.
        env = {"ASAN_OPTIONS": "detect_leaks=0"},
        mnemonic = "Schemac",
        progress_message = "Checking %s" % ctx.file.functions.short_path,
    )

    names = ctx.actions.declare_file("operator_names.txt")
    ctx.actions.write(names, "\n".join(ctx.attr.names) + "\n")

    shards = range(ctx.attr.shards)
    groups = {
        "headers": ["aten/ops/%s.h" % name for name in ctx.attr.names] +
                   ["aten/functions.h", "aten/tensor_methods.h"],
        "ops": ["aten/ops_%d.cc" % k for k in shards] + ["aten/shards.cc"],
        "kernels_cpu": ["aten/kernels_cpu_%d.cc" % k for k in range(ctx.attr.kernel_shards)],
        "variable_type": ["autograd/variable_type_%d.cc" % k for k in shards],
        "bindings": ["python_bindings/bindings_%d.cc" % k for k in shards] + ["python_bindings/binding_shards.cc"],
        "elements": ["aten/elements-inl.h"],
        "stubs": ["treadle/_operators.pyi"],
        "everything": ["everything.txt"],
    }
    outputs = {}
    for group, paths in groups.items():
        outputs[group] = [ctx.actions.declare_file(path) for path in paths]
    everything = [f for files in outputs.values() for f in files]
    ctx.actions.run(
        executable = PYTHON,
        arguments = [
            "-B",
            "-m",
            "codegen.render",
            "--model",
            model.path,
            "--out-dir",
            model.dirname.rpartition("/")[0],
            "--shards",
            str(ctx.attr.shards),
            "--kernel-shards",
            str(ctx.attr.kernel_shards),
            "--names-file",
            names.path,
        ],
        inputs = ctx.files._generator + [model, names],
        outputs = everything,
        env = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        mnemonic = "Render",
        progress_message = "Rendering the operators",
    )
    outputs["model"] = [model]
    return [
        DefaultInfo(files = depset(everything + [model])),
        OutputGroupInfo(**{group: depset(files) for group, files in outputs.items()}),
    ]

treadle_operators = rule(
    doc = "Generated code of every operator.",
    implementation = _operators_impl,
    attrs = {
        "functions": attr.label(mandatory = True, allow_single_file = [".yaml"]),
        "derivatives": attr.label(mandatory = True, allow_single_file = [".yaml"]),
        "formulas": attr.label(mandatory = True, allow_single_file = [".yaml"]),
        "scalars": attr.label(mandatory = True, allow_single_file = [".yaml"]),
        "names": attr.string_list(mandatory = True),
        "shards": attr.int(default = 16),
        "kernel_shards": attr.int(default = 16),
        "_schemac": attr.label(default = "//codegen/schemac", executable = True, cfg = "host"),
        "_generator": attr.label(default = "//codegen:render"),
    },
)
