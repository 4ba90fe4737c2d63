"""The errors that psgnn raises on purpose.

Every message is one line that says what was found, where, and what to do. The command line
prints it and exits with code 2, so no message may rely on a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral


class PsgnnError(Exception):
    """Base of every error that psgnn raises on purpose."""

    def __str__(self) -> str:
        """The message, in one line also where a name in it has several."""
        return " ".join(super().__str__().splitlines())


class InputError(PsgnnError, ValueError):
    """A file, an option or an argument that cannot be used as it is."""


class DataError(PsgnnError):
    """A dataset that is missing, cannot be downloaded or fails its checksum."""


class MissingExtraError(PsgnnError, ImportError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'psgnn[{extra}]'")


EXTRAS = {
    "torch": "train",
    "torch_geometric": "train",
    "pydantic": "train",
    "matplotlib": "report",
    "plotly": "report",
    "pyspark": "spark",
}


def missing_extra(error: ImportError, purpose: str) -> MissingExtraError | None:
    """The error that names the extra, if what cannot be imported belongs to one."""
    package = (error.name or "").partition(".")[0]
    return MissingExtraError(package, EXTRAS[package], purpose) if package in EXTRAS else None


def check_integer(option: str, value: object, least: int) -> None:
    """Complain about an option that is not an integer of at least so much."""
    if not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{option}={value!r} is not an integer of {least} or more")


def unknown_name(kind: str, found: str, valid: Iterable[str]) -> InputError:
    """The error for a name that is in no registry, with the nearest valid one.

    >>> str(unknown_name("anchor rule", "degre", ["degree", "load"]))
    "unknown anchor rule 'degre'; did you mean 'degree'? (valid: degree, load)"
    """
    names = sorted(valid)
    near = _same_letters(found, names) or difflib.get_close_matches(found, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return InputError(f"unknown {kind} '{found}'{hint} (valid: {', '.join(names)})")


def _same_letters(found: str, names: list[str]) -> list[str]:
    """Names of the same letters in another order, the most frequent slip in short names."""
    return [name for name in names if sorted(name) == sorted(found.lower())]
