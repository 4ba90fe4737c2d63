"""What a method was meant to reach, as a manifest says it; `psgnn_lab.goals` reads the records for it."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import BaseModel, ConfigDict

from psgnn.errors import unknown_name


class Goals(BaseModel):
    """Names of sections and methods that the main method is held against."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    main: str
    section: str  # its rows
    rules: tuple[str, ...]  # as good as the best of them
    sets: tuple[str, ...]  # better than all of them
    tables: tuple[str, ...]  # manifests with published values
    published: tuple[str, ...]  # the methods that these values are of
    unlike: tuple[str, ...] = ()  # rows whose published values are of other data
    numbers: str  # the section with several numbers of anchors

    def check(self, sections: Collection[str], methods: Collection[str]) -> None:
        """Every name has to lead somewhere."""
        for kind, names, valid in (
            ("section", (self.section, self.numbers), sections),
            ("method", (self.main, *self.rules, *self.sets), methods),
        ):
            for name in names:
                if name not in valid:
                    raise unknown_name(f"{kind} of the goals", name, valid)
