"""The base names of the operators, as the repository @operator_names, read before the build graph is made.

Bazel wants the name of every output before any step runs, and each operator has a header of its own. This
reads nothing but the names: `- func: add.Tensor(...)` gives `add`; `foreach: _foreach_add.List` gives
`_foreach_add`, and `_foreach_add_` where the entry's `forms:` say inplace. schemac alone parses the file, and
render.py stops with an error where this list and the model disagree.
"""

def _words(line):
    for separator in ["{", "}", "[", "]", ",", ":", "\"", "'"]:
        line = line.replace(separator, " ")
    return [word for word in line.split(" ") if word]

def _names_of(entry):
    name = entry[0].strip().strip("\"'").split("(")[0].strip()
    names = [name.split("::")[-1].split(".")[0]]
    in_place = any(["inplace" in _words(line) for line in entry if line.startswith("  forms:")])
    for line in entry:
        if not line.startswith("  foreach:"):
            continue
        for word in _words(line):
            if word.startswith("_foreach_"):
                base = word.split(".")[0]
                names += [base, base + "_"] if in_place and not base.endswith("_") else [base]
    return [name for name in names if name]

def _operator_names_impl(ctx):
    names = {}
    for entry in ("\n" + ctx.read(ctx.path(ctx.attr.functions))).split("\n- func:")[1:]:
        for name in _names_of(entry.split("\n")):
            names[name] = True
    ctx.file("BUILD.bazel", "# Written by tools/bazel/operator_names.bzl.\n")
    ctx.file("names.bzl", "# Written by tools/bazel/operator_names.bzl.\nOPERATOR_NAMES = %r\n" % sorted(names.keys()))

operator_names_repository = repository_rule(
    doc = "Reads the operators' names out of native_functions.yaml; read again whenever the file changes.",
    implementation = _operator_names_impl,
    attrs = {"functions": attr.label(mandatory = True, allow_single_file = True)},
)
