"""Anchors that a person names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._names import distinct_ids


def named_anchors(anchors: Iterable[str | int], node_names: Sequence[Sequence[str]]) -> IntArray:
    """The ids of anchors that are given by name or id, int64 ``[K]``, in one graph with these names of nodes."""
    if len(node_names) != 1:
        raise InputError(f"anchors by name go with one graph, found {len(node_names)}; leave them out")
    return distinct_ids(anchors, node_names[0], "the list of anchors")
