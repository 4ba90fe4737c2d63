"""Graphs from JSON in the node-link form of networkx and D3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.graph._bytes import decoded
from psgnn.graph._edges import Edges, declared_edges

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
    return declared_edges(str(path), "node-link JSON", ids, edges, weights)


def _name(path: Path, kind: str, place: int, item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise InputError(f"{path}, {kind} {place}: expected a name or a number under '{key}'; correct it")
    return str(value)
