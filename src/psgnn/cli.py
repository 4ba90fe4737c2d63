"""The command ``psgnn``. Commands import what they need when they run, so that ``--help`` is instant."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.errors import InputError, PsgnnError

if TYPE_CHECKING:
    from torch_geometric.data import Data

app = typer.Typer(
    name="psgnn",
    help="Position-aware learning on graphs without node features: anchors, exact distances, missing links.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH|DATASET", help="A graph file, or a dataset's name.")
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

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def _show_version(value: bool) -> None:
    if value:
        from psgnn import __version__

        typer.echo(f"psgnn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Position-aware learning on graphs without node features: anchors, exact distances, missing links."""


@app.command("datasets")
def datasets_command(root: Root = None, as_json: Json = False) -> None:
    """List the datasets, their sizes and whether they are here.

    Example: psgnn datasets --json
    """
    from psgnn.console import print_json, print_table
    from psgnn.datasets import list_datasets

    rows = list_datasets(root)
    if as_json:
        print_json(rows)
        return
    columns = ["name", "graphs", "nodes", "edges", "features", "classes", "where"]
    shown = [["-" if row[column] is None else row[column] for column in columns] for row in rows]
    print_table("Datasets", columns, shown)


@app.command("anchors")
def anchors_command(
    graph: GraphArgument,
    method: Annotated[
        str, typer.Option("--method", help="Anchor rule, or 'all' to compare them.")
    ] = "farthest-first",
    anchors: Anchors = "log",
    hops: Annotated[
        int, typer.Option("--hops", min=0, help="An anchor covers the nodes within so many hops.")
    ] = 3,
    seed: Seed = 0,
    settings: Settings = None,
    root: Root = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the anchors (.csv .tsv .parquet .npz).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the graph and its anchors (.png .svg .pdf).")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Pick anchors by a rule and measure how well they cover the graph and tell its nodes apart.

    Example: psgnn anchors communities --method all --plot anchors.png
    """
    from psgnn.anchors import RULES
    from psgnn.anchors.report import describe_anchors
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn.io import atomic_write, check_output, write_table

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    if out is not None:
        check_output(out, force=force)
    if plot is not None:
        check_output(plot, force=force, suffixes=FIGURE_SUFFIXES)
    methods = list(RULES) if method == "all" else [method]
    graphs = load_graphs(graph, root, settings)
    chosen = describe_anchors(graphs, methods, _count(anchors), hops=hops, seed=seed, show_progress=not quiet)
    if out is not None:
        write_table(out, chosen.table(), force=force)
    if plot is not None:
        from psgnn.plot import plot_anchors

        with atomic_write(plot, force=force) as temporary:
            plot_anchors(graphs[0], chosen.of_graph(0), seed=seed).savefig(temporary)
    if as_json:
        print_json(chosen.document(graph))
        return
    columns = ["rule", "anchors", "coverage", "overlap", "resolving", "symmetric pairs", "seconds"]
    print_table(f"Anchors of {graph} (within {hops} hops)", columns, chosen.rows())
    if len(methods) == 1 and out is None:
        names = chosen.names(0)
        shown = ", ".join(names[:30]) + (
            f", ... ({len(names)} in all; --out FILE writes them)" if names[30:] else ""
        )
        typer.echo(f"anchors: {shown}")


@app.command("train")
def train_command(
    graph: GraphArgument,
    task: TaskOption = "link",
    model: Annotated[
        str, typer.Option("--model", help="psgnn, pgnn, agnn, gcn, sage, gat or gin.")
    ] = "psgnn",
    preset: Preset = "best",
    seed: Seed = 0,
    epochs: Epochs = None,
    anchors: Annotated[
        str | None,
        typer.Option("--anchors", metavar="log|log2|INT", help="K: log2 N, its square, or a number."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Setting of the model, such as estimator=simple."),
    ] = None,
    labels: Labels = None,
    settings: Settings = None,
    root: Root = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the run; resumes one in it.")
    ] = None,
    force: Force = False,
    tensorboard: Annotated[Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a model; keep the best epoch by validation, read the test pairs once.

    Example: psgnn train communities --task link --epochs 200 --out my-run
    """
    from psgnn.compare import make_task
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn.nn import build_model
    from psgnn.training import fit, remove_run

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    chosen = dict(_setting(text) for text in options or [])
    if anchors is not None:
        chosen["anchors"] = _count(anchors)
    split = make_task(load_graphs(graph, root, settings, labels), task, seed)
    built = build_model(model, split, preset, seed, **chosen)
    if out is not None and force:
        remove_run(out)
    try:
        result = fit(
            built, split, epochs=epochs, seed=seed, out=out, progress=not quiet, tensorboard=tensorboard
        )
    except KeyboardInterrupt:
        if out is None:
            raise
        _fail(f"interrupted; the run in {out} is kept, and the same command resumes it", 130)
    if as_json:
        print_json({"graph": graph, "out": None if out is None else str(out), **result.record})
        return
    columns = ["pairs", "AUC", "AUC, pooled", "average precision"]
    rows = [[name, *(f"{part[m]:.4f}" for m in ("auc", "auc_pooled", "ap"))]
            for name, part in (("validation", result.val), ("test", result.test))]  # fmt: skip
    print_table(f"{model} ({preset}) on {graph}, {task} task", columns, rows)
    record = result.record
    typer.echo(f"best epoch {record['best_epoch']} of {record['epochs_run']}, {record['seconds']:.1f} s")
    if out is not None:
        typer.echo(f"the run is in {out}")


@app.command("compare")
def compare_command(
    graph: GraphArgument,
    task: TaskOption = "link",
    models: Annotated[str, typer.Option("--models", help="'all', 'none', or names with commas.")] = "all",
    preset: Preset = "best",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of splits.")] = 3,
    epochs: Epochs = None,
    labels: Labels = None,
    settings: Settings = None,
    root: Root = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Score held-out pairs with models and every training-free rule, on the same splits.

    Example: psgnn compare communities --task link --models none --seeds 3
    """
    from psgnn.compare import compare, parse_models
    from psgnn.console import print_json, print_table, set_verbosity

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    names = parse_models(models)
    graphs = load_graphs(graph, root, settings, labels)
    rows = compare(
        graphs, task, models=names, preset=preset, seeds=seeds, epochs=epochs, show_progress=not quiet
    )
    if as_json:
        print_json(
            {"graph": graph, "task": task, "preset": preset, "seeds": list(range(seeds)), "rows": rows}
        )
        return
    columns = ["model or rule", "AUC", "average precision", "seconds"]
    shown = [[row["name"], _spread(row, "auc"), _spread(row, "ap"), f"{row['seconds']:.3f}"] for row in rows]
    splits = f"{seeds} splits, mean ± sd" if seeds > 1 else "1 split"
    print_table(f"{graph}, {task} task, test pairs of {splits}", columns, shown)


def load_graphs(
    source: str, root: Path | None = None, settings: list[str] | None = None, labels: Path | None = None
) -> list[Data]:
    """The graphs behind a name: those of a dataset, or the one in a file."""
    from psgnn.datasets import is_dataset, load_dataset
    from psgnn.errors import unknown_name
    from psgnn.io import read_graph, read_labels

    options = dict(_setting(text) for text in settings or [])
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


def _setting(text: str) -> tuple[str, Any]:
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


def _count(anchors: str) -> int | str:
    return int(anchors) if anchors.lstrip("+-").isdigit() else anchors


def _spread(row: dict[str, Any], metric: str) -> str:
    spread = row[f"{metric}_sd"]
    return f"{row[f'{metric}_mean']:.4f}" + ("" if spread is None else f" ± {spread:.4f}")


def _fail(message: str, code: int = 2) -> None:
    sys.stderr.write(f"psgnn: error: {' '.join(message.split())}\n")
    sys.exit(code)


def main() -> None:
    """Run the command line; every expected failure is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False) or 0
        if code == 130:  # typer's own answer to Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except PsgnnError as error:
        _fail(str(error))
    except (KeyboardInterrupt, EOFError):
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; there is no one left to write to, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        _fail(f"{error.strerror}: {error.filename or 'output'}; free some space or choose another path")
    except Exception as error:
        # typer raises usage errors as those of its own copy of click.
        if hasattr(error, "format_message"):
            _fail(f"{error.format_message()} (see psgnn --help)")
        raise
