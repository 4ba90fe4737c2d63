"""A trained model on the graphs it was trained on, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from psgnn.console import html_line, html_table, progress, shortened
from psgnn.errors import InputError
from psgnn.models._channels import NODE_BLOCK, ChannelEncoder
from psgnn.models._config import ModelConfig
from psgnn.models._models import PAIR_BLOCK, PositionModel, model_of
from psgnn.positions._choices import AnyChoice, Choice, SetChoice, choice_of, choice_tensors, is_sound
from psgnn.positions._view import View, view_of
from psgnn.training import _runs as runs
from psgnn.training._devices import fitting_threads

MOST_GRAPHS = 10_000_000  # that a run could have been given


@dataclass(eq=False)
class Result:
    """A trained model on the graphs it was trained on.

    ``val`` and ``test`` hold ``auc`` (mean over graphs), ``auc_pooled`` and ``ap``; ``history`` one entry for each
    validation (``epoch``, ``loss``, validation metrics, and the ``anchors`` of that moment where training can change
    them and they are at most 1000: union ids, lists of them for P-GNN's sets); ``anchors`` the union ids of each
    graph's anchors (sets of them for P-GNN); ``embedding_test`` the test metrics of the embeddings' own distance, where
    pairs are scored by more than that; ``hidden`` the links ``[2, H]`` of the graphs that the model was not shown;
    ``others`` the same model seen from other anchors, whose scores are averaged with its own; ``numbers`` those of the
    graphs among all that were given, where some could not be split and are not here, else nothing.
    """

    model: PositionModel
    view: View
    choice: AnyChoice | None
    val: dict[str, float]
    test: dict[str, float]
    history: list[dict[str, Any]]
    record: dict[str, Any]
    node_names: list[list[str]]
    embedding_test: dict[str, float] | None = None
    hidden: torch.Tensor = field(default_factory=lambda: torch.zeros(2, 0, dtype=torch.long))
    others: tuple[Result, ...] = ()
    numbers: tuple[int, ...] = ()

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

    @torch.no_grad()
    def embed(self, graphs: list[Data] | None = None, *, show_progress: bool = False) -> torch.Tensor:
        """Embeddings ``[N, d]`` of the trained graphs, or of others that the model has not seen."""
        if graphs is not None:
            return self.on(graphs).embed(show_progress=show_progress)
        self.model.eval()
        if not isinstance(self.model.encoder, ChannelEncoder):
            h: torch.Tensor = self.model(self.view, self.choice)
            return h.cpu()
        blocks = torch.split(torch.arange(self.view.union.num_nodes), NODE_BLOCK)
        return self._in_blocks(self.model.encoder, blocks, "embedding", show_progress)

    @torch.no_grad()
    def score(
        self, pairs: torch.Tensor, graphs: list[Data] | None = None, *, show_progress: bool = False
    ) -> torch.Tensor:
        """Logits ``[P]`` of pairs ``[2, P]`` (ids in the disjoint union); higher means more likely."""
        if graphs is not None:
            return self.on(graphs).score(pairs, show_progress=show_progress)
        pairs = torch.as_tensor(pairs)
        if pairs.dim() != 2 or pairs.size(0) != 2:
            raise InputError(f"pairs must have the shape [2, P], found {list(pairs.shape)}")
        if pairs.is_floating_point() or pairs.is_complex() or pairs.dtype == torch.bool:
            raise InputError(f"pairs must be integers, found {pairs.dtype}")
        pairs = pairs.long()
        count = self.view.union.num_nodes
        if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < count:
            raise InputError(f"pairs name nodes {int(pairs.min())}..{int(pairs.max())} of 0..{count - 1}")
        self.model.eval()
        if not isinstance(self.model.encoder, ChannelEncoder):
            return self.model.predict(self.view, self.choice, pairs.to(self.view.x.device)).cpu()
        blocks = torch.split(pairs, PAIR_BLOCK, dim=1)
        with fitting_threads(count):
            scores = self._in_blocks(self.model.predict, blocks, "scoring pairs", show_progress)
        for other in self.others:
            scores = scores + other.score(pairs, show_progress=show_progress)
        return scores / (1 + len(self.others))

    def _in_blocks(
        self, part: Callable[..., torch.Tensor], blocks: Sequence[torch.Tensor], what: str, show: bool
    ) -> torch.Tensor:
        """All blocks one after another, with a bar; numbers do not depend on whether it is shown."""
        device = self.view.x.device
        shown = progress(blocks, what, show=show)
        return torch.cat([part(self.view, self.choice, block.to(device)).cpu() for block in shown])

    @torch.no_grad()
    def on(self, graphs: list[Data]) -> Result:
        """The trained model on other graphs, with anchors that it picks there; the metrics stay those of training."""
        view, choice = self._elsewhere(graphs)
        nothing = torch.zeros(2, 0, dtype=torch.long)
        return replace(
            self, view=view, choice=choice, node_names=names_of(graphs), hidden=nothing, others=(), numbers=()
        )

    def _repr_html_(self) -> str:
        """Metrics, settings and the names of the anchors, for notebooks; names are escaped."""
        config, union = self.model.config, self.view.union
        parts = {"validation": self.val, "test": self.test, "test, embeddings alone": self.embedding_test}
        rows = [
            [name, *(f"{part[key]:.4f}" if key in part else "-" for key in self.test)]
            for name, part in parts.items()
            if part is not None
        ]
        title = f"{config.name} ({config.preset}), {config.task} task, seed {self.record.get('seed', config.seed)}"
        size = f"{union.num_graphs} graphs, " if union.num_graphs > 1 else ""
        size += f"{union.num_nodes} nodes, {union.adjacency.num_edges} visible edges"
        if "best_epoch" in self.record:
            size += f"; best epoch {self.record['best_epoch']} of {self.record['epochs_run']}"
        lines = html_line(size) + (html_line(f"anchors: {self._anchor_text()}") if self.choice else "")
        return html_table(title, ["pairs", *self.test], rows) + lines

    def _anchor_text(self) -> str:
        names = [name for part in self.node_names for name in part]
        if isinstance(self.choice, Choice):
            return shortened([names[v] for v in self.choice.listed()])
        return f"{len(self.choice.listed())} sets of nodes" if self.choice else "none"

    def _elsewhere(self, graphs: list[Data]) -> tuple[View, AnyChoice | None]:
        seen = view_of(graphs)
        view = View(seen.union, seen.x.to(self.view.x.device))
        if view.x.size(1) != self.view.x.size(1):
            raise InputError(
                f"the model was trained on {self.view.x.size(1)} features, the graphs have {view.x.size(1)}"
            )
        self.model.eval()
        return view, self.model.pick(view)


def names_of(graphs: Sequence[Data]) -> list[list[str]]:
    """The names of the nodes of every graph, their numbers where they have none."""
    return [
        [str(name) for name in graph.node_names]
        if "node_names" in graph
        else [str(v) for v in range(int(graph.num_nodes))]
        for graph in graphs
    ]


def save_run(folder: Path, result: Result) -> None:
    """The record comes last: a run that has one is whole."""
    runs.write_config(folder, result.model.config)
    runs.write_view(folder, result.view, result.node_names, result.hidden)
    tensors = {f"model.{key}": value for key, value in result.model.state_dict().items()}
    runs.write_tensors(folder / runs.WEIGHTS, tensors | choice_tensors(result.choice))
    runs.write_record(folder, result.record)
    (folder / runs.STATE).unlink(missing_ok=True)


def load(run_dir: str | Path) -> Result:
    """The result of a finished run; its embeddings and scores are bit-identical to those after training."""
    folder = Path(run_dir)
    record = runs.read_record(folder)
    config = runs.read_config(folder)
    view, names, hidden = runs.read_view(folder)
    tensors, _ = runs.read_tensors(folder / runs.WEIGHTS)
    weights = {key[6:]: value for key, value in tensors.items() if key.startswith("model.")}
    try:
        choice = choice_of(tensors)
        kind = {"none": type(None), "random-sets": SetChoice}.get(config.picker, Choice)
        if not isinstance(choice, kind) or not is_sound(choice, view.union):
            raise ValueError("these are no anchors of the graph")
        if config.in_channels != view.x.size(1):
            raise ValueError(f"{config.in_channels} features expected, the graph has {view.x.size(1)}")
        _check_weights(config, weights)
        model = model_of(config)
        model.load_state_dict(weights)
        metrics, numbers = _checked_metrics(record), _checked_numbers(record, len(names))
    # What torch raises depends on what is wrong, and settings can be anything.
    except (RuntimeError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"{folder}: the weights do not fit the settings ({reason}); train again") from None
    embedding_test = record.get("embedding_test")
    return Result(model, view, choice, *metrics, record, names, embedding_test, hidden, numbers=numbers)


def _check_weights(config: ModelConfig, weights: dict[str, torch.Tensor]) -> None:
    """Compare with what such a model has before there is one: settings may ask for any amount of memory."""
    parts = max(len(weights), 8)
    for name in ("layers", "scorer_layers", "members", "heads"):
        if getattr(config, name) > parts:
            raise ValueError(f"{name}={getattr(config, name)}, but there are {len(weights)} tensors")
    with torch.device("meta"):
        expected = {
            key: (list(value.shape), value.dtype) for key, value in model_of(config).state_dict().items()
        }
    for key in expected.keys() ^ weights.keys():
        raise ValueError(f"'{key}' is {'missing' if key in expected else 'unknown'}")
    for key, value in weights.items():
        if (list(value.shape), value.dtype) != expected[key]:
            raise ValueError(f"'{key}' is {value.dtype} {list(value.shape)}, expected {expected[key]}")
        if not bool(value.isfinite().all()):
            raise ValueError(f"'{key}' has values that are no numbers")


def _checked_metrics(
    record: dict[str, Any],
) -> tuple[dict[str, float], dict[str, float], list[dict[str, Any]]]:
    val, test, history = record["val"], record["test"], record["history"]
    if not (isinstance(val, dict) and isinstance(test, dict) and isinstance(history, list)):
        raise ValueError("the record has no metrics")
    if not all(isinstance(entry, dict) for entry in history):
        raise ValueError("the record has no history")
    return val, test, history


def _checked_numbers(record: dict[str, Any], graphs: int) -> tuple[int, ...]:
    numbers = tuple(record.get("graph_numbers", ()))
    rising = all(isinstance(number, int) for number in numbers) and list(numbers) == sorted(set(numbers))
    if numbers and not (rising and numbers[0] >= 0 and len(numbers) == graphs and numbers[-1] < MOST_GRAPHS):
        raise ValueError("the record has no numbers of the graphs")
    return numbers
