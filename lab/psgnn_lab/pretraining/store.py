"""Lessons on disk, family by family, so that pretraining which is interrupted need not measure its graphs again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from psgnn.models._anchor_sets import AnchorSet
from psgnn.training._folder import LESSONS, is_lesson
from psgnn.training._runs import read_tensors, write_tensors
from psgnn_lab.pretraining.lesson import Lesson

TENSORS = ("pairs", "labels", "statistics", "context", "shape")


class LessonStore:
    """The lessons of whole families in a folder of pretraining; without a folder it keeps nothing.

    ``about`` is what decides the lessons. Those of a file about something else are as if there were none. Views are
    not kept: whoever needs them makes the lesson again.
    """

    def __init__(self, folder: Path | None, about: dict[str, Any]) -> None:
        self._folder = None if folder is None else folder / LESSONS
        self._about = about
        self._family: str | None = None
        self._known: dict[str, torch.Tensor] = {}

    def find(self, family: str, i: int) -> Lesson | None:
        """The i-th lesson of a family without its view, or None."""
        if family != self._family:
            self._family, self._known = family, self._read(family)
        if f"{i}.labels" not in self._known:
            return None
        parts = {name: self._known[f"{i}.{name}"] for name in TENSORS}
        choice = AnchorSet(self._known[f"{i}.nodes"], self._known[f"{i}.weight"])
        return Lesson(family=family, view=None, choice=choice, **parts)

    def put(self, family: str, lessons: Sequence[Lesson]) -> None:
        """Keep all lessons of a family, in their order."""
        if self._folder is None or (family == self._family and self._known):
            return
        self._folder.mkdir(exist_ok=True)
        tensors: dict[str, torch.Tensor] = {}
        for i, lesson in enumerate(lessons):
            tensors |= {f"{i}.{name}": getattr(lesson, name) for name in TENSORS}
            tensors |= {f"{i}.nodes": lesson.choice.nodes, f"{i}.weight": lesson.choice.weight}
        write_tensors(self._folder / f"{family}.safetensors", tensors, about=self._about)

    def clear(self) -> None:
        """Remove the files of the lessons, and the folder unless it holds something else."""
        if self._folder is None or not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if is_lesson(path):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty
            self._folder.rmdir()

    def _read(self, family: str) -> dict[str, torch.Tensor]:
        if self._folder is None or not (self._folder / f"{family}.safetensors").exists():
            return {}
        tensors, metadata = read_tensors(self._folder / f"{family}.safetensors")
        return tensors if metadata.get("about") == self._about else {}
