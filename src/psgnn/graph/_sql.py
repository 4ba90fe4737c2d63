"""Tables from databases: the answer to a query, through polars."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from psgnn.errors import InputError, MissingExtraError
from psgnn.paths import check_file, is_url, without_secrets


def query_table(source: Any, query: str) -> pl.DataFrame:
    """The rows that a query gives: of a database at an address, or of an open connection.

    SQLite needs nothing else, and its file is opened for reading alone. Other databases need ConnectorX.
    """
    origin = without_secrets(source) if isinstance(source, str) else f"the {type(source).__name__}"
    try:
        if not is_url(source):
            return pl.read_database(query, source, infer_schema_length=None)
        if source.lower().startswith("sqlite:"):
            import sqlite3

            address = f"file:{quote(str(_sqlite_file(source)))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                return pl.read_database(query, connection, infer_schema_length=None)
        return pl.read_database_uri(query, source, engine="connectorx")
    except ModuleNotFoundError:
        raise MissingExtraError("connectorx", "sql", "--query") from None
    except InputError:
        raise
    # Every database has errors of its own.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = without_secrets(" ".join(str(error).split()))[:160] or type(error).__name__
        raise InputError(f"{origin}: the query fails: {reason}") from None


def _sqlite_file(url: str) -> Path:
    """The file of ``sqlite:///shop.db``, ``sqlite:////home/ada/shop.db`` or ``sqlite:///home/ada/shop.db``."""
    path = Path(url.partition("://")[2])
    relative = Path(str(path).removeprefix("/"))
    found = relative if relative.exists() or not path.exists() else path
    check_file(found)
    return found
