"""Models, training-free rules and peers side by side, on the same splits.

::

    task = make_task(graphs, "link", seed=0)
    measure(Method("psgnn", "model"), task, seed=0)["test"]["auc"]
    compare(graphs, "link", models=["psgnn", "psgnn/paper"], peers=["node2vec"], seeds=10)
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psgnn.console import Bar
from psgnn.errors import InputError, MissingExtraError, unknown_name
from psgnn.graph._graph import as_graph
from psgnn.models._presets import ABLATIONS, MODELS, PRESETS
from psgnn.registry import ExtendedNames
from psgnn.scoring import HEURISTICS, pretrained, score_pairs
from psgnn.scoring._network import WEIGHTS
from psgnn.scoring._rules import KIND_RULES, kind_rules
from psgnn.tasks import LinkPrediction, PairClassification, Task, link_task
from psgnn.tasks._metrics import evaluate
from psgnn.training._folder import RECORD
from psgnn.training._peers import PEERS, PairScores

if TYPE_CHECKING:
    from psgnn.graph import Graph
    from psgnn.training._run import Run

TASKS: dict[str, type[LinkPrediction] | type[PairClassification]] = {
    "link": LinkPrediction,
    "pair": PairClassification,
}
# The oracle goes by the truth: its AUC is 1, but for negatives that are positives (`psgnn.tasks.ceiling`).
REGISTRIES: dict[str, Iterable[str]] = {
    "model": MODELS,
    "pretrained": WEIGHTS,
    "rule": ExtendedNames(tuple(KIND_RULES), HEURISTICS),
    "peer": PEERS,
    "oracle": ("ceiling",),
}


@dataclass(frozen=True)
class Method:
    """A way to score pairs: a model under a preset, pretrained weights, a training-free rule, a peer, or the oracle.

    ``options`` change the settings of a model, or say whether pretrained weights are ``strict``. ``label`` is its name
    in tables.
    """

    name: str
    kind: Literal["model", "pretrained", "rule", "peer", "oracle"]
    preset: str = "best"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in REGISTRIES:
            raise unknown_name("kind of method", self.kind, REGISTRIES)
        if self.name not in REGISTRIES[self.kind]:
            raise unknown_name(self.kind, self.name, REGISTRIES[self.kind])
        if self.kind == "model" and self.preset not in PRESETS:
            raise unknown_name("preset", self.preset, PRESETS)
        if self.kind == "pretrained" and self.options.keys() - {"strict"}:
            raise InputError(f"pretrained weights have the option strict, found {self.options}")
        if self.kind not in ("model", "pretrained") and self.options:
            raise InputError(f"the {self.kind} {self.name} has no options, found {', '.join(self.options)}")

    @property
    def title(self) -> str:
        """The label, or the name with the preset where that is not ``best``."""
        plain = self.kind != "model" or self.preset == "best"
        return self.label or (self.name if plain else f"{self.name}/{self.preset}")


def make_task(
    graphs: Sequence[Graph], name: str, seed: int, **options: Any
) -> LinkPrediction | PairClassification:
    """The task of that name; a graph that comes with an official split of its links gets that one.

    ``options`` are those of the task's class, such as ``negatives`` or ``max_pairs``.
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    valid = inspect.signature(TASKS[name]).parameters.keys() - {"graphs", "seed"}
    for option in options:
        if option not in valid:
            raise unknown_name(f"option of the {name} task", option, valid)
    if name == "link":
        return link_task(graphs, seed, **options)
    return PairClassification(graphs, seed=seed, **options)


def parse_models(text: str) -> list[str]:
    """``all``, ``none``, or names with commas between them: ``psgnn,psgnn/paper,node2vec``."""
    if text in ("all", "none"):
        return list(MODELS) if text == "all" else []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        _method(name, "best")
    return names


def _method(name: str, preset: str) -> Method:
    """The model, model/preset or peer of that name."""
    if name in PEERS:
        return Method(name, "peer")
    model, slash, own = name.partition("/")
    if model not in MODELS:
        raise unknown_name("model", name, [*MODELS, *PEERS, "all", "none"])
    return Method(model, "model", own if slash else preset, label=name)


