"""A trained model on the graphs it was trained on, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from psgnn.console import html_line, html_table, progress
from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph, GraphBatch, IntArray, as_graph
from psgnn.graph._kinds import Kinds
from psgnn.models._anchor_sets import (
    AnyAnchors,
    anchor_tensors,
    anchors_of_tensors,
)
from psgnn.models._channels import NODE_BLOCK
from psgnn.models._config import ModelConfig
from psgnn.models._models import PAIR_BLOCK, PositionModel, model_of
from psgnn.models._view import TensorView, view_of
from psgnn.positions._context import (
    LEAST_HIDDEN,
    MOST_REHEARSALS,
    REHEARSAL_SEED,
    number_rehearsed,
    rehearsal_links,
)
from psgnn.positions._frame import Frame
from psgnn.scoring._calibration import Rehearsed, rehearse
from psgnn.scoring._changes import Changes, Kept
from psgnn.scoring._names import node_ids, pair_ids
from psgnn.scoring._scorer import Evidence, Questions, Similarity
from psgnn.training import _runs as runs
from psgnn.training._checkpoints import check_anchors, check_tensors
from psgnn.training._folder import CALIBRATION, STATE, WEIGHTS, read_record
from psgnn.training._kept import find_states, keep_anchors
from psgnn.training._steps import fitting_threads, one_thread

# Nodes of runs that are calibrated when they are trained. Smaller ones are soon calibrated; a million takes longer
# than training.
CALIBRATED_NODES = 20_000, 200_000
EVIDENCE = "scores", "labels", "weights"
MOST_GRAPHS = 10_000_000  # that a run could have been given
# Of a record, what is true of the training graphs alone.
OF_GRAPHS = ("val", "test", "embedding_test", "history", "anchors", "graph_numbers", "task")


class Unmeasured(dict[str, float]):
    """The metrics of a model on graphs where it was not tested: an empty dict that says so when one is read."""

    def __missing__(self, metric: str) -> float:
        raise InputError(
            f"no {metric}: the model was not tested on these graphs; "
            "the metrics of training are in the result of fit or load"
        )


@dataclass(eq=False)
class Run(Questions):
    """A trained model on the graphs it was trained on, or on others (`on`), where it has no metrics and no history.

    It is a `psgnn.scoring.Scorer` on the whole graph: predictions see every known link, the held-out ones too. The
    metrics belong to `evaluation_scorer`, which does not see them.

    Attributes:
        model: The trained model.
        view: The graphs as training saw them.
        choice: The anchors.
        val: Validation metrics: ``auc`` (mean over graphs), ``auc_pooled``, ``ap`` and more.
        test: The same of the test pairs.
        history: One entry per validation: ``epoch``, ``loss`` and metrics. Where training can change the anchors and
            they are at most 1000, also the ``anchors`` of that moment.
        record: What is kept about the training.
        node_names: The names of the nodes of each graph.
        embedding_test: Test metrics of the distance of embeddings, where pairs are scored by more than that.
        hidden: The held-out links ``[2, H]``.
        numbers: Numbers of these graphs among all that were given, where some could not be split; else empty.
        origin: The run on its own graphs, if it is on others.
        kept: What the coordinates of the run share with these graphs, if `on` kept them.
        evaluated: The model that the metrics belong to, if `model` was trained again on all links.
        whole: What all known edges carry, such as strengths, where the graphs are not plain.
    """

    model: PositionModel
    view: TensorView
    choice: AnyAnchors | None
    val: dict[str, float]
    test: dict[str, float]
    history: list[dict[str, Any]]
    record: dict[str, Any]
    node_names: list[list[str]]
    embedding_test: dict[str, float] | None = None
    hidden: IntArray = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    numbers: tuple[int, ...] = ()
    origin: Run | None = None
    kept: Kept | None = None
    evaluated: PositionModel | None = None
    whole: Kinds | None = None

    @cached_property
    def changes(self) -> Changes | None:
        """How the graphs differ from those of the run, where `on` kept its coordinates; else None."""
        return None if self.kept is None else self.kept.changes(self)

    @property
    def names_by_number(self) -> list[list[str]]:
        """The names of the nodes of every graph that was given; none of those that are not here."""
        if not self.numbers:
            return self.node_names
        here = dict(zip(self.numbers, self.node_names, strict=True))
        return [here.get(number, []) for number in range(max(self.numbers) + 1)]

    @property
    def anchors(self) -> list[Any] | None:
        """Anchors of each graph, ids in the disjoint union; None for models without anchors."""
        if self.choice is None:
            return None
        return self.choice.per_graph(self.view)

    @property
    def batch(self) -> GraphBatch:
        """The graphs with all their links."""
        return self._seen.union

    @cached_property
    def _seen(self) -> TensorView:
        """What predictions are made from: the graphs with the held-out links."""
        if not self.hidden.size:
            return self.view
        union = self.view.union
        if self.whole is None:
            edges = np.concatenate([union.adjacency.edges(), self.hidden], axis=1)
        else:
            edges = self.whole.edges
        adjacency = Adjacency.from_edges(edges[0], edges[1], union.num_nodes)
        return self.view.without(GraphBatch(adjacency, union.ptr, self.whole))

    def evaluation_scorer(self) -> Run:
        """The run on the graphs without their held-out links: the scorer that the metrics were measured with."""
        return replace(
            self, hidden=np.zeros((2, 0), np.int64), model=self.evaluated or self.model, evaluated=None
        )

    def rehearsals(self) -> Iterator[tuple[Run, IntArray]]:
        """Scorers that do not see some of the held-out links, and these; elsewhere some of the graphs' links.

        Hiding all of them at once would say too little: predictions see them all. The weights are those that have
        learned from none of them.
        """
        if self.task != "link":
            return
        if self.origin is not None:
            for rest, links in rehearsal_links(self.batch):
                yield replace(self, view=self.view.without(rest)), links
            return
        if self.hidden.shape[1] < LEAST_HIDDEN:
            return
        tested = self.evaluation_scorer()
        if self.whole is not None:
            yield tested, self.hidden
            return
        union, count = self.view.union, max(number_rehearsed(self.batch), LEAST_HIDDEN)
        order = np.random.default_rng(REHEARSAL_SEED).permutation(self.hidden.shape[1])
        for part in np.array_split(order, max(order.size // count, 1))[:MOST_REHEARSALS]:
            shown = np.delete(self.hidden, part, axis=1)
            edges = np.concatenate([union.adjacency.edges(), shown], axis=1)
            adjacency = Adjacency.from_edges(edges[0], edges[1], union.num_nodes)
            seen = self.view.without(GraphBatch(adjacency, union.ptr))
            yield replace(tested, view=seen), self.hidden[:, part]

    @property
    def task(self) -> str:
        """What the scores are about: ``link`` or ``pair``."""
        return self.model.config.task

    @property
    def similarity(self) -> Similarity | None:
        """How a score follows from two embeddings; None where it rests on more than these."""
        return self.model.decoder.similarity

    @property
    def embeds_some(self) -> bool:
        """Whether embedding some of the nodes takes less than embedding all of them."""
        return self.model.encoder.reads_positions

    @torch.no_grad()
    def embed(self, nodes: Any = None, *, show_progress: bool = False) -> Floats:
        """Embed some nodes of the graphs, by name or id, or all: ``[n, d]``."""
        chosen = node_ids(self, nodes)
        self.model.eval()
        if not self.embeds_some:
            return _finite(self.model(self._seen, self.choice))[chosen]
        blocks = torch.split(torch.from_numpy(chosen), NODE_BLOCK)
        return self._in_blocks(self.model.encoder, blocks, "embedding", show_progress)

    def evidence(self, pairs: IntArray) -> Evidence | None:
        """What the scores of pairs ``[2, P]`` rest on, by kind, where the model reads positions pair by pair."""
        if self.similarity is not None:
            return None
        found = self.model.decoder.evidence(self.model.positions(self._seen, self.choice), pairs)
        if found is None:
            return None
        read = found.score

        def score(tables: Sequence[Floats], rows: Sequence[IntArray]) -> Floats:
            with one_thread():  # the tables are small
                return read(tables, rows)

        return replace(found, score=score)

    @torch.no_grad()
    def score_embedded(self, h: Floats, pairs: IntArray) -> Floats:
        """Score pairs ``[2, P]`` of rows of the embeddings ``h [N, d]`` by their dot product or distance alone."""
        device = self.view.x.device
        moved = torch.from_numpy(h).to(device), torch.from_numpy(pairs).to(device)
        return _finite(self.model.embedding_score(*moved))

    @torch.no_grad()
    def score(self, pairs: Any, *, show_progress: bool = False) -> Floats:
        """Score pairs: logits ``[P]``, higher means more likely.

        Pairs are ids ``[2, P]`` in the batch, names ``[("Ada", "Rune"), ...]``, or a table of two columns of names.
        """
        found = torch.from_numpy(pair_ids(self, pairs))
        self.model.eval()
        if not self.embeds_some:
            return _finite(self.model.predict(self._seen, self.choice, found.to(self.view.x.device)))
        with fitting_threads(self.batch.num_nodes):
            blocks = torch.split(found, PAIR_BLOCK, dim=1)
            return self._in_blocks(self.model.predict, blocks, "scoring pairs", show_progress)

    def _in_blocks(
        self, part: Callable[..., torch.Tensor], blocks: Sequence[torch.Tensor], what: str, show: bool
    ) -> Floats:
        """All blocks one after another, with a bar; numbers do not depend on whether it is shown."""
        device = self.view.x.device
        shown = progress(blocks, what, show=show)
        found = [part(self._seen, self.choice, block.to(device)).cpu() for block in shown]
        return _finite(torch.cat(found))

    @torch.no_grad()
    def pick(self, view: TensorView) -> AnyAnchors | None:
        """The anchors that the model picks in another view."""
        self.model.eval()
        return self.model.pick(view)

    def on(self, graphs: Graph | Sequence[Graph], *, new_anchors: bool = False) -> Run:
        """The trained model on other graphs: in the same coordinates, if they are later versions of its own.

        A later version has nodes of the same names and some of the links. Anchors are found by name, and scales and
        axes are those of the run's graph. So nodes far from any change keep their vectors, and vectors of new nodes can
        be compared with them. An anchor that is gone is replaced by its nearest neighbour. `changes` lists added, gone
        and moved nodes. On any other graph, and with `new_anchors`, the model picks new anchors. The width of a vector
        is always the same.

        It was not tested there: ``val``, ``test`` and ``history`` are empty, ``embedding_test`` is None, and the record
        keeps what describes the model and its training alone.
        """
        listed = list(graphs) if isinstance(graphs, (list, tuple)) else [graphs]
        known = [as_graph(graph, f"graph {place}") for place, graph in enumerate(listed)]
        origin = self.origin or self
        seen = view_of(known)
        view = TensorView(seen.union, seen.x.to(self.view.x.device))
        if view.x.size(1) != self.view.x.size(1):
            raise InputError(
                f"the model was trained on {self.view.x.size(1)} features, the graphs have {view.x.size(1)}"
            )
        check_kinds(self.model.config.kinds, view.union)
        names, nothing = [graph.names for graph in known], np.zeros((2, 0), np.int64)
        self.model.eval()
        view.state_rows = find_states(origin, view, names)
        choice, kept = keep_anchors(origin, view, names, new_anchors=new_anchors)
        single = None if origin.choice is None else origin.choice.single
        if kept is not None and single is not None and self.embeds_some:
            view.frame = Frame(origin._seen, single, kept.match)
        return replace(
            self, view=view, choice=choice, node_names=names, hidden=nothing, numbers=(), origin=origin, kept=kept,
            whole=None,
            val=Unmeasured(), test=Unmeasured(), embedding_test=None, history=[],
            record={key: value for key, value in self.record.items() if key not in OF_GRAPHS},
        )  # fmt: skip

    def __repr__(self) -> str:
        config, union = self.model.config, self.view.union
        parts = [config.name, config.task, f"graphs={union.num_graphs}", f"nodes={union.num_nodes}"]
        parts += [f"test auc={self.test['auc']:.4f}"] if self.test else []
        return f"Run({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Metrics, settings and the names of the anchors, for notebooks; names are escaped."""
        config, union = self.model.config, self.view.union
        parts = {"validation": self.val, "test": self.test, "test, embeddings alone": self.embedding_test}
        measured = {name: part for name, part in parts.items() if part}
        rows = [
            [key, *(f"{part[key]:.4f}" if key in part else "-" for part in measured.values())]
            for key in self.test
        ]
        title = f"{config.name} ({config.preset}), {config.task} task, seed {self.record.get('seed', config.seed)}"
        size = f"{union.num_graphs} graphs, " if union.num_graphs > 1 else ""
        size += f"{union.num_nodes} nodes, {union.adjacency.num_edges} visible edges"
        if "best_epoch" in self.record:
            size += f"; best epoch {self.record['best_epoch']} of {self.record['epochs_run']}"
        lines = "" if self.test else html_line("not tested on these graphs")
        lines += html_line(size) + (html_line(f"anchors: {self._anchor_text()}") if self.choice else "")
        lines += html_line(
            "ask: run.predict(top=50), run.predict(of=NODE), run.similar(NODE), run.explain(A, B)"
        )
        return html_table(title, ["metric", *measured], rows) + lines

    def _anchor_text(self) -> str:
        names = [name for part in self.node_names for name in part]
        return "none" if self.choice is None else self.choice.described(names)


