"""Options that several commands take, and the graphs behind their first argument."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.failures import need_address_space
from psgnn.cli.reading import Given
from psgnn.errors import InputError, unknown_name

if TYPE_CHECKING:
    from psgnn.graph import Graph
    from psgnn.scoring import PretrainedScorer
    from psgnn.training._run import Run

GraphArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="GRAPH...|DATASET",
        help="Graph files (- is standard input), a database's address, or a dataset's name.",
    ),
]
RunsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN|GRAPH...|DATASET",
        help="The folder of a finished run (psgnn train ... --out RUN), or graphs: no training is needed.",
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN|GRAPH|DATASET",
        help="The folder of a finished run (psgnn train ... --out RUN), or a graph: no training is needed.",
    ),
]
PretrainedOption = Annotated[
    str | None,
    typer.Option(
        "--pretrained",
        metavar="best-link|best-pair",
        help="Weights for a graph without a run: for missing links [default], or for nodes that belong together.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Pretrained weights take no look at how the graph's own links differ from other pairs.",
    ),
]
OtherGraph = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="GRAPH|DATASET",
        help="Use the run on this graph: in the same coordinates, if it has nodes of the same names.",
    ),
]
NewAnchors = Annotated[
    bool,
    typer.Option("--new-anchors", help="With --graph: pick new anchors and axes there, even if names agree."),
]
Labels = Annotated[Path | None, typer.Option("--labels", help="File of node,label lines (pair tasks).")]
Root = Annotated[Path | None, typer.Option("--data", help="Folder with dataset files [$PSGNN_DATA].")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
Anchors = Annotated[
    str, typer.Option("--anchors", metavar="log|log^2|INT", help="K: log2 N, its square, or a number.")
]
AnchorFile = Annotated[
    Path | None,
    typer.Option("--anchor-file", metavar="FILE", help="Anchors of your own, one name per line."),
]
TaskOption = Annotated[
    str, typer.Option("--task", metavar="link|pair", help="Missing links, or same-class pairs.")
]
Preset = Annotated[
    str, typer.Option("--preset", metavar="best|learned|paper", help="Settings of the models.")
]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, help="The most epochs; the preset's number if left out.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that exists.")]
Spreadsheet = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="Write names that a spreadsheet would run as formulas with an apostrophe (.csv .tsv).",
    ),
]
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

ValLinks = Annotated[
    Path | None,
    typer.Option("--val-links", metavar="FILE", help="Links to validate with, a pair of names per line."),
]
TestLinks = Annotated[
    Path | None,
    typer.Option(
        "--test-links",
        metavar="FILE",
        help="Links to test with: a split of your own. The graph does not have them.",
    ),
]
ValNonlinks = Annotated[
    Path | None, typer.Option("--val-nonlinks", metavar="FILE", help="Unlinked pairs beside --val-links.")
]
TestNonlinks = Annotated[
    Path | None, typer.Option("--test-nonlinks", metavar="FILE", help="Unlinked pairs beside --test-links.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        help="Parts of the training links; a step predicts one on the graph without it [10 or 40].",
    ),
]

# Metrics as tables show them.
METRIC_LABELS = {
    "auc": "AUC",
    "auc_pooled": "AUC, pooled",
    "ap": "average precision",
    "mrr": "MRR, pooled",
    "hits@20": "Hits@20, pooled",
    "mrr_per_node": "MRR per node",
    "hits@10_per_node": "Hits@10 per node",
    "recall@20_per_node": "Recall@20 per node",
}


def check_source(source: str, *, runs: bool = False) -> None:
    """Refuse at once, before slow imports, what is neither a file nor a dataset (nor a run)."""
    from psgnn.datasets import dataset_names, is_dataset
    from psgnn.paths import STANDARD_INPUT, check_file, is_url

    path = Path(source)
    if path == STANDARD_INPUT or is_url(source) or is_dataset(source) or (runs and path.is_dir()):
        return
    if runs and not path.exists() and not path.suffix:
        raise InputError(
            f"{source} is not the folder of a run, a graph file or a dataset; "
            f"psgnn train GRAPH --out {source} makes a run"
        )
    if not path.exists() and not path.suffix and os.sep not in source:
        raise unknown_name("dataset (and no such file)", source, dataset_names())
    check_file(path.expanduser())


def check_run(folder: Path) -> None:
    """Refuse at once what is not the folder of a run."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a finished run of psgnn; psgnn train GRAPH --out {folder} makes one"
        )


