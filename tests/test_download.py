"""Finding, downloading and checking files, with made files on a local server."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psgnn.datasets import _download as download
from psgnn.datasets._catalog import CATALOG, Copy, DataFile
from psgnn.datasets._download import MissingFileError, data_folders, edge_digest, numbers, progress_bar, read
from psgnn.errors import DataError

CONTENT = b"0 1\n1 2\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def made(url: str, content: bytes = CONTENT, path: str = "made/edges.txt") -> DataFile:
    return DataFile((Copy(path, sha256=sha256(content), size=len(content), url=url),), "https://a.page")


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no other data folder."""
    monkeypatch.delenv("PSGNN_DATA", raising=False)
    monkeypatch.setenv("PSGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Server(http.server.ThreadingHTTPServer):
    """Serves ``content`` at every address; ``announced`` is the length it promises."""

    daemon_threads = True
    content = CONTENT
    announced: int | None = None
    requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/edges.txt"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.path == "/gone":
            self.send_error(404)
            return
        self.send_response(200)
        length = self.server.announced
        self.send_header("Content-Length", str(len(self.server.content) if length is None else length))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_download_is_checked_and_kept(cache: Path, server: Server) -> None:
    assert read(made(server.url)) == CONTENT
    assert files_in(cache) == [cache / "made", cache / "made/edges.txt"]
    assert (cache / "made/edges.txt").read_bytes() == CONTENT
    assert read(made(server.url)) == CONTENT
    assert server.requests == 1


def test_a_download_goes_to_root_where_one_is_given(cache: Path, server: Server, tmp_path: Path) -> None:
    read(made(server.url), tmp_path / "root")
    assert (tmp_path / "root/made/edges.txt").read_bytes() == CONTENT
    assert not cache.exists()


def test_a_wrong_checksum_leaves_nothing(cache: Path, server: Server) -> None:
    server.content = b"another file"
    with pytest.raises(DataError) as error:
        read(made(server.url))
    for part in (sha256(CONTENT), sha256(b"another file"), server.url, "made/edges.txt"):
        assert part in str(error.value)
    assert not cache.exists()


def test_a_truncated_download_leaves_nothing(cache: Path, server: Server) -> None:
    server.announced = len(CONTENT) + 10
    with pytest.raises(DataError, match="ended after 8 of 18 bytes"):
        read(made(server.url))
    assert not cache.exists()


def test_an_endless_download_is_cut(cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 4)
    with pytest.raises(DataError, match="sends more than 4 bytes"):
        read(made(server.url))
    assert not cache.exists()


def test_an_interrupted_download_leaves_nothing(
    cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    (cache / "kept").touch()

    def interrupt(*_: object) -> None:
        assert list(cache.rglob("*.part"))  # it is there while the download runs
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "progress_bar", interrupt)
    with pytest.raises(KeyboardInterrupt):
        read(made(server.url))
    assert files_in(cache) == [cache / "kept"]


def test_no_network(cache: Path, server: Server) -> None:
    for url, reason in ((server.url.replace("edges.txt", "gone"), "Not Found"), ("http://127.0.0.1:9/x", "")):
        with pytest.raises(MissingFileError) as error:
            read(made(url), timeout=2)
        message = str(error.value)
        assert f"cannot download {url} (" in message
        assert reason in message
        assert f"get it from https://a.page and put it at {cache / 'made/edges.txt'}" in message
        assert "\n" not in message
    assert not cache.exists()


def test_a_file_without_an_address(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as error:
        read(made(""), tmp_path / "root")
    assert f"made/edges.txt is in none of {tmp_path / 'root'}, {cache}, and no address" in str(error.value)
    assert f"(source: https://a.page) and put it at {tmp_path / 'root/made/edges.txt'}" in str(error.value)


def test_a_store_that_cannot_be_written(cache: Path, server: Server) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot download"):
        read(made(server.url))


def test_folders_are_searched_in_order(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSGNN_DATA", str(tmp_path / "data"))
    folders = [tmp_path / "root", tmp_path / "data", cache]
    assert data_folders(tmp_path / "root") == folders
    file = made("")
    for folder in reversed(folders):
        (folder / "made").mkdir(parents=True)
        (folder / "made/edges.txt").write_bytes(CONTENT)
        assert download.locate(file, tmp_path / "root") == (folder / "made/edges.txt", file.copies[0])
    # a wrong file is an error even where a right one is in the next folder
    (tmp_path / "root/made/edges.txt").write_bytes(b"wrong")
    with pytest.raises(DataError) as error:
        read(file, tmp_path / "root")
    for part in (str(tmp_path / "root/made/edges.txt"), sha256(b"wrong"), sha256(CONTENT)):
        assert part in str(error.value)


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSGNN_CACHE", "/a")
    assert download.cache_folder() == Path("/a")
    monkeypatch.delenv("PSGNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert download.cache_folder() == Path("/b/psgnn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/c")
    assert download.cache_folder() == Path("/c/.cache/psgnn")


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes], mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def member_of(url: str, member: str, content: bytes) -> DataFile:
    alone = Copy(f"made/{member}", sha256=sha256(content))
    archived = Copy("made/all.zip", sha256=sha256(content), url=url, member=f"all/{member}")
    return DataFile((alone, archived), "https://a.page")


def test_members_of_an_archive(cache: Path, server: Server) -> None:
    server.content = zipped({"all/a.txt": b"1\n", "all/b.txt": b"2\n", "../../evil": b"3\n"})
    a, b = member_of(server.url, "a.txt", b"1\n"), member_of(server.url, "b.txt", b"2\n")
    assert [read(file, beside=[a, b]) for file in (a, b)] == [b"1\n", b"2\n"]
    assert server.requests == 1
    assert files_in(cache.parent) == [cache, cache / "made", cache / "made/all.zip"]
    # a file that lies there by itself goes first
    (cache / "made/a.txt").write_bytes(b"wrong")
    with pytest.raises(DataError, match=r"a\.txt has sha256"):
        read(a)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped({"all/a.txt": b"1\n", "all/b.txt": b"wrong"}), "has sha256"),
        (zipped({"all/a.txt": b"1\n"}), "holds no file all/b.txt"),
        (zipped({"all/a.txt": b"1\n", "all/b.txt": b"2\n"})[:-30], "damaged archive"),
        (b"no archive", "damaged archive"),
        (zipped({"all/a.txt": b"1\n", "all/b.txt": bytes(10**6)}), "unfolds to more than"),
    ],
)
def test_an_archive_is_kept_only_if_all_is_right(
    cache: Path, server: Server, archive: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 10**5)
    server.content = archive
    a, b = member_of(server.url, "a.txt", b"1\n"), member_of(server.url, "b.txt", b"2\n")
    with pytest.raises(DataError, match=message):
        read(a, beside=[a, b])
    assert not cache.exists()