def check_kinds(kinds: Sequence[str], union: GraphBatch) -> None:
    """Complain about graphs that are of another kind than those that a model was trained on."""
    found = () if union.kinds is None else union.kinds.names
    if kinds and tuple(kinds) != found:
        raise InputError(
            f"the model was trained on graphs with {', '.join(kinds)}, found {', '.join(found) or 'a plain one'}; "
            "read the graph with the same options"
        )


def _finite(values: torch.Tensor) -> Floats:
    """The values as an array. The weights of a damaged run are numbers, but what they give need not be."""
    if not bool(values.isfinite().all()):
        raise InputError("the weights of the run give values that are not numbers; train again")
    return np.asarray(values.cpu().numpy())


def save_run(folder: Path, result: Run) -> None:
    """The record comes last: a run that has one is whole."""
    runs.write_config(folder, result.model.config)
    runs.write_view(folder, result.view, result.node_names, result.hidden, result.whole)
    tensors = {f"model.{key}": value for key, value in result.model.state_dict().items()}
    if result.evaluated is not None:
        tensors |= {f"evaluated.{key}": value for key, value in result.evaluated.state_dict().items()}
    runs.write_tensors(folder / WEIGHTS, tensors | anchor_tensors(result.choice))
    if result.task == "link" and CALIBRATED_NODES[0] <= result.batch.num_nodes <= CALIBRATED_NODES[1]:
        evidence = rehearse(result)
        if evidence is not None:
            tensors = {key: torch.from_numpy(part) for key, part in zip(EVIDENCE, evidence, strict=True)}
            runs.write_tensors(folder / CALIBRATION, tensors)
    runs.write_record(folder, result.record)
    (folder / STATE).unlink(missing_ok=True)


