"""Find the files of a dataset, download the missing ones, and hand out bytes that passed their checksum.

They are looked for in ``root``, then in ``$PSGNN_DATA``, then in the user's cache. Missing files are downloaded to a
temporary file beside their destination (``root`` or the cache), checked, and moved into place in one step.

pooch is no substitute. Its checksum is of the whole file, ours may be of a member or of the edges, so all checks would
stay; it sets no limit to a download, makes files that other users cannot read, and brings seven more packages.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import logging
import os
import re
import secrets
import sys
import tarfile
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from psgnn.datasets._catalog import Copy, DataFile
from psgnn.errors import DataError, InputError


@contextmanager
def progress_bar(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Yield a function that moves the bar on by a number of bytes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda advance: bar.update(task, advance=advance)


log = logging.getLogger(__name__)
Root = str | os.PathLike[str] | None
# Far above any file of the catalogue: what a damaged or hostile archive may unfold to, or a server may send.
MAX_BYTES = 256 * 2**20
TIMEOUT = 20.0


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class MissingFileError(DataError):
    """A file that is in no data folder and cannot be downloaded."""


def cache_folder() -> Path:
    """``$PSGNN_CACHE``, else ``psgnn`` in ``$XDG_CACHE_HOME``, else ``~/.cache/psgnn``."""
    if cache := os.environ.get("PSGNN_CACHE"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "psgnn"


def store_folder(root: Root) -> Path:
    """Where new files go: ``root`` if given, else the user's cache."""
    return Path(root) if root is not None else cache_folder()


def data_folders(root: Root) -> list[Path]:
    """The folders that are searched, in order."""
    if root is not None and Path(root).exists() and not Path(root).is_dir():
        raise InputError(f"root {os.fspath(root)} is not a folder; pass the folder that holds the datasets")
    shared = os.environ.get("PSGNN_DATA")
    places = [root, shared or None, cache_folder()]
    return list(dict.fromkeys(Path(place) for place in places if place is not None))


def locate(file: DataFile, root: Root) -> tuple[Path, Copy] | None:
    """The first copy that is here, unchecked: its path and what it has to be."""
    for folder in data_folders(root):
        for copy in file.copies:
            if (folder / copy.path).is_file():
                return folder / copy.path, copy
    return None


def read(
    file: DataFile, root: Root = None, *, beside: Iterable[DataFile] = (), timeout: float = TIMEOUT
) -> bytes:
    """The contents of the file, checked and decompressed; downloaded if it is in none of the data folders.

    ``beside`` names files that may come in the same archive: it is kept only if all of them are right.
    """
    if found := locate(file, root):
        path, copy = found
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        return unpack(copy, content, str(path))
    source = next((copy for copy in file.copies if copy.url and not copy.unchecked), None)
    destination = store_folder(root) / (source or file.copies[0]).path
    missing = f"{file.copies[0].path} is in none of {', '.join(map(str, data_folders(root)))}"
    if source is None and file.copies[0].unchecked:
        raise MissingFileError(
            f"{missing}, and it is not downloaded, since no checksum of it is known here; "
            f"get it from {file.copies[0].url or file.page} and put it at {destination}"
        )
    if source is None:
        raise MissingFileError(
            f"{missing}, and no address serves this encoding of it; "
            f"get one with sha256 {file.copies[0].sha256} (source: {file.page}) and put it at {destination}"
        )
    shared = [copy for other in beside for copy in other.copies if copy.path == source.path]
    try:
        return _download(source, shared, destination, timeout)
    except (OSError, http.client.HTTPException) as error:
        # URLError carries the reason; a one-line message whatever the server or system said
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        raise MissingFileError(
            f"cannot download {source.url} ({reason}); {missing}; "
            f"get it from {file.page} and put it at {destination}"
        ) from None


def unpack(copy: Copy, content: bytes, place: str) -> bytes:
    """The plain contents of a stored copy, or a :class:`DataError` if it is damaged or another file."""
    if copy.member:
        content = _member(content, copy.member, place)
    packed = (copy.member or copy.path).endswith(".gz")
    if copy.unchecked:
        found = hashlib.sha256(content).hexdigest()
        log.info("no checksum of %s is known; the file that is used has sha256 %s", place, found)
        return _gunzip(content, place) if packed else content
    sums = []
    if copy.sha256:
        sums.append(("sha256", hashlib.sha256(content).hexdigest(), copy.sha256))
    if copy.git_sha1:
        blob = b"blob %d\0" % len(content) + content
        sums.append(("git sha1", hashlib.sha1(blob, usedforsecurity=False).hexdigest(), copy.git_sha1))
    right = any(found == pinned for _, found, pinned in sums)
    if copy.edges_sha256 and not right:
        found = _edge_digest(content, packed)
        sums.append(("sha256 of the edges", found, copy.edges_sha256))
        right = found == copy.edges_sha256
    if not right:
        said = " and ".join(f"{what} {found}, expected {pinned}" for what, found, pinned in sums)
        raise DataError(f"{place} has {said}; it was not used")
    return _gunzip(content, place) if packed else content


