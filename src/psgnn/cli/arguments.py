"""Options that several commands take, and the graphs behind their first argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.errors import InputError, unknown_name

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from psgnn.results import Result

GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH|DATASET", help="A graph file, or a dataset's name.")
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a finished run: psgnn train ... --out RUN.")
]
OtherGraph = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="GRAPH|DATASET",
        help="Use the run's model on this graph, with anchors picked there.",
    ),
]
Labels = Annotated[Path | None, typer.Option("--labels", help="File of node,label lines (pair tasks).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Option of the dataset, such as size=64."),
]
Root = Annotated[Path | None, typer.Option("--data", help="Folder with dataset files [$PSGNN_DATA].")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
Anchors = Annotated[
    str, typer.Option("--anchors", metavar="log|log2|INT", help="K: log2 N, its square, or a number.")
]
TaskOption = Annotated[
    str, typer.Option("--task", metavar="link|pair", help="Missing links, or same-class pairs.")
]
Preset = Annotated[str, typer.Option("--preset", metavar="best|paper", help="Settings of the models.")]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, help="At most so many; the preset's if left out.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress bars.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More notes.")]
Negatives = Annotated[
    str | None,
    typer.Option(
        "--negatives",
        metavar="uniform|degree|distance|pgnn-released",
        help="Held-out unlinked pairs: any, or like the linked ones in degree or distance (link task); "
        "pgnn-released takes some positives for negatives, as P-GNN's code does: not comparable.",
    ),
]

# Metrics as tables show them.
METRIC_LABELS = {
    "auc": "AUC",
    "auc_pooled": "AUC, pooled",
    "ap": "average precision",
    "mrr": "MRR",
    "hits@20": "Hits@20",
}


def load_run(run: Path, other: str | None, root: Path | None, settings: list[str] | None) -> Result:
    """The result of a run, on the graphs of the run or on those of another name."""
    from psgnn.results import load

    if other is None and settings:
        raise InputError("--set goes with --graph DATASET; a run has its own graph")
    if not run.is_dir():
        raise InputError(f"{run} is not the folder of a run; psgnn train GRAPH --out {run} makes one")
    result = load(run)
    return result if other is None else result.on(load_graphs(other, root, settings))


def check_numbers(values: torch.Tensor, run: Path) -> None:
    """Refuse what a damaged run may give."""
    if not bool(values.isfinite().all()):
        raise InputError(f"the weights of {run} give values that are no numbers; train again")


def load_graphs(
    source: str, root: Path | None = None, settings: list[str] | None = None, labels: Path | None = None
) -> list[Data]:
    """The graphs behind a name: those of a dataset, or the one in a file."""
    from psgnn.datasets import is_dataset, load_dataset
    from psgnn.io import read_graph, read_labels

    options = dict(parse_setting(text) for text in settings or [])
    if {"name", "root"} & set(options):
        raise InputError("--set takes options of the dataset; its folder goes with --data")
    if is_dataset(source) and not Path(source).is_file():
        if labels is not None:
            raise InputError(
                f"--labels goes with a graph file; the dataset {source} has its own labels or none"
            )
        return load_dataset(source, root, **options)
    if options:
        raise InputError(f"--set goes with a dataset; '{source}' is not one")
    if not Path(source).exists() and not Path(source).suffix and os.sep not in source:
        from psgnn.datasets import dataset_names

        raise unknown_name("dataset (and no such file)", source, dataset_names())
    data = read_graph(source)
    if labels is not None:
        data.y = read_labels(labels, data.node_names)
    return [data]


def parse_setting(text: str) -> tuple[str, Any]:
    """``size=64`` as a name and a value: a number or a truth value where it reads as one."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InputError(f"--set takes KEY=VALUE, found '{text}'")
    if value.lower() in ("true", "false"):
        return key, value.lower() == "true"
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


def parse_anchors(anchors: str) -> int | str:
    """``log``, ``log2``, or a number."""
    return int(anchors) if anchors.lstrip("+-").isdigit() else anchors


def names_of(text: str, valid: list[str], kind: str) -> list[str]:
    """``all``, ``none``, or names with commas between them."""
    if text in ("all", "none"):
        return valid if text == "all" else []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in valid:
            raise unknown_name(kind, name, [*valid, "all", "none"])
    return names


def task_options(negatives: str | None) -> dict[str, Any]:
    """Options of the task that were given."""
    return {} if negatives is None else {"negatives": negatives}
