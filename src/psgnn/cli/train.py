"""``psgnn train`` and ``psgnn compare``."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from psgnn.cli.arguments import (
    METRIC_LABELS,
    AnchorFile,
    Epochs,
    Folds,
    Force,
    GraphArgument,
    Json,
    Labels,
    Negatives,
    Preset,
    Quiet,
    Seed,
    TaskOption,
    TestLinks,
    TestNonlinks,
    ValLinks,
    ValNonlinks,
    check_source,
    load_graphs,
    names_of,
    parse_anchors,
    parse_setting,
    read_anchors,
    task_options,
)
from psgnn.cli.failures import fail
from psgnn.cli.reading import NOTHING, Given, reads_graph, titled
from psgnn.console import say
from psgnn.errors import InputError, unknown_name
from psgnn.paths import without_secrets

TASKS = ("link", "pair")
REFITTED_LINKS = 5000  # a graph with more of them is refitted only if a person says so

log = logging.getLogger(__name__)


@reads_graph
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
        typer.Option("--anchors", metavar="log|log^2|INT", help="K: log2 N, its square, or a number."),
    ] = None,
    anchor_file: AnchorFile = None,
    decoder: Annotated[
        str | None,
        typer.Option("--decoder", metavar="set|dot|distance", help="How two positions are scored."),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            metavar="fresh|pretrained",
            help="Start from random weights, or from those that come with psgnn (model psgnn).",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="auto|cpu|cuda|mps", help="Where the network is trained.")
    ] = "auto",
    negatives: Negatives = None,
    folds: Folds = None,
    val_links: ValLinks = None,
    test_links: TestLinks = None,
    val_nonlinks: ValNonlinks = None,
    test_nonlinks: TestNonlinks = None,
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="After the test, train again on all links, for predictions (task link). "
            f"Default: where there are at most {REFITTED_LINKS} of them, and no split of your own.",
            show_default=False,
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Setting of the model, such as estimator=simple."),
    ] = None,
    labels: Labels = None,
    given: Given = NOTHING,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the run; resumes one in it.")
    ] = None,
    force: Force = False,
    tensorboard: Annotated[Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model; keep the best epoch by validation, read the test pairs once.

    Example: psgnn train communities --task link --epochs 200 --out my-run
    """
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn.models._presets import MODELS, PRESETS
    from psgnn.paths import check_file
    from psgnn.training._folder import STATE, check_out

    if out is not None:
        check_out(out, force=force)
    for what, value, names in (("model", model, MODELS), ("preset", preset, PRESETS), ("task", task, TASKS)):
        if value not in names:
            raise unknown_name(what, value, names)
    if refit and task != "link":
        raise InputError("--refit trains on held-out links, and the pair task holds out none; leave it out")
    for source in graph:
        check_source(source)
    if anchor_file is not None:
        check_file(anchor_file.expanduser())
        if anchors is not None:
            raise InputError("pass either --anchors or --anchor-file")
    from psgnn.models._models import build_model
    from psgnn.models._team import LostWorkerError, place
    from psgnn.training._compare import make_task
    from psgnn.training._fit import fit

    if place()[0] > 0:  # one of several processes speaks
        set_verbosity(quiet=True, verbose=False)
    chosen = dict(parse_setting(text, "--option") for text in options or [])
    if anchors is not None:
        chosen["anchors"] = parse_anchors(anchors)
    if decoder is not None:
        chosen["decoder"] = decoder
    if init is not None:
        chosen["init"] = init
    graphs = load_graphs(graph, given, labels)
    if anchor_file is not None:
        chosen["anchors"] = read_anchors(anchor_file, graphs)
    title = titled(graph)
    own = {"val_links": val_links, "test_links": test_links, "val_nonlinks": val_nonlinks}
    own["test_nonlinks"] = test_nonlinks
    split = make_task(graphs, task, seed, **task_options(task, graphs, given, negatives, folds, own))
    if refit is None:
        few = sum(each.num_edges for each in graphs) <= REFITTED_LINKS
        refit = task == "link" and few and place()[1] == 1 and not any(own.values())
    if labels is not None and task == "link":
        log.info("the labels are kept for reports; --task pair learns them")
    if out is None:
        log.info("the model will not be kept; --out FOLDER keeps it, for predict, embed and report")
    built = build_model(model, split, preset, seed, **chosen)
    again = "the same command without --force" if force else "the same command"
    try:
        result = fit(
            built,
            split,
            epochs=epochs,
            seed=seed,
            out=out,
            progress=not quiet and place()[0] == 0,
            tensorboard=tensorboard,
            command=shlex.join(["psgnn", *map(without_secrets, sys.argv[1:])]),
            device=device,
            force=force,
            refit=refit,
        )
    except LostWorkerError as error:
        kept = "nothing is kept" if out is None else f"the run in {out} is kept, and {again} resumes it"
        fail(f"{error}; {kept}")
    except KeyboardInterrupt:
        if out is None:
            raise
        known = f"is kept, and {again} resumes it" if (out / STATE).exists() else "had hardly begun"
        fail(f"interrupted; the run in {out} {known}", 130)
    if place()[0] > 0:  # the first process of a job speaks for all
        return
    if as_json:
        print_json({"graph": title, "out": None if out is None else str(out), **result.record})
        return
    parts = {
        "validation": result.val,
        "test": result.test,
        "test, embeddings alone": result.embedding_test,
    }
    several = result.view.union.num_graphs > 1
    metrics = [m for m in METRIC_LABELS if m in result.test and (several or m != "auc_pooled")]
    shown_columns = ["pairs", *(METRIC_LABELS[metric] for metric in metrics)]
    rows = [
        [name, *(f"{part[metric]:.4f}" if metric in part else "-" for metric in metrics)]
        for name, part in parts.items()
        if part is not None
    ]
    print_table(f"{model} ({preset}) on {title}, {task} task{_drawn(negatives)}", shown_columns, rows)
    record = result.record
    say(f"best epoch {record['best_epoch']} of {record['epochs_run']}, {record['seconds']:.1f} s")
    if refit:
        again = record["refit"]
        say(
            f"refitted on all {again['links']} links for {again['epochs']} epochs, for predictions; "
            "the metrics are of the weights before that"
        )
    if out is not None:
        say(f"the run is in {out}")


