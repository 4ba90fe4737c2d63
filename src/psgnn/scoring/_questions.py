"""What every scorer answers by name: predictions, similar nodes, and reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

    from psgnn.scoring._names import Node


class Questions:
    """Methods of scorers: ready-made weights on graphs, and trained runs."""

    def predict(self, **options: Any) -> polars.DataFrame:
        """Predict missing links by name: ``top=50``, ``of="Ada"`` or ``pairs=[("Ada", "Bob")]`` (`psgnn.predict`)."""
        from psgnn.scoring._answers import answer

        return answer(self, **options)  # type: ignore[arg-type]

    def similar(self, node: Node, top: int = 10) -> polars.DataFrame:
        """The nodes whose embeddings are nearest to that of a node: name, distance, and whether they are linked."""
        from psgnn.scoring._answers import similar

        return similar(self, node, top)  # type: ignore[arg-type]

    def explain(self, u: Node, v: Node) -> dict[str, Any]:
        """Why a pair has its score; see `psgnn.explain`."""
        from psgnn.scoring._explain import explain

        return explain(self, u, v)  # type: ignore[arg-type]
