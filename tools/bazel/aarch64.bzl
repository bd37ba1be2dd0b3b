"""The compiler for 64-bit Arm as the repository @aarch64. It is found on the machine, never downloaded.

    bazel test --config=aarch64 //core/...

`./dev test --aarch64` installs the compiler, and unpacks the libraries for Arm into the folder that
TREADLE_AARCH64 names. Other builds look for neither.
"""

_PREFIX = "/usr/bin/aarch64-linux-gnu-"
_TOOLS = ["ar", "cpp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

# Bazel asks for paths of these, too, and calls none of them here.
_UNUSED = ["dwp", "llvm-cov", "llvm-profdata"]

def _toolchain_impl(ctx):
    root = ctx.os.environ.get("TREADLE_AARCH64", "")
    if not ctx.path(_PREFIX + "gcc").exists:
        fail("@aarch64: %sgcc was not found; install it with: apt-get install g++-aarch64-linux-gnu\n" % _PREFIX +
             "(./dev test --aarch64 does this by itself)")
    libraries = root + "/usr/lib/aarch64-linux-gnu"
    if not root or not ctx.path(libraries + "/libdnnl.so").exists:
        fail("@aarch64: expected the libraries for Arm in the folder TREADLE_AARCH64, got '%s'; " % root +
             "./dev test --aarch64 fetches them")

    # The compiler prints the folders that it searches by itself between these two lines.
    said = ctx.execute(["sh", "-c", "echo | LC_ALL=C %sgcc -E -xc++ -v - 2>&1 >/dev/null" % _PREFIX]).stdout
    said = said.partition("search starts here:\n")[2].partition("End of search list")[0]
    own = [str(ctx.path(line.strip()).realpath) for line in said.split("\n") if line.startswith(" ")]
    folders = [libraries, libraries + "/openblas-openmp"]
    ctx.file("BUILD.bazel", """# Written by tools/bazel/aarch64.bzl.

load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")

package(default_visibility = ["//visibility:public"])

filegroup(name = "empty")

cc_toolchain_suite(
    name = "toolchain",
    toolchains = {"aarch64": ":compiler"},
)

cc_toolchain(
    name = "compiler",
    toolchain_identifier = "aarch64",
    toolchain_config = ":config",
    all_files = ":empty",
    ar_files = ":empty",
    as_files = ":empty",
    compiler_files = ":empty",
    dwp_files = ":empty",
    linker_files = ":empty",
    objcopy_files = ":empty",
    strip_files = ":empty",
    supports_param_files = 1,
)

cc_toolchain_config(
    name = "config",
    cpu = "aarch64",
    compiler = "gcc",
    toolchain_identifier = "aarch64",
    host_system_name = "local",
    target_system_name = "aarch64-linux-gnu",
    target_libc = "glibc",
    abi_version = "local",
    abi_libc_version = "local",
    cxx_builtin_include_directories = %s,
    tool_paths = %s,
    compile_flags = %s,
    opt_compile_flags = ["-g0", "-O2", "-D_FORTIFY_SOURCE=1", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"],
    dbg_compile_flags = ["-g"],
    cxx_flags = [],
    link_flags = %s,
    link_libs = ["-lstdc++", "-lm"],
    opt_link_flags = ["-Wl,--gc-sections"],
)
""" % (
        repr(own + [root + "/usr/include"]),
        repr(dict([(tool, _PREFIX + tool) for tool in _TOOLS] + [(tool, "/bin/false") for tool in _UNUSED])),
        repr([
            "-U_FORTIFY_SOURCE",
            "-fstack-protector",
            "-Wall",
            "-fno-omit-frame-pointer",
            "-isystem",
            root + "/usr/include",
        ]),
        # DT_RPATH counts for what the libraries need, too; DT_RUNPATH, the default, does not.
        repr(["-Wl,-z,relro,-z,now", "-Wl,--disable-new-dtags"] +
             [flag + f for f in folders for flag in ["-L", "-Wl,-rpath,", "-Wl,-rpath-link,"]]),
    ))

aarch64_repository = repository_rule(
    doc = "GCC for 64-bit Arm.",
    implementation = _toolchain_impl,
    environ = ["TREADLE_AARCH64"],
    local = True,
)
