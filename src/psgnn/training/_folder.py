"""The folder of a run: which files it has, who works in it, and whether a new run may go there.

Nothing here imports torch, so that a command can refuse a folder at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.paths import LOCK, TEMPORARY, BusyError, locked, remove_unfinished
from psgnn.training._record import check_record, parse_document

FORMAT = 1  # of the files of a run; raised when an older reader would misread them
CONFIG, RECORD, WEIGHTS, GRAPH, STATE = (
    "config.toml",
    "record.json",
    "weights.safetensors",
    "graph.safetensors",
    "state.safetensors",
)
LESSONS = "lessons"  # the folder of what pretraining has measured, until it has ended
HELD_OUT = "heldout.safetensors"
CALIBRATION = "calibration.safetensors"
RUN_FILES = (RECORD, STATE, CONFIG, WEIGHTS, GRAPH, HELD_OUT, CALIBRATION)
REPLACE = "choose another --out or pass --force to replace it"


def check_folder(folder: Path) -> None:
    """Refuse a path that is, or lies below, something else than a folder, or a link that leads nowhere."""
    if folder.is_symlink() and not folder.exists():
        raise InputError(f"{folder} is a symbolic link that leads nowhere; remove it or choose another --out")
    for part in (folder, *folder.parents):
        if part.exists() and not part.is_dir():
            raise InputError(f"{part} is a file, and a run needs a folder; choose another --out")


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create the run folder and lock it; the lock ends with the process, however that ends."""
    check_folder(folder)
    made = not folder.exists()
    try:
        with locked(folder, wait=False):
            remove_unfinished(folder)
            yield
    except BusyError:
        raise InputError(
            f"another process is at work in {folder}; wait for it or choose another --out"
        ) from None
    finally:
        if made:
            with suppress(OSError):  # not empty
                folder.rmdir()


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a run that has ended."""
    path = folder / RECORD
    content = read_file(path)
    try:
        record: dict[str, Any] = parse_document(content)
        check_format(path, record)
        check_record(record)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} is damaged ({one_line(error)}); train again") from None
    return record


def read_file(path: Path) -> bytes:
    """The content of a file of a run; a link out of the folder, a pipe or a device is not one."""
    try:
        if path.exists() and (not path.is_file() or path.resolve().parent != path.parent.resolve()):
            raise InputError(f"{path} is not a file in the folder of the run; train again")
        return path.read_bytes()
    except OSError as error:
        if (path.parent / STATE).exists():
            raise InputError(
                f"the run in {path.parent} was interrupted; repeat its command to end it"
            ) from None
        raise InputError(
            f"{path.parent} is not a finished run of psgnn: {path.name}: {error.strerror or error}; "
            f"psgnn train GRAPH --out {path.parent} makes one"
        ) from None


def check_format(path: Path, document: Mapping[str, Any]) -> None:
    found = document.get("format") if isinstance(document, Mapping) else None
    if found != FORMAT:
        raise InputError(
            f"{path} is of format {found!r}, this version of psgnn reads format {FORMAT}; "
            "train again or use the version that wrote it"
        )


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


def check_out(
    folder: str | Path, *, force: bool = False, beside: bool = False, otherwise: str = REPLACE
) -> None:
    """Refuse a folder that holds a finished run or other files, before any work is done for it.

    Args:
        folder: Where a run should go. It may hold an interrupted one.
        force: Accept a run that is there, to be replaced.
        beside: Accept other files, beside which a new run may lie.
        otherwise: What to do instead, for the message.
    """
    folder = Path(folder)
    check_folder(folder)
    recorded, holds_run = (folder / RECORD).exists(), _holds_run(folder)
    if holds_run and (force or not recorded):
        return
    if holds_run:
        _tidy(folder)
        raise InputError(f"{folder} holds a finished run; {otherwise}")
    # Files of a run that was killed while it wrote them, before any checkpoint: it begins anew.
    ours = not folder.exists() or all(map(_is_ours, folder.iterdir()))
    if (recorded and not force) or not (ours or beside):
        raise InputError(f"{folder} is not empty and holds no run of psgnn; choose another --out")


def remove_run(folder: Path) -> bool:
    """Remove the files of a run and nothing else, and return whether there was one. An empty folder stays.

    Files with the names of a run's are kept where other files lie beside them and nothing says that it is a run.
    """
    check_folder(folder)
    found = [path for path in folder.iterdir() if path.name != LOCK] if folder.exists() else []
    if not _holds_run(folder) and not all(map(_is_ours, found)):
        return False
    for name in RUN_FILES:  # the record first: a part of a run never looks like a finished one
        (folder / name).unlink(missing_ok=True)
    remove_unfinished(folder)
    return bool(found)


def _tidy(folder: Path) -> None:
    """Remove what a process left that was killed after it had written the record."""
    left = [folder / STATE, folder / LOCK, *folder.glob(f"{TEMPORARY}*")]
    if any(path.exists() for path in left):
        with suppress(BusyError, OSError), locked(folder, wait=False):
            remove_unfinished(folder)
            (folder / STATE).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    """Whether this is a part of a run, or of one that was being written."""
    if path.name == LESSONS and not path.is_symlink():
        return path.is_dir() and all(is_lesson(child) for child in path.iterdir())
    return path.name in (*RUN_FILES, LOCK) or path.name.startswith(TEMPORARY)


def is_lesson(path: Path) -> bool:
    """Whether this is a file of what pretraining has measured, finished or not."""
    if path.is_symlink() or not path.is_file():
        return False
    return path.suffix == ".safetensors" or path.name.startswith(TEMPORARY)


def _holds_run(folder: Path) -> bool:
    if (folder / STATE).is_file():
        return True
    try:
        return bool(read_record(folder))
    except InputError:
        return False
