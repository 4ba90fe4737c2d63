"""Training: fit a model, keep its run on disk, load it again, and search for missing links."""

from psgnn.training._candidates import top_links
from psgnn.training._checkpoints import remove_run
from psgnn.training._fit import fit
from psgnn.training._results import Result, load
from psgnn.training._zeroshot import Pretrained, pretrained

__all__ = [
    "Pretrained",
    "Result",
    "fit",
    "load",
    "pretrained",
    "remove_run",
    "top_links",
]
