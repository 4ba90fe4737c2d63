"""Rules by name: those of the package, and those that other packages add through entry points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from psgnn.errors import InputError, PsgnnError

Rule = TypeVar("Rule", bound=Callable[..., Any])

log = logging.getLogger(__name__)


class Registry(Mapping[str, Rule], Generic[Rule]):
    """Rules by name; built-in ones come first and need no installed metadata.

    Entry points are read once, when an unknown name is asked for or the names are listed. A plugin is imported when
    it is asked for.

    Args:
        kind: What an entry is called in messages, such as ``anchor rule``.
        group: The group of entry points that other packages add to.
        builtin: The rules of the package.
        checked: Makes the function of a plugin check its own results; it gets a title for messages and the function.
        reserved: Further names that a plugin may not take, because they mean something else on the command line.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, Rule],
        checked: Callable[[str, Callable[..., Any]], Rule],
        reserved: Collection[str] = (),
    ) -> None:
        self.kind, self.group, self.builtin, self.reserved = kind, group, builtin, reserved
        self._checked = checked
        self._found: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, Rule] = {}
        self._reported: set[str] = set()

    def __getitem__(self, name: str) -> Rule:
        """The rule of that name.

        Raises:
            InputError: If it is a plugin that cannot be imported, or is not a function.
            KeyError: If there is no such rule.
        """
        if name in self.builtin:
            return self.builtin[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(self._plugins()[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in self._plugins()

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self._plugins()

    def __len__(self) -> int:
        return len(self.builtin) + len(self._plugins())

    def __repr__(self) -> str:
        return f"<{self.kind}s: {', '.join(self)}>"

    def usable(self) -> list[str]:
        """List all names but those of plugins that cannot be imported, which are reported once as warnings."""
        names = list(self.builtin)
        for name in self._plugins():
            try:
                self[name]
            except InputError as error:
                if name not in self._reported:
                    log.warning("%s; left out", error)
                    self._reported.add(name)
            else:
                names.append(name)
        return names

    def refresh(self) -> None:
        """Forget the plugins, so that packages installed since are found."""
        self._found = None
        self._loaded.clear()
        self._reported.clear()

    def _plugins(self) -> dict[str, EntryPoint]:
        if self._found is None:
            found: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                taken = "psgnn" if point.name in self.builtin or point.name in self.reserved else None
                if taken is None and point.name in found:
                    taken = _package(found[point.name])
                if taken is None:
                    found[point.name] = point
                else:
                    log.warning(
                        "%s '%s' of %s is ignored: the name is taken by %s; its authors should rename it",
                        self.kind, point.name, _package(point), taken,
                    )  # fmt: skip
            self._found = dict(sorted(found.items()))
        return self._found

    def _load(self, point: EntryPoint) -> Rule:
        title = f"{self.kind} '{point.name}' of {_package(point)}"
        try:
            function = point.load()
        except Exception as error:  # importing somebody else's module can raise anything
            raise InputError(
                f"{title} cannot be imported ({_reason(error)}); repair or uninstall the package"
            ) from error
        if not callable(function):
            raise InputError(
                f"{title} is not a function: {point.value} is of type {type(function).__name__}; "
                "repair or uninstall the package"
            )
        return self._checked(title, function)


class ExtendedNames(Collection[str]):
    """Fixed names, then those of a registry; entry points are not read before they are needed."""

    def __init__(self, names: tuple[str, ...], registry: Registry[Any]) -> None:
        self.names, self.registry = names, registry

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.registry

    def __iter__(self) -> Iterator[str]:
        yield from self.names
        yield from self.registry

    def __len__(self) -> int:
        return len(self.names) + len(self.registry)


def call_plugin(title: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call the function of a plugin; whatever it raises becomes one line that names it."""
    try:
        return function(*args)
    except (PsgnnError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{title} failed ({_reason(error)}); report it to its authors") from error


def _package(point: EntryPoint) -> str:
    """The distribution and its version, or the module where the metadata has neither."""
    if point.dist is None:
        return point.value
    return f"{point.dist.name} {point.dist.version}"


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
