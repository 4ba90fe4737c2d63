"""Which runs an experiment needs. A run is a row, a method and a seed; its id is a hash of all that matters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psgnn.datasets._catalog import find_dataset
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import LARGE_NODES
from psgnn_lab.manifest import Manifest, MethodSpec, Row

# Of the way in which runs are made and measured; raised when old records no longer say what new ones would.
PROTOCOL = 1
# Options that a dataset no longer has, at the values that it now always has, so that the ids of old runs stay.
FORMER_OPTIONS = {"bio-modules": {"generations": 2000, "crossover": "horizontal", "seed": 0}}


@dataclass(frozen=True)
class Run:
    """One measurement."""

    row: Row
    method: MethodSpec
    seed: int

    @property
    def id(self) -> str:
        """Equal ids mean the same measurement; titles, goals and published values play no part."""
        row, dataset = self.row, find_dataset(self.row.dataset)
        large = dataset.graphs == 1 and dataset.nodes >= LARGE_NODES
        features = dataset.features if row.features else 0
        identity = {
            "protocol": PROTOCOL,
            "dataset": [
                dataset.name,
                {**FORMER_OPTIONS.get(dataset.name, {}), **dataset.settings(row.dataset_options)},
            ],
            "features": row.features,
            "task": [row.task, row.task_options, row.official],
            "method": [
                self.method.kind,
                self.method.of,
                settings_of(self.method, row.task, large=large, features=features),
            ],
            "seed": self.seed,
        }
        if self.method.trace:  # not otherwise, so that the ids of old runs stay
            identity["trace"] = True
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.row.name}, {self.method.name}, seed {self.seed}"


def settings_of(method: MethodSpec, task: str, *, large: bool = False, features: int = 0) -> dict[str, Any]:
    """The settings of a method, with those of the preset for a model, of graphs of this size and with such features.

    Only what differs from the defaults of `ModelConfig` counts: a new setting leaves the ids of old runs alone.
    """
    from psgnn.scoring._network import weights_digest

    if method.kind == "pretrained":
        from psgnn.positions._context import USE

        # Weights that are trained anew without a family follow from what they are fed with.
        fed = {**method.options, "weights": weights_digest(method.of)}
        return fed if "without" in method.options else {**fed, "use": USE}
    if method.kind != "model":
        return method.options
    from psgnn.models._config import make_config

    # The number of features follows from the data, and the seed is in the id by itself.
    config = make_config(method.of, task, max(features, 1), method.preset, 0, large=large, **method.options)
    settings = config.model_dump(mode="json", exclude_defaults=True) | {"in_channels": 1}
    if settings.get("anchors") == "log^2":
        settings["anchors"] = "log2"  # the old spelling, so that the ids of old runs stay
    if config.init == "pretrained":
        settings["weights"] = weights_digest(f"best-{task}")
    return settings


def plan(
    manifest: Manifest,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    methods: Sequence[str] = (),
    shard: tuple[int, int] = (1, 1),
) -> list[Run]:
    """The runs of an experiment, all rows and methods of a seed before the next seed.

    Args:
        manifest: the experiment.
        seeds: The most seeds of every row and method.
        only: names of rows; all if empty.
        methods: names of methods, or of groups of them; all if empty.
        shard: the part ``i`` of ``n``. Parts share no row and method, so they share no record file.
    """
    from psgnn_lab.trials import final_cells  # of which every one is a run

    for name in only:
        manifest.row(name)
    cells = _cells(manifest)
    for name in methods:
        if name not in method_names(manifest):
            raise unknown_name("method", name, method_names(manifest))
    wanted = set(methods).union(
        spec.name for name in methods if name in manifest.methods for spec in manifest.expand(name)
    )
    cells = [
        (row, method)
        for row, method in cells
        if (not only or row.name in only) and (not methods or method.name in wanted)
    ]
    part, parts = shard
    # By method first, so that every part gets its share of the slow methods.
    mine = {(row.name, method.name) for row, method in sorted(cells, key=_by_method)[part - 1 :: parts]}
    cells = [(row, method) for row, method in cells if (row.name, method.name) in mine]
    cells += final_cells(manifest, only, methods, shard)
    return [
        Run(row.of_seed(i), method, manifest.first_seed + i)
        for i in range(max((count(row, method, seeds) for row, method in cells), default=0))
        for row, method in cells
        if i < count(row, method, seeds)
    ]


def method_names(manifest: Manifest) -> set[str]:
    """The methods, and groups of them, that a plan can be asked for."""
    found = {method.name for _, method in _cells(manifest)} | set(manifest.methods)
    return found | (set() if manifest.search is None else set(manifest.search.names))


def having(
    manifests: Sequence[Manifest], only: Sequence[str], methods: Sequence[str]
) -> list[tuple[Manifest, list[str], list[str]]]:
    """Each experiment with those of the names that it has; where it has none of them it is left out."""
    rows = {manifest.name: {row.name for row in manifest.rows} for manifest in manifests}
    known = {manifest.name: method_names(manifest) for manifest in manifests}
    for kind, asked, names in (("row", only, rows), ("method", methods, known)):
        every = set().union(*names.values())
        for name in asked:
            if name not in every:
                raise unknown_name(kind, name, every)
    found = []
    for manifest in manifests:
        own = [name for name in only if name in rows[manifest.name]]
        how = [name for name in methods if name in known[manifest.name]]
        if (own or not only) and (how or not methods):
            found.append((manifest, own, how))
    return found


def _by_method(cell: tuple[Row, MethodSpec]) -> tuple[str, str]:
    return cell[1].name, cell[0].name


def count(row: Row, method: MethodSpec, seeds: int | None = None) -> int:
    """Number of seeds of a method on a row."""
    return min(method.seeds, row.seeds or method.seeds, seeds or method.seeds)


def _cells(manifest: Manifest) -> list[tuple[Row, MethodSpec]]:
    """Rows and methods that some section or figure shows, row by row."""
    groups = [(section.rows, manifest.section_methods(section)) for section in manifest.sections]
    for figure in manifest.figures:
        rows, methods = figure.cells
        if figure.of is None:
            groups.append((rows, [spec for name in methods for spec in manifest.expand(name)]))
    names = {method.name for _, listed in groups for method in listed}
    found: dict[tuple[str, str], tuple[Row, MethodSpec]] = {}
    for row in manifest.rows:
        for skipped in row.skip:
            if skipped not in names:
                raise unknown_name(f"method that row '{row.name}' skips", skipped, names)
        for rows, listed in groups:
            if row.name in rows:
                for method in listed:
                    if method.name not in row.skip:
                        found.setdefault((row.name, method.name), (row, method))
    return list(found.values())


def parse_shard(text: str) -> tuple[int, int]:
    """``2/3`` as the second of three parts."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise InputError(f"--shard takes i/n with 1 <= i <= n, such as 1/2, found '{text}'")
    return int(part), int(parts)
