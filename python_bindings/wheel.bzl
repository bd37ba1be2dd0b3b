"""The Python package as an installable wheel, and as a manifest from which ./dev lays it out for development.

`treadle_package` says which file goes where:

    treadle_package(
        name = "core_package",
        contents = {":sources": "python_bindings/ -> "},   # python_bindings/treadle/x.py becomes treadle/x.py
        headers = ["//autograd"],                          # all headers it sees, under treadle/include/
    )

    treadle_package(
        name = "package",
        packages = [":core_package", ":testing_package"],  # all files of both
    )

`treadle_wheel` packs that into a wheel that carries the shared libraries it needs (make_wheel.py), in a folder of the
target's name.
"""

load("@python//:config.bzl", "PYTHON", "WHEEL_PYTHON_TAG")
load("//tools/bazel:version.bzl", "VERSION")

PackageInfo = provider(
    doc = "The files of a Python package.",
    fields = {
        "entries": "pairs of a place in the package and a file",
        "manifest": "a file of lines PLACE-IN-THE-PACKAGE tab PATH",
        "files": "the files that it names",
    },
)

def _stamp(ctx, headers):
    listing = ctx.actions.declare_file(ctx.label.name + ".headers")
    ctx.actions.write(listing, "".join(["%s\t%s\n" % (place, headers[place].path) for place in headers]))
    stamp = ctx.actions.declare_file(ctx.label.name + "_stamp.h")
    ctx.actions.run(
        executable = PYTHON,
        arguments = ["-B", ctx.file._make_stamp.path, VERSION, stamp.path, listing.path],
        inputs = [ctx.file._make_stamp, listing] + headers.values(),
        outputs = [stamp],
        mnemonic = "Stamp",
        progress_message = "Stamping the headers",
    )
    return stamp

def _package_impl(ctx):
    entries = []
    for package in ctx.attr.packages:
        entries += package[PackageInfo].entries
    for target, rule in ctx.attr.contents.items():
        start, _, place = rule.partition("->")
        start, place = start.strip(), place.strip()
        for file in target.files.to_list():
            if not file.short_path.startswith(start):
                fail("%s: expected %s to start with %s" % (ctx.label, file.short_path, start))
            entries.append((place + file.short_path[len(start):], file))
    headers = {}
    for target in ctx.attr.headers:
        for file in target[CcInfo].compilation_context.headers.to_list():
            if file.short_path.startswith("../"):
                continue
            path = file.short_path
            if path.startswith("generated/"):
                path = path[len("generated/"):]
            headers["treadle/include/" + path] = file
    if headers:
        entries += headers.items()
        entries.append(("treadle/include/treadle/stamp.h", _stamp(ctx, headers)))
    lines = {place: file.path for place, file in entries}
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "".join(["%s\t%s\n" % (place, lines[place]) for place in sorted(lines.keys())]))
    files = depset([file for _, file in entries])
    return [
        DefaultInfo(files = depset([manifest], transitive = [files])),
        PackageInfo(entries = entries, manifest = manifest, files = files),
    ]

treadle_package = rule(
    doc = "Which file goes where in the Python package.",
    implementation = _package_impl,
    attrs = {
        "contents": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "files, and `FROM -> TO`: how the start of their path changes",
        ),
        "headers": attr.label_list(
            providers = [CcInfo],
            doc = "libraries whose headers go under treadle/include/, with a stamp that names them all",
        ),
        "packages": attr.label_list(
            providers = [PackageInfo],
            doc = "packages whose files are in this one too",
        ),
        "_make_stamp": attr.label(default = "//tools/bazel:make_stamp.py", allow_single_file = True),
    },
)

def _wheel_impl(ctx):
    package = ctx.attr.package[PackageInfo]

    # A folder, since the wheel's name has the platform that it fits, which packing finds out.
    wheel = ctx.actions.declare_directory(ctx.label.name)
    options = ["--system-libraries"] if ctx.attr.system_libraries else []
    if ctx.attr.pure:
        options.append("--pure")
    for library in ctx.attr.without:
        options += ["--without", library]
    for part in ctx.attr.compiled_in:
        options += ["--compiled-in", part]
    ctx.actions.run(
        executable = PYTHON,
        arguments = [
            "-B",
            ctx.file._make_wheel.path,
            "--manifest",
            package.manifest.path,
            "--metadata",
            ctx.file.metadata.path,
            "--license",
            ctx.file.license.path,
            "--name",
            ctx.attr.distribution,
            "--version",
            VERSION,
            "--entry-points",
            ctx.attr.entry_points,
            "--python-tag",
            WHEEL_PYTHON_TAG,
            "--output",
            wheel.path,
        ] + options,
        inputs = depset(
            [ctx.file._make_wheel, ctx.file._openblas_subset, ctx.file.metadata, ctx.file.license, package.manifest],
            transitive = [package.files],
        ),
        outputs = [wheel],
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        mnemonic = "Wheel",
        progress_message = "Packing the wheel %s" % ctx.attr.distribution,
    )
    return [DefaultInfo(files = depset([wheel]))]

treadle_wheel = rule(
    doc = "An installable wheel with the shared libraries that it needs.",
    implementation = _wheel_impl,
    attrs = {
        "package": attr.label(mandatory = True, providers = [PackageInfo]),
        "distribution": attr.string(default = "treadle", doc = "the wheel's name, with '_' for '-'"),
        "entry_points": attr.string(doc = "the text of entry_points.txt, where there is one"),
        "without": attr.string_list(doc = "shared libraries that another package brings"),
        "pure": attr.bool(doc = "whether the files are Python alone, for every Python 3 and system"),
        "system_libraries": attr.bool(doc = "whether it carries none, and so is for this system only"),
        "compiled_in": attr.string_list(doc = "packages of the system that the files have parts of"),
        "metadata": attr.label(mandatory = True, allow_single_file = True),
        "license": attr.label(mandatory = True, allow_single_file = True),
        "_make_wheel": attr.label(default = "//tools/bazel:make_wheel.py", allow_single_file = True),
        "_openblas_subset": attr.label(default = "//tools/bazel:openblas_subset.py", allow_single_file = True),
    },
)
