"""Links of a page to files outside of docs/: they lead to the source tree that the site was built in.

mkdocs knows the pages alone and takes such a link for a mistake.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Every link that begins with ``../`` as plain HTML, after a look whether its file is there."""
    docs = Path(config["docs_dir"])

    def leave(match: re.Match[str]) -> str:
        text, target, place = match.groups()
        if not (docs / target).exists():
            raise FileNotFoundError(f"a page links to {target}, which does not exist")
        return f'<a href="{target}{place or ""}">{text}</a>'

    return OUTSIDE.sub(leave, markdown)
