"""What an experiment consists of: a TOML file that lists data, methods, seeds and published values.

::

    title = "Accuracy"
    first_seed = 100

    [methods.psgnn]                # a model, a training-free rule, a peer or the oracle
    kind = "model"
    seeds = 10

    [methods.rules]                # one method for every entry of a registry
    expand = "rules"

    [methods.chosen]               # a preset with anchors chosen in these ways
    pickers = ["degree", "farthest-first"]

    [[rows]]                       # what the methods are measured on
    name = "grid-link"
    title = "Grid 20x20, link"
    dataset = "grid"
    task = "link"
    goal = 0.995
    published = [{source = "PSGNN, the paper, Table 1b", value = 0.942}]

    [[sections]]                   # what is shown
    name = "accuracy"
    title = "Accuracy"
    main = "psgnn"
    rows = ["grid-link"]
    methods = ["psgnn", "rules"]

    [[figures]]                    # what is drawn: psgnn_lab.figure_specs
    [search]                       # which settings are tried: psgnn_lab.search_spec
    [goals]                        # what a method was meant to reach: psgnn_lab.goals

Names of rows and methods are those of the record files, so one name has one meaning in all manifests. A manifest with
``base = "accuracy"`` has all rows and methods of that one too, and may change them by naming them again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from psgnn.datasets._catalog import find_dataset
from psgnn.errors import InputError, unknown_name
from psgnn_lab.figure_specs import FigureSpec
from psgnn_lab.goal_spec import Goals
from psgnn_lab.search_spec import Search

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = "experiments"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Seeds = Annotated[int, Field(ge=1)]
Metric = Literal["auc", "auc_pooled", "ap", "mrr", "hits@10", "hits@20", "hits@50", "hits@100"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Published(_Strict):
    """A number that somebody else has reported, and where."""

    source: str
    value: float


class PublishedCell(_Strict):
    """What somebody else has reported for a method on a row: in TOML ``0.942``, ``[0.942, 0.044]`` or ``{...}``."""

    value: float
    sd: float | None = None
    seconds: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        if isinstance(given, float | int):
            return {"value": given}
        if isinstance(given, list) and len(given) == 2:
            return {"value": given[0], "sd": given[1]}
        return given


class Row(_Strict):
    """Data and a question: what methods are measured on."""

    name: Name
    title: str
    dataset: str
    dataset_options: dict[str, int | bool | str] = {}
    split_option: str | None = (
        None  # option of the dataset that is 1 for the first seed, 2 for the next, and so on
    )
    features: bool = True  # False: the node features of the dataset are dropped
    task: Literal["link", "pair"]
    task_options: dict[str, int | float | bool | str] = {}
    official: bool = False  # the split that comes with the dataset, instead of one by the seed
    metric: Metric = "auc"
    seeds: Seeds | None = None  # at most so many, for every method
    skip: tuple[str, ...] = ()  # methods that are too slow or too large here
    goal: float | None = None
    published: tuple[Published, ...] = ()

    def of_seed(self, place: int) -> Row:
        """The row with the data of the seed at this place."""
        if self.split_option is None:
            return self
        return self.model_copy(
            update={"dataset_options": {**self.dataset_options, self.split_option: place + 1}}
        )


class MethodSpec(_Strict):
    """A method of the manifest: a model under a preset, pretrained weights, a rule, a peer or the oracle."""

    name: str
    kind: Literal["model", "pretrained", "rule", "peer", "oracle"]
    of: str  # its name in the registry of its kind
    preset: str = "best"
    options: dict[str, Any] = {}
    seeds: Seeds = 10
    title: str
    complexity: str | None = None  # of choosing its anchors, as somebody has stated it
    trace: bool = False  # its records keep the history of training and the anchors, for figures
    resume: bool = False  # a run takes long: it is on disk until its record is, and may use all cores


class _SingleMethod(_Strict):
    kind: Literal["model", "pretrained", "rule", "peer", "oracle"]
    of: str | None = None
    preset: str = "best"
    options: dict[str, Any] = {}
    seeds: Seeds = 10
    title: str | None = None
    complexity: str | None = None
    trace: bool = False
    resume: bool = False


class _MethodGroup(_Strict):
    expand: Literal["models", "rules", "peers", "ablations"]
    preset: str = "best"
    seeds: Seeds = 10


class _PickerGroup(_Strict):
    """A preset of psgnn with anchors chosen in several ways, and perhaps in several numbers."""

    pickers: tuple[Name, ...] = Field(min_length=1)
    anchors: tuple[int, ...] = ()  # how many; none: as many as the preset says
    preset: str = "learned"
    seeds: Seeds = 10

    def methods(self) -> list[MethodSpec]:
        """``learned-degree`` with the number of the preset, ``learned-degree-16`` with 16 anchors."""
        return [
            MethodSpec(
                name="-".join([self.preset, picker, *map(str, many.values())]),
                kind="model",
                of="psgnn",
                preset=self.preset,
                title=", ".join([picker, *(f"{k} anchors" for k in many.values())]),
                options={"picker": picker, **many},
                seeds=self.seeds,
            )
            for picker in self.pickers
            for many in ([{"anchors": k} for k in self.anchors] or [{}])
        ]


class Section(_Strict):
    """A part of the page: a table per row (of methods, or of numbers of anchors), a matrix, or a line per row."""

    name: Name
    title: str
    text: str = ""
    layout: Literal["rows", "matrix", "lines", "numbers"] = "rows"
    main: str | None = None  # the method that is compared with the best of the others
    baseline: str | None = None  # in a matrix or in lines: the method that the others are compared with
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    digits: int = Field(4, ge=1)
    seconds: bool = False  # in a matrix: the time of a run in every cell
    best_rule: bool = False  # in a matrix: of the rules the best one of every row, in one line
    picking: bool = False  # in a matrix: the stated complexity and the measured time of choosing anchors
    source: str | None = None  # of the published values
    published: dict[str, tuple[PublishedCell, ...]] = {}  # by method, one a row


class Manifest(_Strict):
    """An experiment. ``name`` and ``folder`` come from the path of its file, ``data`` from whoever asks for it."""

    name: str
    folder: Path
    data: Path | None = None  # where datasets are
    title: str
    text: str = ""
    page: str | None = None  # the document that shows it, relative to the folder
    first_seed: int = Field(100, ge=0)
    rows: tuple[Row, ...] = ()
    methods: dict[Name, _PickerGroup | _MethodGroup | _SingleMethod] = {}
    sections: tuple[Section, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    search: Search | None = None
    goals: Goals | None = None

    @property
    def records(self) -> Path:
        """The folder of the record files."""
        return self.folder / "records"

    @property
    def only_figures(self) -> bool:
        """Whether it shows pictures and no table."""
        return bool(self.figures) and not self.sections and self.search is None

    def row(self, name: str) -> Row:
        """The row of that name."""
        return pick(self.rows, name, "row")

    def section_methods(self, section: Section) -> list[MethodSpec]:
        """The methods of a section, with one for every entry of a registry where the manifest says so."""
        found = {spec.name: spec for name in section.methods for spec in self.expand(name)}
        return list(found.values())

    def expand(self, name: str) -> list[MethodSpec]:
        """The method of that name, or those of the group of that name."""
        entry = self.methods[name]
        if isinstance(entry, _PickerGroup):
            return entry.methods()
        if isinstance(entry, _MethodGroup):
            return [
                MethodSpec(preset=entry.preset, seeds=entry.seeds, **fields)
                for fields in _registry(entry.expand, entry.preset)
            ]
        given = entry.model_dump(exclude_none=True)
        return [MethodSpec(**{"name": name, "of": name, "title": name} | given)]


def _registry(group: str, preset: str) -> list[dict[str, Any]]:
    """Name, kind, title and options of every method of a registry."""
    # Registries load torch and numba, so they are opened when a plan is made and not with the manifest.
    if group == "ablations":
        from psgnn.models._presets import ABLATIONS

        about = {"kind": "model", "of": "psgnn"}
        return [
            {**about, "name": f"psgnn-{_slug(label)}", "title": label, "options": dict(options)}
            for label, options in ABLATIONS.items()
        ]
    from psgnn.scoring import HEURISTICS
    from psgnn.training._compare import REGISTRIES

    kind = group.removesuffix("s")
    # Rules of other packages are named one by one: a plan does not depend on what else is installed.
    names = HEURISTICS.builtin if kind == "rule" else REGISTRIES[kind]
    named, titled = ("", "") if preset == "best" else (f"-{preset}", f", preset {preset}")
    return [{"name": name + named, "kind": kind, "of": name, "title": name + titled} for name in names]


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


AnyNamed = TypeVar("AnyNamed", bound=_Named)


def pick(items: Iterable[AnyNamed], name: str, kind: str) -> AnyNamed:
    """The item of that name, or an error with the nearest one."""
    by_name = {item.name: item for item in items}
    if name not in by_name:
        raise unknown_name(kind, name, by_name)
    return by_name[name]


def find_folder(folder: Path | None = None) -> Path:
    """The folder with manifests: the given one, ``./experiments``, or that of the source checkout."""
    places = [Path(FOLDER), Path(__file__).resolve().parents[1] / FOLDER] if folder is None else [folder]
    for place in places:
        if any(place.glob("*.toml")):
            return place
    raise InputError(
        f"no manifests (*.toml) in {' or '.join(map(str, places))}; run in a checkout of psgnn or pass --folder"
    )


def manifest_names(folder: Path) -> list[str]:
    """The experiments of a folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load_manifest(name: str, folder: Path, data: Path | None = None) -> Manifest:
    """The experiment of that name; what is wrong with its file is reported in one line."""
    if name not in manifest_names(folder):
        raise unknown_name("experiment", name, [*manifest_names(folder), "all"])
    path = folder / f"{name}.toml"
    try:
        manifest = Manifest.model_validate({**_content(path), "name": name, "folder": folder, "data": data})
        _check(manifest)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {where}: {first['msg']}, found {first['input']!r}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return manifest