def _edge_digest(content: bytes, packed: bool) -> str:
    try:
        return edge_digest(_gunzip(content, "it") if packed else content)
    except DataError:
        return "none (not an edge list)"


def _gunzip(content: bytes, place: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            return _bounded(stream, place)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{place} is a damaged gzip file ({error}); it was not used") from None


def _member(archive: bytes, member: str, place: str) -> bytes:
    """One member of a zip or tar archive, in memory: nothing is ever extracted to disk."""
    try:
        if zipfile.is_zipfile(io.BytesIO(archive)):
            with zipfile.ZipFile(io.BytesIO(archive)) as zipped, zipped.open(member) as stream:
                return _bounded(stream, place)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tarred:
            extracted = tarred.extractfile(member)
            if extracted is None:
                raise KeyError(member)
            return _bounded(extracted, place)
    except KeyError:
        raise DataError(f"{place} holds no file {member}; it was not used") from None
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, RuntimeError) as error:
        raise DataError(f"{place} is a damaged archive ({error}); it was not used") from None


def _bounded(stream: _Readable, place: str) -> bytes:
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DataError(f"{place} unfolds to more than {MAX_BYTES} bytes; it was not used")
    return content


def _download(source: Copy, shared: Iterable[Copy], destination: Path, timeout: float) -> bytes:
    made = [folder for folder in destination.parents if not folder.exists()]
    part = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        _transfer(source.url, part, timeout)
        archive, place = part.read_bytes(), f"{source.path} from {source.url}"
        for copy in shared:
            unpack(copy, archive, place)
        content = unpack(source, archive, place)
        part.replace(destination)
        made = []
        return content
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()


def _transfer(url: str, part: Path, timeout: float) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "psgnn"})
    with urllib.request.urlopen(request, timeout=timeout) as response, part.open("xb") as out:
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() else None
        received = 0
        with progress_bar(url.rpartition("/")[2], total) as advance:
            while chunk := response.read(2**16):
                out.write(chunk)
                received += len(chunk)
                advance(len(chunk))
                if received > MAX_BYTES:
                    raise DataError(f"{url} sends more than {MAX_BYTES} bytes; nothing was kept")
    if total is not None and received < total:
        raise MissingFileError(f"{url} ended after {received} of {total} bytes; nothing was kept, try again")


_COMMENT = re.compile(rb"^[#%][^\n]*", re.MULTILINE)
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")


def numbers(text: bytes, columns: int, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """The numbers of a text table as ``[L, columns]``, between commas or blanks; ``#`` and ``%`` comment.

    >>> numbers(b"# from, to\\n0, 1\\n0, 2\\n", 2).tolist()
    [[0, 1], [0, 2]]
    """
    with warnings.catch_warnings():
        # numpy says by a warning that it met something else than a number
        warnings.simplefilter("error", DeprecationWarning)
        try:
            flat = np.fromstring(_COMMENT.sub(b"", text).translate(_COMMA_TO_SPACE), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            raise DataError(f"the text holds something other than numbers ({error})") from None
    if flat.size == 0 or flat.size % columns:
        raise DataError(f"the text holds {flat.size} numbers, which are not rows of {columns}")
    return flat.reshape(-1, columns)


def edges(text: bytes) -> npt.NDArray[np.int64]:
    """The edges of a list or MatrixMarket file as they stand, ``[2, L]``; the smallest id becomes 0."""
    if text.startswith(b"%%MatrixMarket"):
        # the first line that is no comment holds the shape: rows, columns, entries
        text = _COMMENT.sub(b"", text).lstrip().partition(b"\n")[2]
    pairs = numbers(text, 2).T
    zero_based: npt.NDArray[np.int64] = pairs - pairs.min()
    return zero_based


def edge_digest(text: bytes) -> str:
    """The sha256 of the undirected graph in the text, whatever order, direction or format it is written in.

    Hashed are the distinct edges ``u < v`` without self-loops, sorted, as little-endian int64 ``[2, E]``.
    """
    rows, cols = edges(text)
    low, high = np.minimum(rows, cols), np.maximum(rows, cols)
    num_nodes = high.max() + 1
    keys = np.unique((low * num_nodes + high)[low < high])
    return hashlib.sha256(np.stack(np.divmod(keys, num_nodes)).astype("<i8").tobytes()).hexdigest()
