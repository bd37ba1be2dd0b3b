"""Programs that say `import torch` run on treadle.

    python -m treadle.run script.py [arguments]     # as `python script.py`
    python -m treadle.run -m package.module         # as `python -m package.module`
    treadle.run.install()                           # from here on, in a program of one's own
    python -m treadle.run --install                 # in every program of this environment

`torch` and its submodules are the same module objects as `treadle` and its; no other copy is made.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import importlib
import importlib.util
import io
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Optional, Sequence, Tuple

from treadle._run.import_hook import FOLDER, install, uninstall

USAGE = """usage: python -m treadle.run script.py [argument ...]
       python -m treadle.run -m module [argument ...]
       python -m treadle.run --install | --uninstall

Run a program that imports torch; it gets treadle. --install gives treadle to all
programs of this environment, as a package torch, and --uninstall removes that."""

_Main = Tuple[CodeType, dict]  # its code, and the attributes of its module


def _script(path: str) -> _Main:
    """The program in a file."""
    absolute = os.path.abspath(path)
    try:
        with io.open_code(absolute) as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {absolute!r}: "
            f"[Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    _put_first(os.path.dirname(os.path.realpath(path)))
    code = compile(source, absolute, "exec", dont_inherit=True)
    loader = SourceFileLoader("__main__", absolute)
    return code, {"__file__": absolute, "__loader__": loader, "__package__": None, "__spec__": None}


def _module(name: str) -> _Main:
    """The program that is a module, or the `__main__` of a package."""
    _put_first(os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise _not_runnable(
            f"Error while finding module specification for {name!r} ({error})"
        ) from None
    code = _code_of(spec)
    if spec is None or code is None:
        raise _not_runnable(f"No module named {name}")
    sys.argv[0] = str(spec.origin)
    return code, _attributes(spec)


def _folder(path: str) -> Optional[_Main]:
    """The program that is the `__main__` of a folder or an archive; None for another file."""
    spec = PathFinder.find_spec("__main__", [path])
    code = _code_of(spec)
    if spec is None or code is None:
        return None
    _put_first(os.path.abspath(path))
    return code, _attributes(spec)


def _code_of(spec: Optional[ModuleSpec]) -> Optional[CodeType]:
    get_code = getattr(spec and spec.loader, "get_code", None)
    return get_code(spec.name) if spec is not None and get_code is not None else None


def _attributes(spec: ModuleSpec) -> dict:
    return {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }


def _not_runnable(message: str) -> SystemExit:
    print(f"{sys.executable}: {message}", file=sys.stderr)
    return SystemExit(1)


def _put_first(folder: str) -> None:
    """The folder of the program in place of that of `python -m treadle.run`."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _run(program: Any, argument: str) -> None:
    try:
        found = program(argument)
        if found is None:
            found = _script(argument)
        code, attributes = found
        main = ModuleType("__main__")
        main.__dict__.update(
            {"__builtins__": builtins, "__annotations__": {}, "__cached__": None, **attributes}
        )
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        # Printed here without the frames of this file, and not a second time by the interpreter,
        # which ends the process with the status that belongs to the exception.
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        sys.excepthook = lambda *_: None
        raise


def _change_environment(option: str) -> None:
    """Do --install or --uninstall."""
    from treadle._run import installed

    change = {
        "--install": installed.install,
        "--uninstall": installed.uninstall,
    }
    try:
        print(change[option]())
    except (installed.RefusedError, OSError) as error:
        print(f"treadle.run {option}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Run the program that the command line names."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    is_module = given[:1] == ["-m"]
    if len(given) < 1 + is_module or given[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if given and not is_module else sys.stderr)
        raise SystemExit(0 if given and not is_module else 2)
    if given in (["--install"], ["--uninstall"]):
        return _change_environment(given[0])
    install()
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER] + ([inherited] if inherited else []))
    sys.argv = given[is_module:]
    _run(_module if is_module else _folder, sys.argv[0])


__all__ = ["install", "main", "uninstall"]

if __name__ == "__main__":
    importlib.import_module("treadle.run").main()  # the module that programs import, not this copy
