"""Datasets by name: synthetic graphs, simulated gene networks, and published graphs.

>>> from psgnn.datasets import load_dataset
>>> [graph] = load_dataset("grid", rows=3, cols=4)
>>> graph.num_nodes
12
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

from psgnn.datasets._catalog import CATALOG, Dataset, find_dataset

if TYPE_CHECKING:
    from psgnn.datasets._download import Root
    from psgnn.graph import Graph

__all__ = ["dataset_names", "is_dataset", "list_datasets", "load_dataset"]


def dataset_names() -> list[str]:
    """The names that :func:`load_dataset` takes."""
    return list(CATALOG)


def is_dataset(name: str) -> bool:
    """Whether there is a dataset of that name, in upper or lower case."""
    return name.lower() in map(str.lower, CATALOG)


def load_dataset(name: str, root: Root = None, **options: Any) -> list[Graph]:
    """Load the graphs of a dataset, with names, and with features ``x`` and classes ``y`` where it has them.

    Args:
        name: One of `dataset_names`.
        root: A folder with the files. They are also looked for in ``$PSGNN_DATA`` and in the user's cache. Missing
            files are downloaded.
        options: Options of the dataset, such as ``size=64``; `list_datasets` has them.
    """
    from psgnn.datasets._download import data_folders

    row = find_dataset(name)
    settings = row.settings(options)
    data_folders(root)  # complains about a root that is not a folder, even where no file is needed
    module, function = row.build.split(":")
    build = getattr(importlib.import_module(module), function)
    graphs: list[Graph] = build(row, root, **settings) if row.files else build(**settings)
    return graphs


def list_datasets(root: Root = None) -> list[dict[str, Any]]:
    """A dict for each dataset: its name, kind, counts, options with their defaults, place, licence, source.

    ``features`` and ``classes`` are None where there are none; ``where`` is the folder that holds the files.
    """
    return [
        {
            "name": row.name,
            "kind": row.kind,
            "graphs": row.graphs,
            "nodes": row.nodes,
            "edges": row.edges,
            "features": row.features or None,
            "classes": row.classes or None,
            "options": {name: option.default for name, option in row.options.items()},
            "where": _where(row, root),
            "licence": row.licence,
            "source": row.source,
        }
        for row in CATALOG.values()
    ]


def _where(row: Dataset, root: Root) -> str:
    if not row.files:
        return "built in"
    from psgnn.datasets._download import locate

    found = [locate(file, root) for file in row.files.values()]
    here = [place[0].parent for place in found if place]
    if len(here) == len(found):
        lacking = [name for name, file in row.extras.items() if not locate(file, root)]
        return str(here[0]) + (f" (without {', '.join(lacking)})" if lacking else "")
    missing = [file for file, place in zip(row.files.values(), found, strict=True) if not place]
    sources = [
        next((copy for copy in file.copies if copy.url and not copy.unchecked), None) for file in missing
    ]
    if None in sources:
        return f"not here: see {row.source}"
    sizes = {copy.url: copy.size for copy in sources if copy}
    amount = f"{math.ceil(sum(sizes.values()) / 1e5) / 10} MB" if all(sizes.values()) else "on first use"
    return f"not here: downloads {amount}"
