"""What a run folder holds is not trusted: a state that does not fit is refused before anything uses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import psgnn
import psgnn.training._fit as training
from conftest import Command
from psgnn.errors import InputError
from psgnn.models._view import pack, unpack

Tensors = dict[str, torch.Tensor]
Change = Callable[[Tensors, dict[str, Any]], None]
GRAPH = ("communities", "--set", "communities=4", "--set", "size=8", "--epochs", "30")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Command], Path]:
    """Folders with an interrupted run of a model each."""
    made: dict[str, Path] = {}

    def of(model: str, run: Command) -> Path:
        if model not in made:
            folder = tmp_path_factory.mktemp("runs") / model
            step = training._Trainer._epoch

            def stop(self: Any, number: int) -> float:
                if number == 22:
                    raise KeyboardInterrupt
                return step(self, number)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(training._Trainer, "_epoch", stop)
                assert run("train", *GRAPH, "--model", model, "--out", folder)[0] == 130
            made[model] = folder
        return made[model]

    return of


def _cut_moments(tensors: Tensors, document: dict[str, Any]) -> None:
    for key in tensors:
        if key.startswith("optimizer.") and "exp_avg" in key:
            tensors[key] = tensors[key].flatten()[:1].clone()


def _far_sets(tensors: Tensors, document: dict[str, Any]) -> None:
    tensors["choice.nodes"] = torch.full_like(tensors["choice.nodes"], 10**8)


def _put(name: str, value: torch.Tensor) -> Change:
    def change(tensors: Tensors, document: dict[str, Any]) -> None:
        tensors[name] = value

    return change


def _number(name: str, value: Any) -> Change:
    def change(tensors: Tensors, document: dict[str, Any]) -> None:
        document["numbers"][name] = value

    return change


def _set(name: str, value: Any) -> Change:
    def change(tensors: Tensors, document: dict[str, Any]) -> None:
        document[name] = value

    return change


def _without(prefix: str) -> Change:
    def change(tensors: Tensors, document: dict[str, Any]) -> None:
        for key in [key for key in tensors if key.startswith(prefix)]:
            del tensors[key]

    return change


CHANGES: list[tuple[str, str, Change]] = [
    ("psgnn", "short moments", _cut_moments),
    ("psgnn", "moments of no weights", _put("optimizer.9999.step", torch.ones(()))),
    ("psgnn", "moments without a number", _put("optimizer.x.step", torch.ones(()))),
    ("psgnn", "a moment of another kind", _put("optimizer.0.max_exp_avg_sq", torch.ones(()))),
    ("psgnn", "no step yet", _put("optimizer.0.step", torch.zeros(()))),
    ("psgnn", "unknown weights", _put("model.more", torch.ones(3))),
    ("psgnn", "unknown best weights", _put("best.more", torch.ones(3))),
    ("psgnn", "no best weights", _without("best.")),
    ("psgnn", "no weights", _without("model.")),
    ("psgnn", "no anchors", _without("choice.")),
    ("psgnn", "all anchors missing", _put("choice.nodes", torch.full((1, 5), -1))),
    ("psgnn", "weights of anchors as one number", _put("choice.weight", torch.tensor(1.0))),
    ("pgnn", "sets beyond the graph", _far_sets),
    ("pgnn", "single nodes in place of sets", _without("choice.starts")),
    ("gcn", "anchors of a model without", _put("choice.nodes", torch.zeros(1, 1, dtype=torch.long))),
    ("gcn", "an epoch that is not a number", _number("epoch", "7")),
    ("gcn", "an epoch below zero", _number("epoch", -1)),
    ("gcn", "a loss that is not finite", _number("loss", float("nan"))),
    ("gcn", "another number", _number("more", 1)),
    ("gcn", "no numbers", _set("numbers", [])),
    ("gcn", "no history", _set("history", None)),
    ("gcn", "a history of something else", _set("history", [{"epoch": 1}])),
    ("gcn", "a history of huge numbers", _set("history", [{"epoch": 10**400, "loss": 1.0, "auc": 0.5}])),
    ("gcn", "another identity", _set("identity", {"config": 5, "seed": 0})),
    ("gcn", "no identity", _set("identity", None)),
]


@pytest.mark.parametrize(("model", "what", "change"), CHANGES, ids=[change[1] for change in CHANGES])
def test_a_state_that_does_not_fit_is_refused(
    model: str,
    what: str,
    change: Change,
    run: Command,
    interrupted: Callable[[str, Command], Path],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(interrupted(model, run), folder)
    state = folder / "state.safetensors"
    tensors, document = unpack(state.read_bytes())
    if what == "anchors of a model without":
        tensors["choice.weight"] = torch.ones(1, 1)
    change(tensors, document)
    state.write_bytes(pack(tensors, document))
    before = state.read_bytes()
    code, out, err = run("train", *GRAPH, "--model", model, "--out", folder)
    assert (code, out) == (2, ""), what
    assert err.startswith("psgnn: error: ")
    assert str(folder) in err
    assert "--force" in err
    assert len(err.splitlines()) == 1
    assert state.read_bytes() == before
    if what == "short moments":  # what cannot be resumed can be replaced
        assert run("train", *GRAPH, "--model", model, "--out", folder, "--force", "--quiet")[0] == 0


@pytest.mark.parametrize("model", ["psgnn", "pgnn", "gcn"])
def test_an_unchanged_state_is_resumed(
    model: str, run: Command, interrupted: Callable[[str, Command], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(interrupted(model, run), folder)
    assert run("train", *GRAPH, "--model", model, "--out", folder)[0] == 0


def test_scores_of_anchors_that_are_no_numbers_are_one_line() -> None:
    task = psgnn.LinkPrediction(psgnn.load_dataset("communities", communities=4, size=8), seed=0)
    model = psgnn.build_model("psgnn", task, preset="paper")
    with torch.no_grad():
        for weights in model.parameters():
            weights.fill_(3e38)
    with pytest.raises(InputError, match="scores of anchors are not numbers"):
        psgnn.fit(model, task, epochs=2)
