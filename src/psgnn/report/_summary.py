"""Runs summed up as one dict: what ``psgnn report --json`` prints and what the page is made from.

Its leaves are numbers, texts, None and NumPy arrays; `psgnn.report.plain` turns the arrays into lists.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psgnn import __version__
from psgnn.console import progress
from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._kinds import Kinds
from psgnn.models._config import make_config
from psgnn.report._anchoring import describe, final_units, steps_of
from psgnn.report._answers import add_partners, expectation, explanations
from psgnn.report._drawing import MOST_GRAPHS, Limits, Unit, draw_graph
from psgnn.report._measured import compare_rules, map_of, predictions, score_histogram
from psgnn.report._page import shown_name
from psgnn.scoring import calibrate
from psgnn.training._heldout import read_held_out
from psgnn.training._record import parse_document
from psgnn.training._run import Run, load

MOST_RUNS = 40
MOST_CURVE_POINTS = 400
MOST_COMPARED = 100
# Settings that the arguments of `psgnn train` say already, or that it finds out itself.
IDENTITY = ("name", "preset", "task", "in_channels", "seed", "epochs")


def summarise(
    folders: Sequence[str | Path],
    *,
    top: int = 200,
    comparison: str | Path | None = None,
    show_progress: bool = False,
    on_step: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Everything that a report says about finished runs.

    Args:
        folders: The runs.
        top: How many predictions of each.
        comparison: A file that ``psgnn compare --json`` wrote, to show beside them.
        show_progress: Show bars with the time left.
        on_step: Called with a few words when a part of the work begins.

    Returns:
        A dict. Of each of its ``runs``, ``predictions`` lists pairs with ``probability`` and ``expected_precision``,
        ``expectation`` the number of missing links behind them and the reliability of the probabilities,
        ``explanations`` why the first predictions have their scores, and ``drawn`` the graphs, with ``partners`` of
        some of their nodes. Probabilities are None where there are none, and ``expectation`` says why.
    """
    if not folders:
        raise InputError("no run was given; name the folder of a run that psgnn train made")
    if len(folders) > MOST_RUNS:
        raise InputError(f"{len(folders)} runs do not fit one page, {MOST_RUNS} do; make several reports")
    compared = None if comparison is None else read_comparison(Path(comparison))
    on_step("loading")
    results = [(Path(folder), load(folder)) for folder in folders]
    limits = Limits.shared_by(len(results))
    names = _run_names([folder for folder, _ in results])
    return {
        "format": 1,
        "psgnn": __version__,
        "runs": [
            {"name": name, **_summarise_run(folder, run, limits, top, len(results), show_progress, on_step)}
            for name, (folder, run) in zip(names, results, strict=True)
        ],
        "comparison": compared,
    }


def _run_names(folders: list[Path]) -> list[str]:
    """The names of the folders, or their paths where two have the same name."""
    names = [folder.resolve().name for folder in folders]
    listed = names if len(set(names)) == len(names) else [str(folder) for folder in folders]
    return [shown_name(name, 80) for name in listed]


def _summarise_run(
    folder: Path,
    run: Run,
    limits: Limits,
    top: int,
    runs: int,
    show_progress: bool,
    on_step: Callable[[str], None],
) -> dict[str, Any]:
    record, union = run.record, run.view.union
    task = record.get("task")
    about: dict[str, Any] = task if isinstance(task, dict) else {}
    history = _history(folder, run)
    held_out = read_held_out(folder, union)
    classes = None if held_out is None else held_out.classes
    final = final_units(run)
    on_step("learning how likely scores are links")
    calibration = calibrate(run)
    on_step("searching for missing links")
    found = predictions(run, top, classes, calibration, show_progress=show_progress)
    on_step("explaining predictions")
    explained = explanations(run, found["pairs"], runs)
    config = run.model.config
    on_step("drawing")
    embeddings = run.embed(show_progress=show_progress)
    places, shares = map_of(embeddings)
    drawn = _drawn(run, final, limits, found["pairs"], classes, places, show_progress)
    on_step("looking for partners of nodes")
    add_partners(run, drawn, found["pairs"], calibration, runs)
    on_step("measuring anchors and rules")
    return {
        "model": config.name,
        "preset": config.preset,
        "task": config.task,
        "negatives": about.get("negatives"),
        "split": about.get("split"),
        "seed": record.get("seed"),
        "graphs": union.num_graphs,
        "nodes": union.num_nodes,
        "edges": union.adjacency.num_edges if union.kinds is None else union.kinds.edges.shape[1],
        **_kind(union.kinds),
        "val": run.val,
        "test": run.test,
        "embedding_test": run.embedding_test,
        "best_epoch": record.get("best_epoch"),
        "epochs_run": record.get("epochs_run"),
        "seconds": record.get("seconds"),
        "peak_memory_mb": record.get("peak_memory_mb"),
        "history": history,
        "anchors": describe(run, final, show_progress=show_progress),
        "drawn": drawn,
        "variance": shares,
        "scores": score_histogram(run, held_out),
        "rules": compare_rules(run, held_out, show_progress=show_progress),
        "predictions": found["rows"],
        "expectation": expectation(run, calibration),
        "explanations": explained,
        "settings": config.model_dump(),
        "versions": record.get("versions", {}),
        "command": _command(run, about.get("negatives")),
    }


