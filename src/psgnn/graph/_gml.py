"""Graphs from GML: ``graph [ node [ id 1 label "anna" ] edge [ source 1 target 2 ] ]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from psgnn.errors import InputError
from psgnn.graph._bytes import decoded
from psgnn.graph._edges import Edges, declared_edges

TOKEN = re.compile(rb'\s+|#[^\n]*|"[^"]*"|[\[\]]|[^\s\[\]"]+|"')
WEIGHT_KEYS = ("weight", "value")


def read_gml(path: Path) -> Edges:
    """Read the nodes and edges of a GML file. Names are the labels if each node has one of its own, or else the ids."""
    ids: list[str] = []
    labels: list[str] = []
    edges: list[tuple[str, str]] = []
    weights: list[str] = []
    for line, kind, values in _blocks(path):
        try:
            if kind == "node":
                ids.append(values["id"])
                labels.append(values.get("label", ""))
            else:
                edges.append((values["source"], values["target"]))
                weights += [values[key] for key in WEIGHT_KEYS if key in values]
        except KeyError as missing:
            raise InputError(f"{path}, line {line}: {kind} has no {missing}; add it") from None
    named = all(labels) and len(set(labels)) == len(labels)
    return declared_edges(str(path), "GML", ids, edges, weights, labels if named else None)


def _blocks(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """The line, kind and plain values of every node and edge of the graph."""
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
                if kind in ("node", "edge") and len(stack) == 1:
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
