"""Finished runs as one self-contained HTML page: summed up to a dict, then put into a template."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.report._page import make_page, plain, write_page
    from psgnn.report._summary import summarise

__all__ = ["make_page", "plain", "summarise", "write_page"]

__getattr__, __dir__ = door(
    __name__,
    {
        "_page": ["make_page", "plain", "write_page"],
        "_summary": ["summarise"],
    },
)
