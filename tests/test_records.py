"""Commands refuse a run folder whose record, settings or weights were changed, in one line and without waiting."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import Command
from psgnn.models._view import pack, unpack

Record = dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Command], Path]:
    """The folder of a run whose anchors move, so that its history holds them."""
    folder = tmp_path_factory.mktemp("runs") / "run"

    def of(run: Command) -> Path:
        if not folder.exists():
            options = ("--set", "communities=4", "--set", "size=8", "--option", "picker=score")
            assert run("train", "communities", *options, "--epochs", "20", "--out", folder)[0] == 0
        return folder

    return of


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _put(key: str, value: Any) -> Callable[[Record], str]:
    return lambda record: json.dumps({**record, key: value})


def _text(key: str, value: str) -> Callable[[Record], str]:
    """Put JSON text that Python would not write."""
    return lambda record: json.dumps({**record, key: "HERE"}).replace('"HERE"', value)


def _history(**entries: Any) -> Callable[[Record], str]:
    return lambda record: json.dumps(
        {**record, "history": [{**entry, **entries} for entry in record["history"]]}
    )


RECORDS: dict[str, Callable[[Record], str]] = {
    "a seed as text": _put("seed", "x"),
    "a seed as a list": _put("seed", [1]),
    "a seed below zero": _put("seed", -5),
    "a fractional seed": _put("seed", 0.5),
    "no metrics": _put("test", {}),
    "metrics as text": _put("test", {"auc": "high"}),
    "validation as a list": _put("val", [1]),
    "NaN metrics": _text("test", '{"auc": NaN}'),
    "infinite seconds": _text("seconds", "1e999"),
    "nesting of 900": _text("versions", '{"a": ' + _nested(900) + "}"),
    "nesting of 100,000": _text("more", _nested(100_000)),
    "a lone surrogate": _text("command", '"\\ud800"'),
    "a lone surrogate as a key": _text("more", '{"\\udfff": 1}'),
    "an integer of 400 digits": _text("epochs_run", "9" * 400),
    "an integer of 5000 digits": _text("more", "9" * 5000),
    "fractional anchors": _history(anchors=[0.5, 1.25]),
    "anchors as text": _history(anchors="abc"),
    "anchors below zero": _history(anchors=[-3]),
    "a history without metrics": _put("history", [{"epoch": 1}]),
    "a history of texts": _history(loss="low"),
    "a history that is not a list": _put("history", {"epoch": 1}),
    "versions as a list": _put("versions", [1]),
    "a task of numbers": _put("task", {"negatives": 3}),
    "a command of numbers": _put("command", 7),
    "no table": lambda record: "[1]",
    "nothing": lambda record: "null",
}


@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS.keys())
def test_a_changed_record_is_one_line(
    change: Callable[[Record], str], run: Command, finished: Callable[[Command], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished(run), folder)
    path = folder / "record.json"
    path.write_text(change(json.loads(path.read_text())))
    for command in (("report", folder, "--out", "page.html"), ("predict", folder, "--top", "3")):
        code, out, err = run(*command)
        assert (code, out) == (2, ""), command
        assert err.startswith(f"psgnn: error: {path} is ")
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_record_without_a_seed_is_shown(
    run: Command, finished: Callable[[Command], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished(run), folder)
    path = folder / "record.json"
    record = json.loads(path.read_text())
    del record["seed"]
    path.write_text(json.dumps(record))
    assert run("report", folder, "--out", "page.html")[0] == 0


def test_settings_of_a_dotted_key_are_refused_at_once(
    run: Command, finished: Callable[[Command], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished(run), folder)
    settings = folder / "config.toml"
    settings.write_text(settings.read_text() + ".".join("a" * 100_000) + " = 1\n")
    started = time.perf_counter()
    code, _, err = run("predict", folder, "--top", "3")
    assert code == 2
    assert "config.toml has 2" in err
    assert time.perf_counter() - started < 5


def _every_weight(tensors: dict[str, torch.Tensor]) -> None:
    for key, value in tensors.items():
        if key.startswith("model.") and value.is_floating_point():
            tensors[key] = torch.full_like(value, 3e38)


def _no_anchors(tensors: dict[str, torch.Tensor]) -> None:
    tensors["choice.nodes"] = torch.full_like(tensors["choice.nodes"], -1)


def _one_weight(tensors: dict[str, torch.Tensor]) -> None:
    tensors["choice.weight"] = torch.tensor(1.0)


def _no_lanes(tensors: dict[str, torch.Tensor]) -> None:
    tensors["choice.nodes"], tensors["choice.weight"] = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 0)


@pytest.mark.parametrize("change", [_every_weight, _no_anchors, _one_weight, _no_lanes])
def test_changed_weights_are_one_line(
    change: Callable[[dict[str, torch.Tensor]], None],
    run: Command,
    finished: Callable[[Command], Path],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished(run), folder)
    path = folder / "weights.safetensors"
    tensors, document = unpack(path.read_bytes())
    change(tensors)
    path.write_bytes(pack(tensors, document))
    for command in (
        ("report", folder, "--out", "page.html"),
        ("predict", folder, "--top", "3"),
        ("embed", folder, "--out", "vectors.csv"),
        ("similar", folder, "0"),
        ("explain", folder, "0", "9"),
    ):
        code, out, err = run(*command)
        assert (code, out) == (2, ""), (command, err)
        assert "weights" in err
        assert len(err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
