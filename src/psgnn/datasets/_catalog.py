"""What datasets there are: names, counts, licences, options and files.

Nothing heavy is imported, so ``psgnn datasets`` lists them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from psgnn.datasets import _benchmark_files as benchmarks
from psgnn.datasets import _files as files
from psgnn.datasets._files import DataFile
from psgnn.errors import InputError, unknown_name


@dataclass(frozen=True)
class Option:
    """An option of a dataset: its default, and what else it may be."""

    default: int | bool | str
    minimum: int = 1
    choices: tuple[str, ...] = ()

    def check(self, dataset: str, name: str, value: Any) -> int | bool | str:
        """The value, or an :class:`InputError` that says what it may be."""
        found = f"found {value!r}"
        if isinstance(self.default, bool):
            if type(value).__name__ in ("bool", "bool_"):  # also NumPy's, which is not imported for this
                return bool(value)
            raise InputError(f"option {name} of dataset '{dataset}' must be True or False, {found}")
        if isinstance(self.default, int):
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if whole and value >= self.minimum:
                return int(value)
            raise InputError(
                f"option {name} of dataset '{dataset}' must be a whole number >= {self.minimum}, {found}"
            )
        if value not in self.choices:
            raise unknown_name(f"{name} of dataset '{dataset}'", str(value), self.choices)
        return str(value)


@dataclass(frozen=True)
class Dataset:
    """A row of the catalogue; counts are of the whole dataset with its default options.

    Without its ``files`` a dataset cannot be loaded, without its ``extras`` it lacks what they are named for.
    """

    name: str
    graphs: int
    nodes: int
    edges: int
    features: int = 0
    classes: int = 0
    licence: str = "not stated"
    source: str = ""
    files: Mapping[str, DataFile] = field(default_factory=dict)
    extras: Mapping[str, DataFile] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    build: str = (
        ""  # ``module:function``, which gets the row and the root if there are files, then the options
    )

    @property
    def kind(self) -> str:
        """``synthetic`` or ``real``."""
        return "real" if self.files else "synthetic"

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Every option with its value: the one given, checked, or else the default."""
        for name in options:
            if not self.options:
                raise InputError(f"dataset '{self.name}' takes no options, found '{name}'")
            if name not in self.options:
                raise unknown_name(f"option of dataset '{self.name}'", name, self.options)
        return {
            name: option.check(self.name, name, options.get(name, option.default))
            for name, option in self.options.items()
        }


def _planetoid(name: str, nodes: int, edges: int, features: int, classes: int) -> Dataset:
    return Dataset(
        name,
        graphs=1,
        nodes=nodes,
        edges=edges,
        features=features,
        classes=classes,
        licence="MIT (repository), data not stated",
        source=files.PLANETOID_PAGE,
        files=files.PLANETOID[name],
        extras={"features": files.PUBMED_FEATURES} if name == "pubmed" else {},
        build="psgnn.datasets._real:planetoid",
    )


def _single(name: str, nodes: int, edges: int, file: DataFile) -> Dataset:
    """A graph of the collections ``seal`` and ``scale``."""
    build = f"psgnn.datasets._real:{name.partition('/')[0]}"
    return Dataset(name, 1, nodes, edges, source=file.page, files={"edges": file}, build=build)


