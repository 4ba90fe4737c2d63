"""The whole prediction by Spark, for edge lists that no single machine holds (extra ``spark``)."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.spark._predict import embed, predict

__all__ = ["embed", "predict"]

__getattr__, __dir__ = door(
    __name__,
    {
        "_predict": ["embed", "predict"],
    },
)
