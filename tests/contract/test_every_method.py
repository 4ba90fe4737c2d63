"""What every entry of a registry has to keep, so that a new one is held to it without a test of its own."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import adjacency_of
from psgnn import Graph
from psgnn.models._presets import NAMED_MODELS
from psgnn.scoring._rules import KIND_RULES
from psgnn.tasks import Task
from psgnn.training._compare import REGISTRIES, Method, make_task, measure

METHODS = [
    *(Method(name, "model", preset) for name, preset in NAMED_MODELS),
    # node2vec is another project's program: tests/test_peers.py.
    *(Method(name, "peer") for name in REGISTRIES["peer"] if name != "node2vec"),
    *(Method(name, kind) for kind in ("pretrained", "rule") for name in REGISTRIES[kind]),
]


# How a table of edges is read for a rule that needs what its edges carry.
READ_AS: dict[str, dict[str, Any]] = {
    "directed": {"directed": True},
    "strengths": {"weight": "value", "weight_is": "strength"},
    "lengths": {"weight": "value", "weight_is": "length"},
    "times": {"time": "value"},
}


def task_of(name: str, kind: str | None = None) -> Task:
    edges = adjacency_of(nx.random_partition_graph([20, 20, 20], 0.4, 0.03, seed=1)).edges()
    classes = np.repeat(np.arange(3), 20)
    if kind is None:
        return make_task([Graph.from_edges(edges, 60, y=classes)], name, seed=0)
    value = np.random.default_rng(2).permutation(edges.shape[1]) + 1
    graph = psgnn.read_graph(
        pl.DataFrame({"u": edges[0], "v": edges[1], "value": value}), sides=False, **READ_AS[kind]
    )
    assert graph.names == [str(v) for v in range(60)]
    return make_task([replace(graph, y=classes)], name, seed=0)


def turned(task: Task) -> Task:
    """The same task with links for non-links, and the other way round, in the test pairs alone."""
    other = copy(task)
    other.test = replace(task.test, labels=1 - task.test.labels)
    return other


def auc_of(method: Method, task: Task) -> tuple[float, float]:
    found = measure(method, task, seed=0, epochs=3 if method.kind == "model" else None)
    return found["val"]["auc"], found["test"]["auc"]


@pytest.mark.parametrize("task_name", ["link", "pair"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.name}-{method.kind}-{method.preset}")
def test_no_method_knows_the_answers(method: Method, task_name: str) -> None:
    """With all answers of the test turned round its scores stay, so its AUC becomes the rest to one."""
    rule = KIND_RULES.get(method.name)
    task = task_of(task_name, None if rule is None else rule.needs[0])
    val, test = auc_of(method, task)
    assert auc_of(method, turned(task)) == (val, pytest.approx(1 - test, abs=1e-12))


def test_who_knows_them_is_found_out() -> None:
    task, oracle = task_of("link"), Method("ceiling", "oracle")
    assert auc_of(oracle, task)[1] == auc_of(oracle, turned(task))[1] == 1.0