def load(run_dir: str | Path) -> Run:
    """Load a finished run. Its embeddings and scores are equal, bit for bit, to those after training."""
    folder = Path(run_dir)
    record = read_record(folder)
    config = runs.read_config(folder)
    view, names, hidden, whole = runs.read_view(folder)
    tensors, _ = runs.read_tensors(folder / WEIGHTS)
    try:
        choice = anchors_of_tensors(tensors)
        check_anchors(choice, config.picker, view.union)
        if config.in_channels != view.x.size(1):
            raise ValueError(f"{config.in_channels} features expected, the graph has {view.x.size(1)}")
        for kinds in (view.union.kinds, whole or view.union.kinds):
            if config.kinds and (kinds is None or list(kinds.names) != config.kinds):
                raise ValueError(f"edges with {', '.join(config.kinds)} expected, the graph has others")
        model = _model(config, tensors, "model.", names)
        refitted = any(key.startswith("evaluated.") for key in tensors)
        evaluated = _model(config, tensors, "evaluated.", names) if refitted else None
        numbers = _checked_numbers(record, len(names))
    # What torch raises depends on what is wrong, and settings can be anything.
    except (RuntimeError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"{folder}: the weights do not fit the settings ({reason}); train again") from None
    metrics = record["val"], record["test"], record["history"]
    embedding_test = record.get("embedding_test")
    run = Run(
        model, view, choice, *metrics, record, names, embedding_test, hidden,
        numbers=numbers, evaluated=evaluated, whole=whole,
    )  # fmt: skip
    if (folder / CALIBRATION).exists():
        rehearse(run, known=_read_evidence(folder / CALIBRATION))
    return run


