"""The base names of the operators, as the repository @operator_names, read before the build graph is made.

Bazel wants the name of every output before any step runs, and each operator has a header of its own. This
reads nothing but the names: `- func: add.Tensor(...)` gives `add`. schemac alone parses the file, and
render.py stops with an error where this list and the model disagree.
"""

def _operator_names_impl(ctx):
    names = {}
    for line in ctx.read(ctx.path(ctx.attr.functions)).split("\n"):
        if not line.startswith("- func:"):
            continue
        name = line[len("- func:"):].strip().strip("\"'").split("(")[0].strip()
        name = name.split("::")[-1].split(".")[0]
        if name:
            names[name] = True
    ctx.file("BUILD.bazel", "# Written by tools/bazel/operator_names.bzl.\n")
    ctx.file("names.bzl", "# Written by tools/bazel/operator_names.bzl.\nOPERATOR_NAMES = %r\n" % sorted(names.keys()))

operator_names_repository = repository_rule(
    doc = "Reads the operators' names out of native_functions.yaml; read again whenever the file changes.",
    implementation = _operator_names_impl,
    attrs = {"functions": attr.label(mandatory = True, allow_single_file = True)},
)
