"""Moments in columns: ISO dates, dates with a time of day, and seconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError

Seconds = npt.NDArray[np.float64]

ISO = (
    r"^(?<year>\d{4})-(?<month>\d{2})(?:-(?<day>\d{2})(?:[T ](?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d)"
    r"(?::(?<second>[0-5]\d(?:\.\d+)?))?\s*(?<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?)?$"
)
DAY = 86_400
FORMS = "ISO dates such as 2024-05-31 or 2024-05-31T14:30, or seconds since 1970"
LATEST = 1e11  # seconds, in the year 5138: beyond it numbers are milliseconds or finer
LEAST_DATED = 1e8  # seconds, in 1973: smaller numbers, such as years, are shown as numbers


def seconds_of(column: pl.Series, refuse: Callable[[pl.Series, str], None]) -> Seconds:
    """Seconds since 1970 of every row; ``refuse(bad, reason)`` raises for the first row that is bad.

    Dates without a zone are taken as UTC.
    """
    if column.dtype.is_temporal():
        found = column.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 1e6
    else:
        found = column.cast(pl.Float64, strict=False)
        if column.dtype == pl.String and found.null_count():
            found = _of_text(column)
    refuse(~found.is_finite().fill_null(False), f"the time cannot be read; write {FORMS}")
    refuse(
        found.abs() >= LATEST, "the time is not a number of seconds since 1970; divide milliseconds by 1000"
    )
    return found.to_numpy()


def _of_text(column: pl.Series) -> pl.Series:
    """Seconds of dates as text; null where it is none. A month alone is its first day."""
    parts = column.str.strip_chars().str.extract_groups(ISO).struct
    date = parts.field("year") + "-" + parts.field("month") + "-" + parts.field("day").fill_null("01")
    days = date.str.to_date("%Y-%m-%d", strict=False).to_physical().cast(pl.Float64)
    clock = [parts.field(name).fill_null("0").cast(pl.Float64) for name in ("hour", "minute", "second")]
    zone = parts.field("zone").fill_null("Z").str.replace(":", "").str.replace("^(?:Z|UTC)$", "+0000")
    hours, minutes = zone.str.slice(0, 3).cast(pl.Float64), zone.str.slice(3, 2).cast(pl.Float64)
    offset = hours * 3600 + minutes * 60 * (zone.str.starts_with("-").cast(pl.Float64) * -2 + 1)
    return days * DAY + clock[0] * 3600 + clock[1] * 60 + clock[2] - offset


def end_of(text: str | float, *, dated: bool) -> float:
    """The last moment that ``--until`` names, in seconds: the end of a day, of a month or of a year.

    Beside times that are not ``dated``, small numbers such as 2015, a year is a number.
    """
    year = str(text).strip()
    column = pl.Series([f"{year}-12" if dated and re.fullmatch(r"\d{4}", year) else year])

    def refuse(bad: pl.Series, reason: str) -> None:
        if bad[0]:
            raise InputError(f"--until {text}: {reason}")

    (start,) = seconds_of(column, refuse).tolist()
    parts = column.str.extract_groups(ISO)[0]
    if parts["year"] is None or parts["hour"] is not None:
        return float(start)
    if parts["day"] is not None:
        return float(start) + DAY - 1e-6
    begin = datetime.fromtimestamp(start, timezone.utc)
    after = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    return after.timestamp() - 1e-6


def shown(seconds: float) -> str:
    """A moment for people: a date, with its time of day unless that is midnight, or a small number as it is."""
    if seconds < LEAST_DATED:
        return f"{seconds:g}"
    moment = datetime.fromtimestamp(round(seconds), timezone.utc)
    return moment.strftime("%Y-%m-%d" if seconds % DAY == 0 else "%Y-%m-%d %H:%M")