def ablations() -> list[Method]:
    """``psgnn`` under ``best``, and the same without each of its parts."""
    parts = [Method("psgnn", "model", options=options, label=label) for label, options in ABLATIONS.items()]
    return [Method("psgnn", "model"), *parts]


def measure(
    method: Method,
    task: Task,
    seed: int,
    *,
    epochs: int | None = None,
    trace: bool = False,
    scorer: PairScores | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Measure one method on one task.

    Models are trained on the CPU, so that numbers and times can be compared between machines.

    Args:
        method: What scores the pairs.
        task: The splits.
        seed: Of training.
        epochs: The most epochs.
        trace: Add the ``history`` of training and the ``anchors`` of each graph.
        scorer: Stands in for the method's own, unless that is a model.
        out: A folder for a model's run; an interrupted one in it resumes.

    Returns:
        A dict: ``test`` and ``val`` as `evaluate` gives them, the test of a link task with metrics per node, and
        ``seconds`` for learning and scoring. A model adds ``best_epoch``, ``epochs_run``, ``embedding`` (the test
        metrics of its embeddings alone, or None) and, if it has anchors, ``picking_seconds`` for choosing them once.
    """
    start = time.perf_counter()
    if method.kind == "model":
        from psgnn.models import build_model
        from psgnn.training import fit, load

        if out is not None and (out / RECORD).exists():
            run = load(out)
        else:
            model = build_model(method.name, task, method.preset, seed, **method.options)
            run = fit(model, task, epochs=epochs, seed=seed, device="cpu", out=out)
        found: dict[str, Any] = {
            "test": run.test,
            "val": run.val,
            "best_epoch": run.record["best_epoch"],
            "epochs_run": run.record["epochs_run"],
            "embedding": run.embedding_test,
        }
        if trace:
            found |= {"history": run.history, "anchors": run.anchors}
        seconds = time.perf_counter() - start
        if out is not None:  # what was resumed took longer than since now
            seconds = max(seconds, run.record["seconds"])
        return {**found, **_picking_time(run), "seconds": seconds}
    # In one call, because some rules prepare the whole graph before the first pair.
    pairs = np.concatenate([task.val.pairs, task.test.pairs], axis=1)
    score = scorer or _scorer(method, task, seed)
    scores = score(pairs)
    size = task.val.labels.size
    found = {"test": evaluate(task.test, scores[size:]), "val": evaluate(task.val, scores[:size])}
    at_test = task.at_test()
    if at_test is not task and method.kind != "peer":  # peers learn from the visible graph alone
        score = scorer or _scorer(method, at_test, seed)
        found["test"] = evaluate(task.test, score(task.test.pairs))
    seconds = time.perf_counter() - start
    found["test"] |= task.metrics_per_node(score, seed)
    return {**found, "seconds": seconds}


def _picking_time(run: Run) -> dict[str, float]:
    """The time to choose anchors on a view of the graph on which nothing has been measured yet."""
    if run.choice is None:
        return {}
    if "choosing_seconds" in run.record:  # by a picker that has learned before training
        return {"picking_seconds": run.record["choosing_seconds"]}
    view = run.view.without(run.view.union)
    start = time.perf_counter()
    run.pick(view)
    return {"picking_seconds": time.perf_counter() - start}


def _scorer(method: Method, task: Task, seed: int) -> PairScores:
    if method.kind == "oracle":
        return task.true_labels
    if method.kind == "peer":
        return PEERS[method.name](task, seed)
    if method.kind == "pretrained":
        names = [graph.names for graph in task.graphs]
        strict = method.options.get("strict", False)
        return pretrained(method.name).on_union(task.union, names, strict=strict).score
    return lambda pairs: score_pairs(method.name, task.union, pairs, seed)


class InterruptedComparison(KeyboardInterrupt):
    """Someone pressed Ctrl-C; ``rows`` are as `compare` gives them, of what was measured until then."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__()
        self.rows = rows


def compare(
    graphs: Sequence[Graph],
    task: str,
    *,
    models: Sequence[str | Method] = (),
    peers: Sequence[str] = (),
    rules: Sequence[str] | None = None,
    ablate: bool = False,
    preset: str = "best",
    seeds: int = 3,
    first_seed: int = 0,
    epochs: int | None = None,
    task_options: Mapping[str, Any] | None = None,
    records: bool = False,
    show_progress: bool = False,
) -> list[dict[str, Any]]:
    """Compare methods on the same splits: those of the seeds ``first_seed .. first_seed + seeds - 1``.

    Ctrl-C raises an `InterruptedComparison`, which has the rows of what was measured until then.

    Args:
        graphs: What the tasks are made of.
        task: ``link`` or ``pair``.
        models: Names of models, with or without a preset (``psgnn/paper``), names of peers, or methods.
        peers: Names of peers.
        rules: Names of training-free rules. Default: all of them, also those of other packages.
        ablate: Compare ``psgnn`` with itself without each of its parts, and with nothing else.
        preset: Of the models that are named without one.
        seeds: Number of splits.
        first_seed: Of the first split.
        epochs: The most epochs of every model. Default: each model's own setting.
        task_options: Such as ``{"negatives": "degree"}``.
        records: Add to every row what `measure` gave for each seed, as ``records``.
        show_progress: Show a bar with the time left.

    Returns:
        One row per method, the best test AUC first: ``name``, ``kind``, the mean ``seconds`` for one split, and for
        each metric the list of its values by seed, with ``<metric>_mean`` and ``<metric>_sd``.
    """
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more, found {seeds}")
    if ablate:
        methods = ablations()
    else:
        methods = [name if isinstance(name, Method) else _method(name, preset) for name in models]
        methods += [Method(name, "peer") for name in peers]
        if rules is None:
            rules = [*HEURISTICS.usable(), *kind_rules(as_graph(graphs[0]).kind if graphs else ())]
        methods += [Method(name, "rule") for name in rules]
    if find_spec("torch") is None and any(method.kind == "model" for method in methods):
        raise MissingExtraError("torch", "train", "a comparison with models (all but --models none)")
    # What is quick comes first: a peer that is not installed is found out before hours of training.
    methods.sort(key=lambda method: ("oracle", "rule", "pretrained", "peer", "model").index(method.kind))
    by_title = _by_title(methods)
    measured: dict[str, list[dict[str, Any]]] = {title: [] for title in by_title}

    def rows() -> list[dict[str, Any]]:
        found = [
            {
                "name": title,
                "kind": by_title[title].kind,
                **_summary(runs),
                **({"records": runs} if records else {}),
            }
            for title, runs in measured.items()
            if runs
        ]
        return sorted(found, key=lambda row: -float(row["auc_mean"]))

    try:
        with Bar("comparing", seeds * len(by_title), show=show_progress) as bar:
            for seed in range(first_seed, first_seed + seeds):
                split = make_task(graphs, task, seed, **(task_options or {}))
                for title, method in by_title.items():
                    bar.update(sum(map(len, measured.values())), f"{title}, split {seed}")
                    measured[title].append({"seed": seed, **measure(method, split, seed, epochs=epochs)})
    except KeyboardInterrupt:
        raise InterruptedComparison(rows()) from None
    return rows()


def _by_title(methods: Sequence[Method]) -> dict[str, Method]:
    """A method that is asked for twice has one row; two methods of one title are an error."""
    found: dict[str, Method] = {}
    for method in methods:
        if found.setdefault(method.title, method) != method:
            raise InputError(f"two methods have the name '{method.title}'; give one of them another label")
    return found


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"seconds": float(np.mean([run["seconds"] for run in runs]))}
    for metric in runs[0]["test"]:
        values = [float(run["test"][metric]) for run in runs]
        summary[metric] = values
        summary[f"{metric}_mean"] = float(np.mean(values))
        summary[f"{metric}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return summary
