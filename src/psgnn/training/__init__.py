"""Training: fit a model to a task, keep the run in a folder, load it, and compare it with rules and peers."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.training._compare import Method, compare, make_task, measure
    from psgnn.training._fit import fit
    from psgnn.training._folder import remove_run
    from psgnn.training._run import Run, load

__all__ = ["Method", "Run", "compare", "fit", "load", "make_task", "measure", "remove_run"]

__getattr__, __dir__ = door(
    __name__,
    {
        "_compare": ["Method", "compare", "make_task", "measure"],
        "_fit": ["fit"],
        "_folder": ["remove_run"],
        "_run": ["Run", "load"],
    },
)