def _content(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What the file says, with the methods of its base, and of its rows those that a section shows.

    The files `above` have it as their base, so it can have none of them.
    """
    content = tomllib.loads(path.read_text())
    if "base" not in content:
        return content
    base = path.with_name(f"{content.pop('base')}.toml")
    above = (*above, path)
    if not base.is_file() or base in above:
        raise unknown_name(
            "base", base.stem, set(manifest_names(path.parent)).difference(p.stem for p in above)
        )
    shared = _content(base, above)
    own = [row.get("name") for row in content.get("rows", [])]
    shown = {name for section in content.get("sections", []) for name in section.get("rows", [])}.difference(
        own
    )
    content["rows"] = [row for row in shared.get("rows", []) if row.get("name") in shown] + content.get(
        "rows", []
    )
    content["methods"] = shared.get("methods", {}) | content.get("methods", {})
    return content


def _check(manifest: Manifest) -> None:
    """Every name has to lead somewhere, and to one place."""
    _check_unique("rows", [row.name for row in manifest.rows])
    _check_unique("sections", [section.name for section in manifest.sections])
    for row in manifest.rows:
        find_dataset(row.dataset).settings(row.of_seed(0).dataset_options)
    for section in manifest.sections:
        for name in section.rows:
            manifest.row(name)
        for method in section.methods:
            if method not in manifest.methods:
                raise unknown_name("method", method, manifest.methods)
        titles = {method.name for method in manifest.section_methods(section)} if section.published else set()
        for method, cells in section.published.items():
            if method not in titles:
                raise unknown_name(f"method of section '{section.name}'", method, titles)
            if len(cells) != len(section.rows):
                raise InputError(
                    f"section '{section.name}' has {len(section.rows)} rows and {len(cells)} published values "
                    f"of {method}; give one for each row"
                )
        for single in (section.main, section.baseline):
            if single is not None and single not in section.methods:
                raise unknown_name(f"method of section '{section.name}'", single, section.methods)
    for name, entry in manifest.methods.items():
        if isinstance(entry, _SingleMethod) and entry.kind != "model":
            for what, wanted in (("trace", entry.trace), ("resume", entry.resume)):
                if wanted:
                    raise InputError(
                        f"method '{name}' is a {entry.kind}, which has no training to {what}; drop {what}"
                    )
    _check_figures(manifest)
    if manifest.goals is not None:
        manifest.goals.check([section.name for section in manifest.sections], manifest.methods)
    if manifest.search is not None:
        for name in manifest.search.rows:
            manifest.row(name)
        manifest.search.check()


def _check_figures(manifest: Manifest) -> None:
    if not manifest.sections and not manifest.figures and manifest.search is None:
        raise InputError("it has neither sections nor figures nor a search; add [[sections]] or [[figures]]")
    _check_unique("figures", [figure.name for figure in manifest.figures])
    for figure in manifest.figures:
        if figure.of is not None:  # its names are looked up when it is drawn
            continue
        rows, methods = figure.cells
        for row in rows:
            manifest.row(row)
        for method in methods:
            if method not in manifest.methods:
                raise unknown_name(f"method of figure '{figure.name}'", method, manifest.methods)
            if figure.traced and not getattr(manifest.methods[method], "trace", False):
                raise InputError(
                    f"figure '{figure.name}' needs what method '{method}' keeps only with trace = true; add it"
                )


def _check_unique(what: str, names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{what}: '{repeated[0]}' is there twice; rename one")