def _drawn(
    run: Run,
    final: list[list[Unit]],
    limits: Limits,
    predicted: IntArray,
    classes: IntArray | None,
    places: Any,
    show_progress: bool,
) -> list[dict[str, Any]]:
    """The first graphs as they are drawn, with their part of the map."""
    union = run.view.union
    arcs = union.kinds.edges if union.kinds is not None and union.kinds.directed else None
    sides = None if union.kinds is None else union.kinds.sides
    count = min(union.num_graphs, MOST_GRAPHS)
    room = limits.of_each(count)
    drawn = []
    for g in progress(range(count), "drawing", show=show_progress):
        first, last = int(union.ptr[g]), int(union.ptr[g + 1])
        own = predicted[:, (predicted[0] >= first) & (predicted[0] < last)] - first
        graph = draw_graph(
            union.graph(g),
            run.node_names[g],
            steps_of(run, g, final[g]),
            final[g],
            room,
            wanted=own.T.ravel(),
            classes=None if classes is None else classes[first:last],
            held_out=run.hidden[:, (run.hidden[0] >= first) & (run.hidden[0] < last)] - first,
            arcs=None if arcs is None else arcs[:, (arcs[0] >= first) & (arcs[0] < last)] - first,
        )
        graph["side"] = None if sides is None else sides[first:last][graph["shown"]]
        graph["map"] = places[first:last][graph["shown"]].T
        place = {int(v): i for i, v in enumerate(graph["shown"])}
        # Where the predicted pairs are drawn, by rank; -1 = not drawn.
        graph["predicted"] = np.array(
            [[place.get(int(v), -1) for v in ends] for ends in own], np.int64
        ).reshape(2, -1)
        graph["ranks"] = np.flatnonzero((predicted[0] >= first) & (predicted[0] < last)) + 1
        drawn.append(graph)
    return drawn


def _kind(kinds: Kinds | None) -> dict[str, Any]:
    """Whether links have directions, the names of the sides, and in words what the graph was read as."""
    if kinds is None:
        return {"directed": False, "sides": None, "read_as": "undirected"}
    words = ["directed" if kinds.directed else "undirected"]
    names = None if kinds.sides is None else [shown_name(name, 40) for name in kinds.side_names]
    if kinds.sides is not None and names is not None:
        sizes = [f"{np.count_nonzero(kinds.sides == side)} {name}" for side, name in enumerate(names)]
        words.append(f"two-sided: {' and '.join(sizes)}")
    words += [name for name in kinds.names if name not in ("directed", "sides")]
    return {"directed": kinds.directed, "sides": names, "read_as": ", ".join(words)}


def _history(folder: Path, run: Run) -> dict[str, list[float]]:
    """The curves of training, by name; of very many validations some are left out."""
    history = run.history
    if len(history) > MOST_CURVE_POINTS:
        kept = np.unique(np.linspace(0, len(history) - 1, MOST_CURVE_POINTS).astype(int))
        history = [history[i] for i in kept]
    names = [name for name in (history[0] if history else {}) if name != "anchors"]
    try:
        curves = {name: [float(entry[name]) for entry in history] for name in names}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{folder / 'record.json'} has a damaged history; train again") from None
    if not all(math.isfinite(value) for curve in curves.values() for value in curve):
        raise InputError(f"{folder / 'record.json'} has a history that is not of numbers; train again")
    return curves


def _command(run: Run, negatives: str | None) -> dict[str, Any]:
    """What makes the run again: what was typed, or else the same settings with GRAPH for the graph."""
    typed = run.record.get("command")
    if isinstance(typed, str):
        return {"text": typed, "typed": True}
    config = run.model.config
    words = [
        "psgnn",
        "train",
        "GRAPH",
        "--task",
        config.task,
        "--model",
        config.name,
        "--preset",
        config.preset,
    ]
    words += ["--seed", str(config.seed), "--epochs", str(run.record.get("epochs"))]
    if negatives not in (None, "uniform", "official"):
        words += ["--negatives", str(negatives)]
    usual = make_config(config.name, config.task, config.in_channels, config.preset, config.seed)
    named = ("picker", "anchors") if config.picker == "named" else ()
    words += ["--anchor-file", "ANCHORS"] if named else []
    for key, value in config.model_dump(exclude=set(named)).items():
        if key not in IDENTITY and value != getattr(usual, key):
            words += ["--option", f"{key}={json.dumps(value) if isinstance(value, bool) else value}"]
    return {"text": shlex.join(words), "typed": False}


def read_comparison(path: Path) -> dict[str, Any]:
    """The rows of a file that ``psgnn compare --json`` wrote: name, kind, mean and spread of the AUC."""
    try:
        document = parse_document(path.read_bytes())
        rows = [
            {
                "name": shown_name(str(row["name"]), 60),
                "kind": shown_name(str(row["kind"]), 20),
                "auc": _number(row["auc_mean"]),
                "sd": None if row["auc_sd"] is None else _number(row["auc_sd"]),
                "ap": _number(row["ap_mean"]) if "ap_mean" in row else None,
                "seconds": _number(row["seconds"]),
            }
            for row in document["rows"][:MOST_COMPARED]
        ]
        about = {key: shown_name(str(document[key]), 120) for key in ("graph", "task")}
        return {**about, "splits": len(document["seeds"]), "rows": rows}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:80]
        raise InputError(
            f"{path} is not what psgnn compare --json prints ({reason}); make it again"
        ) from None


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a number")
    return number