MATRIX = b"%%MatrixMarket matrix coordinate pattern symmetric\n% by hand\n3 3 2\n2 1\n3 2\n"


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w"])
def test_a_graph_is_known_by_its_edges(cache: Path, server: Server, mode: str) -> None:
    server.content = tarred({"g/other.txt": b"x", "g/g.mtx": MATRIX}, mode)
    archive = Copy("made/g.tar", url=server.url, member="g/g.mtx", edges_sha256=edge_digest(CONTENT))
    file = DataFile((Copy("made/g.txt.gz", sha256=sha256(CONTENT)), archive), "https://a.page")
    assert read(file) == MATRIX
    assert (cache / "made/g.tar").exists()


def test_another_encoding_under_the_same_name(cache: Path) -> None:
    directed = gzip.compress(b"# from to\r\n1\t0\r\n2\t1\r\n1\t2\r\n2\t2\r\n")
    pinned = Copy("g.txt.gz", sha256=sha256(b"the prepared file"), edges_sha256=edge_digest(CONTENT))
    file = DataFile((pinned,), "https://a.page")
    cache.mkdir()
    (cache / "g.txt.gz").write_bytes(directed)
    assert numbers(read(file), 2).tolist() == [[1, 0], [2, 1], [1, 2], [2, 2]]
    for wrong in (
        gzip.compress(b"0 1\n0 2\n"),
        directed[:-9],
        gzip.compress(b"<html>"),
        gzip.compress(b"0 1 2"),
    ):
        (cache / "g.txt.gz").write_bytes(wrong)
        with pytest.raises(DataError) as error:
            read(file)
        assert sha256(wrong) in str(error.value)
        assert pinned.sha256 in str(error.value)
        assert "\n" not in str(error.value)


def test_a_git_blob_id_is_a_checksum(cache: Path) -> None:
    # what `git hash-object` says of a file that holds "hello\n"
    blob = Copy("g.txt", git_sha1="ce013625030ba8dba906f756967f9e9ca394464a")
    cache.mkdir()
    (cache / "g.txt").write_bytes(b"hello\n")
    assert read(DataFile((blob,), "")) == b"hello\n"
    (cache / "g.txt").write_bytes(b"hello")
    with pytest.raises(DataError, match="has git sha1"):
        read(DataFile((blob,), ""))


@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1),
    seed=st.integers(0, 99),
    base=st.integers(0, 1),
)
def test_edge_digest_ignores_order_direction_and_base(
    edges: list[tuple[int, int]], seed: int, base: int
) -> None:
    edges = [(0, 1), *edges]
    rng = np.random.default_rng(seed)
    shuffled = [edges[i] for i in rng.permutation(len(edges))] + [edges[0], (0, 0)]
    turned = [pair[::-1] if rng.random() < 0.5 else pair for pair in shuffled]
    plain = "".join(f"{u} {v}\n" for u, v in edges).encode()
    other = "".join(f"{u + base},\t{v + base}\r\n" for u, v in turned).encode()
    assert edge_digest(plain) == edge_digest(b"% comment 1 2\n# another\n" + other)
    missing = next((u, v) for u in range(10) for v in range(u) if {(u, v), (v, u)}.isdisjoint(edges))
    assert edge_digest(plain) != edge_digest(plain + b"%d %d\n" % missing)


@pytest.mark.parametrize("text", [b"", b"# nothing\n", b"0 1 2\n", b"0 1\n1 x\n", b"0 1\n0.5 1\n"])
def test_text_that_is_no_table_of_pairs(text: bytes) -> None:
    with pytest.raises(DataError):
        numbers(text, 2)


def test_every_file_is_pinned_and_can_be_had() -> None:
    names = ("cora", "citeseer", "pubmed", "email", "protein", "heart/citeseer")
    rows = [row for row in CATALOG.values() if row.name in names or row.name.startswith(("seal/", "scale/"))]
    assert len(rows) == len(names) + 15
    features = CATALOG["pubmed"].extras["features"]
    for file in (file for row in rows for file in (*row.files.values(), *row.extras.values())):
        assert any(copy.url for copy in file.copies)
        for copy in file.copies:
            sums = [copy.sha256, copy.edges_sha256, copy.git_sha1]
            assert sorted(map(len, filter(None, sums))) in ([64], [64, 64], [40])
            assert copy.sha256 or copy.edges_sha256 or copy == features.copies[0]
    assert all(not copy.url for file in CATALOG["ogbl-ddi"].files.values() for copy in file.copies)


def test_progress_goes_to_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("quiet", 2) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("shown", 2) as advance:
        advance(2)
    out, err = capsys.readouterr()
    assert out == ""
    assert "shown" in err
