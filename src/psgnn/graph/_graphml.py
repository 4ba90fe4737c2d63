"""Graphs from GraphML."""

from __future__ import annotations

import math
from pathlib import Path
from xml.parsers import expat

from psgnn.errors import InputError
from psgnn.graph._bytes import decoding, read_bytes
from psgnn.graph._edges import Edges, declared_edges


class _GraphmlParser:
    """Collects the ids of nodes and edges; refuses a DTD, so that no entity can expand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: list[str] = []
        self.edges: list[tuple[str, str]] = []
        self.weight_keys: set[str] = set()
        self.weighted = False
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
            elif tag == "key" and attributes.get("attr.name") == "weight":
                self.weight_keys.add(attributes["id"])
            elif tag == "data" and attributes["key"] in self.weight_keys:
                self.weight, self.weighted = [], True
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


def read_graphml(path: Path) -> Edges:
    """Read the nodes and edges of a GraphML file."""
    parser = _GraphmlParser(path)
    with decoding(path, "GraphML"):
        parser.expat.Parse(read_bytes(path), True)
    if not parser.nodes:
        raise InputError(f"{path} is XML without a <node>; expected GraphML")
    return declared_edges(str(path), "GraphML", parser.nodes, parser.edges, ["1"] * parser.weighted)