def load_run(
    sources: str | list[str],
    other: str | None,
    given: Given,
    *,
    pretrained: str | None,
    strict: bool,
    anchor_file: Path | None = None,
    header_of: Path | None = None,
    new_anchors: bool = False,
) -> Run | PretrainedScorer:
    """A run, on its graphs or on those of another name; or pretrained weights on graphs.

    Another graph is read as those of the run were, but for what is ``given``. ``header_of`` is another text file that
    the option ``--header`` is about.
    """
    listed = [sources] if isinstance(sources, str) else sources
    for each in listed:
        check_source(each, runs=True)
    source, folders = listed[0], [each for each in listed if Path(each).is_dir()]
    if folders and len(listed) > 1:
        raise InputError(f"{folders[0]} is the folder of a run; give one run, or several graphs")
    if other is not None:
        check_source(other)
    elif new_anchors:
        raise InputError("--new-anchors goes with --graph GRAPH; without it a run has its own anchors")
    if folders:
        if pretrained is not None or strict:
            raise InputError(f"--pretrained and --strict go with a graph; {source} is the folder of a run")
        if anchor_file is not None:
            raise InputError(f"--anchor-file goes with a graph; the run in {source} has anchors of its own")
        about = [option for option in given.options if header_of is None or "header" not in option]
        if other is None and about:
            raise InputError(f"{about[0]} goes with --graph; a run has its own graph")
        need_address_space(torch=True)
        from psgnn.training._run import load

        result = load(source)
        if other is None:
            return result
        from psgnn.datasets import is_dataset

        named = is_dataset(other) and not Path(other).is_file()
        how = given if named else given.over(result.record.get("read", {}))
        return result.on(load_graphs(other, how), new_anchors=new_anchors)
    if other is not None:
        raise InputError(f"--graph goes with a run; {source} is a graph itself")
    from psgnn.scoring import pretrained as weights_of

    model = weights_of(pretrained or "best-link")
    graphs = load_graphs(listed, given)
    own = None if anchor_file is None else read_anchors(anchor_file, graphs)
    return model.on(graphs, strict=strict, anchors=own)


def read_anchors(path: Path, graphs: list[Graph]) -> list[str]:
    """The names of anchors in a file, one per line, in the only graph."""
    from psgnn.graph._names import read_names

    if len(graphs) != 1:
        raise InputError(f"--anchor-file goes with one graph, found {len(graphs)}")
    return read_names(path, graphs[0].names)


def load_graphs(sources: str | list[str], given: Given, labels: Path | None = None) -> list[Graph]:
    """The graphs behind a name: those of a dataset, or those in files."""
    from psgnn.datasets import is_dataset, load_dataset

    listed = [sources] if isinstance(sources, str) else sources
    for source in listed:
        check_source(source)
    settings = dict(parse_setting(text) for text in given.settings or [])
    if {"name", "root"} & set(settings):
        raise InputError("--set takes options of the dataset; its folder goes with --data")
    datasets = [source for source in listed if is_dataset(source) and not Path(source).is_file()]
    if datasets:
        about = ["--labels"] * (labels is not None) + [each for each in given.options if each != "--set"]
        if about:
            raise InputError(f"{about[0]} goes with a graph file; {datasets[0]} is a dataset")
        if len(listed) > 1:
            raise InputError(f"{datasets[0]} is a dataset; give one dataset, or several files")
        return load_dataset(datasets[0], given.root, **settings)
    if settings:
        raise InputError(f"--set goes with a dataset; '{listed[0]}' is not one")
    from psgnn.graph._read import header_for, read_graph, read_labels

    if labels is not None and "label" in given.how:
        raise InputError("pass either --labels FILE, or --label with the column of --nodes")
    found: list[Graph] = read_graph(listed, **given.how)
    if labels is None:
        return found
    if len(found) > 1:
        raise InputError(f"--labels goes with one graph, found {len(found)}")
    header = header_for(labels, given.header)
    return [replace(graph, y=read_labels(labels, graph.names, header=header)) for graph in found]


def parse_setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """``size=64`` as a name and a value: a number or a truth value where it reads as one."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InputError(f"{option} takes KEY=VALUE, found '{text}'")
    if value.lower() in ("true", "false"):
        return key, value.lower() == "true"
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


def parse_anchors(anchors: str) -> int | str:
    """``log``, ``log^2``, or a number."""
    if anchors == "log2":  # what the command prompt of Windows makes of an unquoted log^2
        return "log^2"
    try:
        return int(anchors)
    except ValueError:
        return anchors


def names_of(text: str, valid: list[str], kind: str) -> list[str]:
    """``all``, ``none``, or names with commas between them."""
    if text in ("all", "none"):
        return valid if text == "all" else []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in valid:
            raise unknown_name(kind, name, [*valid, "all", "none"])
    return names


def task_options(
    task: str,
    graphs: list[Graph],
    given: Given,
    negatives: str | None,
    folds: int | None,
    split: dict[str, Path | None],
) -> dict[str, Any]:
    """Options of the task that were given; ``split`` has files of pairs."""
    from psgnn.graph._read import header_for, read_pairs

    found: dict[str, Any] = {"negatives": negatives, "folds": folds}
    for name, path in split.items():
        if path is not None:
            if len(graphs) != 1:
                raise InputError(f"--{name.replace('_', '-')} goes with one graph, found {len(graphs)}")
            (graph,) = graphs
            sides = None if graph.sides is None else graph.side_names
            found[name] = read_pairs(
                path, graph.names, header=header_for(path, given.header), side_names=sides
            )
    found = {name: value for name, value in found.items() if value is not None}
    beyond = [name for name in found if name != "negatives"]
    if beyond and task != "link":
        raise InputError(f"--{beyond[0].replace('_', '-')} goes with --task link")
    return found