_BUILT_IN = "MIT (built by psgnn)"
_ROWS = (
    Dataset(
        "communities",
        build="psgnn.datasets._synthetic:communities",
        graphs=1,
        nodes=400,
        edges=3800,
        classes=20,
        licence=_BUILT_IN,
        options={"communities": Option(20), "size": Option(20, minimum=2)},
    ),
    Dataset(
        "grid",
        build="psgnn.datasets._synthetic:grid",
        graphs=1,
        nodes=400,
        edges=760,
        licence=_BUILT_IN,
        options={"rows": Option(20), "cols": Option(20)},
    ),
    Dataset(
        "erdos-renyi",
        build="psgnn.datasets._synthetic:erdos_renyi",
        graphs=1,
        nodes=500,
        edges=2000,
        licence=_BUILT_IN,
        options={"nodes": Option(500, minimum=2), "degree": Option(8), "seed": Option(0, minimum=0)},
    ),
    Dataset(
        "bio-modules",
        build="psgnn.datasets._synthetic:bio_modules",
        graphs=40,
        nodes=400,
        edges=753,
        features=2,
        classes=2,
        licence=_BUILT_IN,
        source="https://doi.org/10.1371/journal.pcbi.1000719",
        options={"networks": Option(40), "join": Option(1)},
    ),
    _planetoid("cora", 2708, 5278, 1433, 7),
    _planetoid("citeseer", 3327, 4552, 3703, 6),
    _planetoid("pubmed", 19717, 44324, 500, 3),
    Dataset(
        "email",
        build="psgnn.datasets._real:email",
        graphs=7,
        nodes=920,
        edges=7201,
        classes=41,
        source=files.EMAIL_PAGE,
        files=files.EMAIL,
    ),
    Dataset(
        "protein",
        build="psgnn.datasets._real:protein",
        graphs=1113,
        nodes=43471,
        edges=81044,
        features=29,
        classes=3,
        source=files.PROTEIN_PAGE,
        files=files.PROTEIN,
        options={"attributes": Option(True)},
    ),
    *(
        _single(f"seal/{name}", nodes, edges, files.SEAL[name])
        for name, nodes, edges in (
            ("USAir", 332, 2126),
            ("Celegans", 297, 2148),
            ("Power", 4941, 6594),
            ("Router", 5022, 6258),
            ("facebook", 4039, 88234),
            ("arxiv", 18772, 198050),
            ("PPI_subgraph", 3890, 37845),
            ("Wikipedia", 4777, 92295),
        )
    ),
    *(
        _single(f"scale/{name}", nodes, edges, files.SCALE[name])
        for name, nodes, edges in (
            ("web-NotreDame", 325729, 1090108),
            ("road-usroads", 129164, 165435),
            ("road-euroroad", 1174, 1417),
            ("soc-slashdot0902", 82168, 504230),
            ("p2p-Gnutella31", 62586, 147892),
            ("soc-brightkite", 56739, 212945),
            ("email-Enron", 36692, 183831),
        )
    ),
    *(
        Dataset(
            name,
            graphs=1,
            nodes=nodes,
            edges=edges,
            licence=licence,
            source=files.KINDS[name]["edges"].page,
            files=files.KINDS[name],
            build=f"psgnn.datasets._real:{name.replace('-', '_')}",
        )
        for name, nodes, edges, licence in (
            ("movielens-100k", 2625, 100000, "research use, no redistribution"),
            ("bitcoin-otc", 5881, 35592, "not stated"),
            ("college-messages", 1899, 20296, "not stated"),
            ("openflights", 3257, 37041, "ODbL"),
            ("oldenburg-roads", 6105, 7029, "not stated"),
        )
    ),
    *(
        Dataset(
            f"seal-splits/{name}",
            graphs=1,
            nodes=nodes,
            edges=edges,
            source=benchmarks.WALKPOOL_PAGE,
            files=benchmarks.SEAL_SPLITS[name],
            options={"split": Option(1)},
            build="psgnn.datasets._benchmarks:seal_splits",
        )
        for name, nodes, edges in (
            ("USAir", 332, 1914),
            ("Celegans", 297, 1934),
            ("Power", 4941, 5935),
            ("Router", 5022, 5633),
            ("NS", 1589, 2468),
            ("PB", 1222, 15043),
            ("Yeast", 2375, 10524),
            ("Ecoli", 1805, 13194),
        )
    ),
    Dataset(
        "heart/citeseer",
        graphs=1,
        nodes=3327,
        edges=3870,
        features=3703,
        classes=6,
        source=benchmarks.HEART_PAGE,
        files={**benchmarks.HEART, **files.PLANETOID["citeseer"]},
        options={"setting": Option("heart", choices=("heart", "existing"))},
        build="psgnn.datasets._benchmarks:heart",
    ),
    Dataset(
        "ogbl-ddi",
        build="psgnn.datasets._real:ogbl_ddi",
        graphs=1,
        nodes=4267,
        edges=1067911,
        licence="CC-0 (as listed by OGB)",
        source=files.DDI_PAGE,
        files=files.DDI,
        extras={"names": files.DDI_NAMES},
    ),
    *(
        Dataset(
            f"ogbl-{name}",
            build=f"psgnn.datasets._benchmarks:{build}",
            graphs=1,
            nodes=nodes,
            edges=edges,
            features=features,
            licence="see OGB",
            source=benchmarks.OGB[name]["train"].page,
            files=benchmarks.OGB[name],
            extras={"features": benchmarks.OGB_NODE_FEATURES[name]},
        )
        for name, build, nodes, edges, features in (
            ("collab", "ogb_links", 235868, 1179052, 128),
            ("ppa", "ogb_links", 576289, 21231931, 58),
            ("citation2", "ogb_citations", 2927963, 30387995, 128),
        )
    ),
)
CATALOG: dict[str, Dataset] = {row.name: row for row in _ROWS}


def find_dataset(name: str) -> Dataset:
    """The row of that name, in any case; or an :class:`InputError` with the nearest name."""
    by_name = {row.name.lower(): row for row in CATALOG.values()}
    row = by_name.get(str(name).lower())
    if row is None:
        raise unknown_name("dataset", str(name), CATALOG)
    return row
