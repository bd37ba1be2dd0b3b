"""For repository rules: runs a program with the Python that the build is for."""

def run_python(ctx, repository, packages, program):
    """The output of the program. Stops with the packages to install where there is no Python.

    Args:
      ctx: of a rule whose environ names TREADLE_PYTHON.
      repository: as messages name it, "@python".
      packages: of Debian, which have a Python that will do.
      program: its text; it ends by sys.exit(message) where this Python cannot be used.

    Returns:
      The printed text, without blanks around it.
    """
    name = ctx.os.environ.get("TREADLE_PYTHON", "") or "python3"
    python = ctx.path(name) if name.startswith("/") else ctx.which(name)
    if python == None or not python.exists:
        fail("%s: %s was not found; install it with: apt-get install %s" % (repository, name, packages))
    result = ctx.execute([python, "-c", program])
    if result.return_code:
        fail("%s: %s cannot be used: %s" % (repository, python, result.stderr.strip()))
    return result.stdout.strip()