def _read_evidence(path: Path) -> Rehearsed:
    """What the run was calibrated by when it was trained."""
    tensors, _ = runs.read_tensors(path)
    scores, labels, weights = (tensors.get(key, torch.empty(0)).numpy() for key in EVIDENCE)
    sizes = {part.shape for part in (scores, labels, weights)}
    sound = len(sizes) == 1 and scores.ndim == 1 and np.array_equal(np.unique(labels), [0, 1])
    if not (sound and np.isfinite([scores, weights]).all() and (weights > 0).all()):
        raise InputError(f"{path} is damaged; delete it, or train again")
    return scores.astype(np.float64), labels.astype(np.float64), weights.astype(np.float64)


def _model(
    config: ModelConfig, tensors: dict[str, torch.Tensor], prefix: str, names: list[list[str]]
) -> PositionModel:
    """The model of the tensors whose names begin with `prefix`."""
    weights = {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
    _check_weights(config, weights)
    model = model_of(config)
    model.find_anchors(names)
    model.load_state_dict(weights)
    return model


def _check_weights(config: ModelConfig, weights: dict[str, torch.Tensor]) -> None:
    """Compare with what such a model has before there is one: settings may ask for any amount of memory."""
    parts = max(len(weights), 8)
    for name in ("layers", "scorer_layers", "members", "heads"):
        if getattr(config, name) > parts:
            raise ValueError(f"{name}={getattr(config, name)}, but there are {len(weights)} tensors")
    with torch.device("meta"):
        expected = model_of(config).state_dict()
    check_tensors(weights, expected)


def _checked_numbers(record: dict[str, Any], graphs: int) -> tuple[int, ...]:
    numbers = tuple(record.get("graph_numbers", ()))
    rising = all(isinstance(number, int) for number in numbers) and list(numbers) == sorted(set(numbers))
    if numbers and not (rising and numbers[0] >= 0 and len(numbers) == graphs and numbers[-1] < MOST_GRAPHS):
        raise ValueError("the record has no numbers of the graphs")
    return numbers