@reads_graph
def compare_command(
    graph: GraphArgument,
    task: TaskOption = "link",
    models: Annotated[
        str, typer.Option("--models", help="'all', 'none', or names with commas, such as psgnn,psgnn/paper.")
    ] = "all",
    peers: Annotated[
        str,
        typer.Option("--peers", help="'all', 'none', or names with commas: node2vec, boosting, best-column."),
    ] = "none",
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Compare psgnn with itself, one part switched off at a time.")
    ] = False,
    preset: Preset = "best",
    negatives: Negatives = None,
    folds: Folds = None,
    val_links: ValLinks = None,
    test_links: TestLinks = None,
    val_nonlinks: ValNonlinks = None,
    test_nonlinks: TestNonlinks = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of splits.")] = 3,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="Seed of the first split.")] = 0,
    epochs: Epochs = None,
    labels: Labels = None,
    given: Given = NOTHING,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the table (.csv .tsv .parquet .npz).")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score held-out pairs with models, peers and every training-free rule, on the same splits.

    Example: psgnn compare communities --task link --models none --seeds 3
    """
    from psgnn.console import print_json
    from psgnn.paths import check_output

    for source in graph:
        check_source(source)
    from psgnn.graph._exports import write_table
    from psgnn.training._compare import InterruptedComparison, compare, parse_models
    from psgnn.training._peers import PEERS

    if out is not None:
        check_output(out, force=force)
    names = parse_models(models)
    others = names_of(peers, list(PEERS), "peer")
    graphs = load_graphs(graph, given, labels)
    if labels is not None and task == "link":
        log.info("the link task does not use --labels; --task pair compares by them")
    own = {"val_links": val_links, "test_links": test_links, "val_nonlinks": val_nonlinks}
    own["test_nonlinks"] = test_nonlinks
    title = titled(graph)
    try:
        rows = compare(
            graphs,
            task,
            models=names,
            peers=others,
            ablate=ablate,
            preset=preset,
            seeds=seeds,
            first_seed=first_seed,
            epochs=epochs,
            task_options=task_options(task, graphs, given, negatives, folds, own),
            show_progress=not quiet,
        )
    except InterruptedComparison as stopped:
        if stopped.rows and not as_json:
            _print_comparison(
                stopped.rows, f"{title}, {task} task{_drawn(negatives)}, until the interruption"
            )
        raise
    if out is not None:
        write_table(out, _columns(rows), force=force)
    if as_json:
        splits = list(range(first_seed, first_seed + seeds))
        options = {"task": task, "negatives": negatives, "preset": preset, "seeds": splits}
        print_json({"graph": title, **options, "rows": rows})
        return
    about = f"{seeds} splits, mean ± sd" if seeds > 1 else "1 split"
    _print_comparison(rows, f"{title}, {task} task{_drawn(negatives)}, test pairs of {about}")


def _print_comparison(rows: list[dict[str, Any]], title: str) -> None:
    from psgnn.console import print_table

    hidden = ("auc_pooled", "hits@10_per_node")  # --json and --out have them
    metrics = [metric for metric in METRIC_LABELS if metric not in hidden and metric in rows[0]]
    columns = ["method", *(METRIC_LABELS[metric] for metric in metrics), "splits", "seconds"]
    shown = [
        [row["name"], *(_spread(row, m) for m in metrics), str(len(row["auc"])), f"{row['seconds']:.3f}"]
        for row in rows
    ]
    if len({row[-2] for row in shown}) == 1:  # of the same splits, which the title names
        columns.pop(-2)
        for row in shown:
            row.pop(-2)
    print_table(title, columns, shown)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Names, kinds, means and spreads, a column each; the spread over one split is not a number."""
    keys = ["name", "kind", "seconds", *(key for key in rows[0] if key.endswith(("_mean", "_sd")))]
    return {key: [float("nan") if row[key] is None else row[key] for row in rows] for key in keys}


def _drawn(negatives: str | None) -> str:
    """The rule of the negatives for a title, where one was asked for."""
    return "" if negatives is None else f" with {negatives} negatives"


def _spread(row: dict[str, Any], metric: str) -> str:
    spread = row[f"{metric}_sd"]
    return f"{row[f'{metric}_mean']:.4f}" + ("" if spread is None else f" ± {spread:.4f}")
