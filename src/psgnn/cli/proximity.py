"""``psgnn distances --sets`` and ``--pairs``: named sets and named pairs instead of anchors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psgnn.console import flush_notes, print_json, print_table, say

if TYPE_CHECKING:
    import polars

    from psgnn.graph import Graph

SHOWN = 20


@dataclass(frozen=True)
class Output:
    """Where a table goes: to a file, to the terminal, or into a JSON document."""

    source: str
    path: str | None
    force: bool
    as_json: bool
    spreadsheet: bool

    def finish(self, frame: polars.DataFrame, what: str, about: dict[str, Any]) -> bool:
        """Write the table if there is a file, and the document if it was asked for; whether all is said."""
        from psgnn.graph._exports import write_pairs

        if self.path is not None:
            write_pairs(self.path, frame, force=self.force, spreadsheet=self.spreadsheet)
        if self.as_json:
            rows = {} if self.path is not None else {"rows": frame.to_dicts()}
            print_json({"graph": self.source, "out": self.path, **about, **rows})
        elif self.path is not None:
            flush_notes()
            say(f"{what} are in {self.path}")
        return self.as_json


def answer_sets(
    graph: Graph, sets: Path, output: Output, *, samples: int, bin_size: int, seed: int, show_progress: bool
) -> None:
    """Distances of every node to the sets in a file, and of the sets to each other."""
    import polars as pl

    from psgnn.distances._proximity import measure_sets
    from psgnn.graph._names import read_sets

    members = {name: nodes.tolist() for name, nodes in read_sets(sets, graph.names).items()}
    found = measure_sets(
        graph, members, samples=samples, seed=seed, bin_size=bin_size, show_progress=show_progress
    )
    counts = [{"set": name, "members": len(nodes)} for name, nodes in members.items()]
    about = {
        "nodes": graph.num_nodes,
        "samples": samples,
        "bin_size": bin_size,
        "seed": seed,
        "sets": counts,
        "proximity": found.sets.to_dicts(),
    }
    kind = "set" if len(members) == 1 else "sets"
    if output.finish(found.nodes, f"distances of {graph.num_nodes} nodes to {len(members)} {kind}", about):
        return
    if len(members) > 1:
        best = found.sets.sort("z", "distance", nulls_last=True)
        _show(f"{output.source}: distances between sets, nearest first", best)
        _note_more(best.height, "pairs of sets; --json prints them all")
    elif output.path is None:
        others = found.nodes.filter(pl.col("nearest") > 0).sort("z", "mean", nulls_last=True)
        columns = ["node", "nearest", "mean", "expected", "z"]
        _show(f"{output.source}: nearest to {counts[0]['set']}, without its members", others.select(columns))
        _note_more(others.height, "nodes; --out FILE writes them all")


def answer_pairs(graph: Graph, pairs: Path, output: Output, *, cutoff: float | None) -> None:
    """Distances between the two nodes of each pair in a file."""
    from psgnn.distances import pair_distances

    found = pair_distances(graph, pairs, cutoff=cutoff)
    if output.finish(found, f"distances of {found.height} pairs", {"pairs": found.height}):
        return
    if output.path is None:
        _show(f"{output.source}: {pairs}", found)
        _note_more(found.height, "pairs; --out FILE writes them all")


def _show(title: str, frame: polars.DataFrame) -> None:
    rows = [[_cell(cell) for cell in row] for row in frame.head(SHOWN).rows()]
    print_table(title, frame.columns, rows)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _note_more(count: int, what: str) -> None:
    if count > SHOWN:
        say(f"the first {SHOWN} of {count} {what}")
