"""What is computed once per scorer and kept as long as the scorer lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_KEPT: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()


def keep(scorer: Any, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` returns; the second call for the same scorer and key returns the same object."""
    known = _KEPT.setdefault(scorer, {})
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found
