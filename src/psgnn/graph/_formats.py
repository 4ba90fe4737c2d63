"""Whole graphs from files: every format becomes ``Edges`` over numbered nodes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.graph._bytes import base_name, decoded, decoding, read_bytes
from psgnn.graph._edges import Edges, declared_edges, edges_of
from psgnn.graph._matrices import read_mat, read_mtx, read_npz
from psgnn.graph._options import ReadOptions, refuse_columns
from psgnn.graph._tables import read_table

TOKEN = re.compile(rb'\s+|#[^\n]*|"[^"]*"|[\[\]]|[^\s\[\]"]+|"')
WEIGHT_KEYS = ("weight", "value")


def read_gml(path: Path) -> Edges:
    """Read the nodes and edges of a GML file. Names are the labels if each node has one of its own, or else the ids."""
    ids: list[str] = []
    labels: list[str] = []
    edges: list[tuple[str, str]] = []
    weights: list[str] = []
    directed: bool | None = None
    for line, kind, values in _blocks(path):
        try:
            if kind == "graph":
                directed = values["directed"] == "1" if "directed" in values else None
            elif kind == "node":
                ids.append(values["id"])
                labels.append(values.get("label", ""))
            else:
                edges.append((values["source"], values["target"]))
                weights += [values[key] for key in WEIGHT_KEYS if key in values]
        except KeyError as missing:
            raise InputError(f"{path}, line {line}: {kind} has no {missing}; add it") from None
    named = all(labels) and len(set(labels)) == len(labels)
    return declared_edges(str(path), "GML", ids, edges, weights, labels if named else None, directed)


def _blocks(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """The line, kind and plain values of every node and edge, and of the graph."""
    text = decoded(path)
    stack: list[tuple[str, int, dict[str, str]]] = []
    key, line = "", 1
    for token in TOKEN.finditer(text):
        word = token[0]
        if not word.isspace() and not word.startswith(b"#"):
            if word == b"]":
                if not stack or key:
                    raise InputError(f"{path}, line {line}: a bracket closes nothing; is this GML?")
                kind, start, values = stack.pop()
                if (kind in ("node", "edge") and len(stack) == 1) or (kind == "graph" and not stack):
                    yield start, kind, values
            elif word == b"[":
                if not key:
                    raise InputError(f"{path}, line {line}: a bracket without a name; is this GML?")
                stack.append((key, line, {}))
                key = ""
            elif not key:
                key = word.decode().lower()
            else:
                if stack:
                    stack[-1][2].setdefault(key, word.decode().strip('"'))
                key = ""
        line += word.count(b"\n")
    if stack or key:
        raise InputError(f"{path} ends inside a block; is it cut, or no GML?")


class _GraphmlParser:
    """Collects the ids of nodes and edges; refuses a DTD, so that no entity can expand."""

    def __init__(self, path: Path) -> None:
        from xml.parsers import expat

        self.path = path
        self.nodes: list[str] = []
        self.edges: list[tuple[str, str]] = []
        self.weight_keys: set[str] = set()
        self.weights: list[str] = []
        self.directed: bool | None = None
        self.weight: list[str] | None = None  # the text of the one that is being read
        self.expat = expat.ParserCreate(namespace_separator=" ")
        self.expat.StartDoctypeDeclHandler = self.doctype
        self.expat.StartElementHandler = self.start
        self.expat.CharacterDataHandler = self.characters
        self.expat.EndElementHandler = self.end

    def error(self, reason: str) -> InputError:
        return InputError(f"{self.path}, line {self.expat.CurrentLineNumber}: {reason}")

    def doctype(self, *_: object) -> None:
        raise self.error("GraphML with a DOCTYPE is refused, entities could expand without end; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]  # without its namespace
        try:
            if tag == "node":
                self.nodes.append(attributes["id"])
            elif tag == "edge":
                self.edges.append((attributes["source"], attributes["target"]))
            elif tag == "graph":
                default = attributes.get("edgedefault")
                self.directed = {"directed": True, "undirected": False}.get(str(default))
            elif tag == "key" and attributes.get("attr.name") == "weight":
                self.weight_keys.add(attributes["id"])
            elif tag == "data" and attributes["key"] in self.weight_keys:
                self.weight = []
            elif tag == "hyperedge":
                raise self.error("hyperedges are not supported; write edges between two nodes")
        except KeyError as missing:
            raise self.error(f"<{tag}> has no {missing}; add it") from None

    def characters(self, text: str) -> None:
        if self.weight is not None:
            self.weight.append(text)

    def end(self, _: str) -> None:
        if self.weight is None:
            return
        text, self.weight = "".join(self.weight), None
        try:
            finite = math.isfinite(float(text))
        except ValueError:
            finite = False
        if not finite:
            raise self.error(f"the weight {text[:40]!r} is not a finite number; correct or remove it")
        self.weights.append(text)


def read_graphml(path: Path) -> Edges:
    """Read the nodes and edges of a GraphML file."""
    parser = _GraphmlParser(path)
    with decoding(path, "GraphML"):
        parser.expat.Parse(read_bytes(path), True)
    if not parser.nodes:
        raise InputError(f"{path} is XML without a <node>; expected GraphML")
    return declared_edges(
        str(path), "GraphML", parser.nodes, parser.edges, parser.weights, directed=parser.directed
    )


FORM = '{"nodes": [{"id": "a"}, ...], "links": [{"source": "a", "target": "b"}, ...]}'


def read_nodelink(path: Path) -> Edges:
    """Read the nodes and links (or edges) of a JSON document."""
    try:
        document = json.loads(decoded(path))
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; expected {FORM}") from None
    except ValueError as error:
        raise InputError(f"{path} cannot be read as JSON: {str(error)[:160]}; expected {FORM}") from None
    nodes = document.get("nodes") if isinstance(document, dict) else None
    links = document.get("links", document.get("edges")) if isinstance(document, dict) else None
    if not isinstance(nodes, list) or not isinstance(links, list):
        raise InputError(f"{path} is JSON of another form; expected {FORM}")
    ids = [_name(path, "node", i, node, "id") for i, node in enumerate(nodes)]
    edges, weights = [], []
    for i, link in enumerate(links):
        edges.append((_name(path, "link", i, link, "source"), _name(path, "link", i, link, "target")))
        if isinstance(link.get("weight"), (str, int, float)):
            weights.append(str(link["weight"]))
        elif link.get("weight") is not None:
            raise InputError(f"{path}, link {i}: the weight is not a finite number; correct or remove it")
    directed = document.get("directed")
    known = directed if isinstance(directed, bool) else None
    return declared_edges(str(path), "node-link JSON", ids, edges, weights, directed=known)


def _name(path: Path, kind: str, place: int, item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise InputError(f"{path}, {kind} {place}: expected a name or a number under '{key}'; correct it")
    return str(value)


def read_edges(path: Path, how: ReadOptions) -> Edges:
    """Read a file in the format of its suffix; an unknown suffix is taken for a text edge list."""
    suffix = Path(base_name(path)).suffix
    readers: dict[str, Callable[[Path], Edges]] = {
        ".npz": read_npz,
        ".mat": read_mat,
        ".mtx": read_mtx,
        ".graphml": read_graphml,
        ".gml": read_gml,
        ".json": read_nodelink,
    }
    if suffix not in readers:
        return edges_of(read_table(path, edges=True, how=how), how)
    refuse_columns(str(path), how)
    if how.header is not None:
        raise InputError(f"{path} is not a table of edges; --header and --no-header go with text files")
    return readers[suffix](path)
