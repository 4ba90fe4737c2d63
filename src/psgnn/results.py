"""A trained model on the graphs it was trained on, in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from psgnn import runs
from psgnn.errors import InputError
from psgnn.nn.choices import AnyChoice, choice_of, choice_tensors
from psgnn.nn.models import PositionModel, model_of
from psgnn.nn.view import View, view_of


@dataclass(eq=False)
class Result:
    """A trained model on the graphs it was trained on.

    ``val`` and ``test`` hold ``auc`` (mean over graphs), ``auc_pooled`` and ``ap``; ``history`` one entry for each
    validation; ``anchors`` the union ids of each graph's anchors (sets of them for P-GNN); ``embedding_test`` the test
    metrics of the embeddings' own distance, where pairs are scored by more than that.
    """

    model: PositionModel
    view: View
    choice: AnyChoice | None
    val: dict[str, float]
    test: dict[str, float]
    history: list[dict[str, float]]
    record: dict[str, Any]
    node_names: list[list[str]]
    embedding_test: dict[str, float] | None = None

    @property
    def anchors(self) -> list[Any] | None:
        """Anchors of each graph, ids in the disjoint union; None for models without anchors."""
        if self.choice is None:
            return None
        return self.choice.per_graph(self.view)

    @torch.no_grad()
    def embed(self, graphs: list[Data] | None = None) -> torch.Tensor:
        """Embeddings ``[N, d]`` of the trained graphs, or of others that the model has not seen."""
        if graphs is None:
            return self._embed(self.view, self.choice)
        return self._embed(*self._elsewhere(graphs))

    @torch.no_grad()
    def score(self, pairs: torch.Tensor, graphs: list[Data] | None = None) -> torch.Tensor:
        """Logits ``[P]`` of pairs ``[2, P]`` (ids in the disjoint union); higher means more likely."""
        view, choice = (self.view, self.choice) if graphs is None else self._elsewhere(graphs)
        pairs = torch.as_tensor(pairs)
        if pairs.dim() != 2 or pairs.size(0) != 2:
            raise InputError(f"pairs must have the shape [2, P], found {list(pairs.shape)}")
        if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < view.union.num_nodes:
            raise InputError(
                f"pairs name nodes {int(pairs.min())}..{int(pairs.max())} of 0..{view.union.num_nodes - 1}"
            )
        self.model.eval()
        return self.model.predict(view, choice, pairs)

    def _elsewhere(self, graphs: list[Data]) -> tuple[View, AnyChoice | None]:
        view = view_of(graphs)
        if view.x.size(1) != self.view.x.size(1):
            raise InputError(
                f"the model was trained on {self.view.x.size(1)} features, the graphs have {view.x.size(1)}"
            )
        self.model.eval()
        return view, self.model.pick(view)

    def _embed(self, view: View, choice: AnyChoice | None) -> torch.Tensor:
        self.model.eval()
        h: torch.Tensor = self.model(view, choice)
        return h


def save_run(folder: Path, result: Result) -> None:
    """The record comes last: a run that has one is whole."""
    runs.write_config(folder, result.model.config)
    runs.write_view(folder, result.view, result.node_names)
    tensors = {f"model.{key}": value for key, value in result.model.state_dict().items()}
    runs.write_tensors(folder / runs.WEIGHTS, tensors | choice_tensors(result.choice))
    runs.write_record(folder, result.record)
    (folder / runs.STATE).unlink(missing_ok=True)


def load(run_dir: str | Path) -> Result:
    """The result of a finished run; its embeddings and scores are bit-identical to those after training."""
    folder = Path(run_dir)
    record = runs.read_record(folder)
    config = runs.read_config(folder)
    view, names = runs.read_view(folder)
    tensors, _ = runs.read_tensors(folder / runs.WEIGHTS)
    model = model_of(config)
    try:
        model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
        metrics = record["val"], record["test"], record["history"]
    except (RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"{folder}: the weights do not fit the settings ({reason}); train again") from None
    return Result(model, view, choice_of(tensors), *metrics, record, names, record.get("embedding_test"))
