"""How commands end when something goes wrong: one line on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from psgnn.console import shown
from psgnn.errors import InputError, PsgnnError, missing_extra


def fail(message: str, code: int = 2) -> NoReturn:
    """Say what was wrong, in one line, and end."""
    sys.stderr.write(f"psgnn: error: {shown(' '.join(message.split()))}\n")
    sys.exit(code)


def need_address_space(*, torch: bool = False) -> None:
    """Refuse a limit such as that of ``ulimit -v`` under which libraries end the process in odd ways, or hang.

    They reserve much of it for every thread, and hardly use any.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = (2.5 if torch else 1.5) + 0.25 * (os.cpu_count() or 1)
    if limit != resource.RLIM_INFINITY and limit < needed * 2**30:
        raise InputError(
            f"the address space is limited to {limit / 2**30:.1f} GiB (ulimit -v), and {needed} GiB are needed; "
            "raise the limit, and cap the memory itself with --memory SIZE"
        )


def run_app(app: Callable[..., Any], name: str = "psgnn") -> NoReturn:
    """Run a command line; every expected failure is one line on stderr and exit code 2."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by whoever started this
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    threads = os.environ.get("NUMBA_NUM_THREADS")
    # numba would warn with a traceback, or refuse to be imported
    if threads is not None and not (threads.isascii() and threads.isdecimal() and int(threads[:9]) > 0):
        fail(f"NUMBA_NUM_THREADS={threads} is not a number of threads; set it to 1 or more, or unset it")
    try:
        need_address_space(torch=sys.argv[1:2] in (["train"], ["compare"], ["report"]))
        code = app(standalone_mode=False, prog_name=name) or 0
        if code == 130:  # typer's own answer to Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()  # here, where a pipe that no one reads is no surprise
        sys.exit(code)
    except PsgnnError as error:
        fail(str(error))
    except ModuleNotFoundError as error:
        extra = missing_extra(error, " ".join([name, *sys.argv[1:2]]))
        if extra is None:
            raise
        fail(str(extra))
    except (KeyboardInterrupt, EOFError):
        fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; there is no one left to write to, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail_for_memory()
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
            fail(f"{error.strerror}: {error.filename or 'path'}; choose another path")
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        fail(f"{error.strerror}: {error.filename or 'output'}; free some space or choose another path")
    except Exception as error:
        # typer raises usage errors as those of its own copy of click.
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
            sys.stderr.write(error.format_message().rstrip() + "\n")  # type: ignore[attr-defined]
            sys.exit(2)
        if hasattr(error, "format_message"):
            command = getattr(getattr(error, "ctx", None), "command_path", "psgnn")
            fail(f"{error.format_message()} (see {command} --help)")
        if "can't allocate memory" in str(error):  # torch's way to say MemoryError
            _fail_for_memory()
        raise


def _fail_for_memory() -> NoReturn:
    from psgnn.memory import describe, memory_cap

    cap = memory_cap()
    if cap is None:
        fail("out of memory; --memory SIZE keeps columns of large graphs in files")
    fail(f"this does not fit into --memory {describe(cap)}, even with columns in files; raise it")
