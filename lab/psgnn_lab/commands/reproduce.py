"""``psgnn-lab reproduce``: make the runs of an experiment that are missing, then its tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.arguments import Json, Quiet, Root, Verbose
from psgnn.errors import InputError

if TYPE_CHECKING:
    from psgnn_lab.manifest import Manifest
    from psgnn_lab.plan import Run
    from psgnn_lab.runner import Outcome
    from psgnn_lab.trials import SearchCell


def reproduce_command(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The name of an experiment, or 'all'.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="The most seeds of each method.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which runs are missing; run none.")] = False,
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Make the tables of what is recorded; run nothing.")
    ] = False,
    only: Annotated[str | None, typer.Option("--only", help="Rows, with commas.")] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Methods or groups of them, with commas.")
    ] = None,
    shard: Annotated[
        str, typer.Option("--shard", metavar="I/N", help="The I-th of N parts, for several machines.")
    ] = "1/1",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Runs side by side; a core each if left out.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Run again what is recorded.")] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="URL",
            help="Optuna storage of a search, for several machines [sqlite beside the manifest].",
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder of manifests and records [experiments].")
    ] = None,
    root: Root = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make the runs of an experiment that have no record yet, then its tables; resumes where it was stopped.

    Example: psgnn-lab reproduce accuracy --seeds 3 --dry-run
    """
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn_lab.manifest import find_folder, load_manifest, manifest_names
    from psgnn_lab.plan import having, parse_shard, plan
    from psgnn_lab.search import search_all
    from psgnn_lab.trials import search_cells

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    place = find_folder(folder)
    if show_list:
        found = [load_manifest(name, place) for name in manifest_names(place)]
        if as_json:
            print_json([{"name": each.name, "title": each.title, "rows": [row.name for row in each.rows],
                         "figures": [figure.name for figure in each.figures]} for each in found])  # fmt: skip
            return
        print_table("Experiments", ["name", "rows", "title"], [[m.name, len(m.rows), m.title] for m in found])
        return
    if table is None:
        raise InputError(
            f"name an experiment: {', '.join(manifest_names(place))} or all (--list describes them)"
        )
    if from_records:
        _check_unused({"--dry-run": dry_run, "--seeds": seeds, "--only": only, "--methods": methods, "--jobs": jobs,
                       "--force": force, "--storage": storage, "--shard": shard != "1/1"})  # fmt: skip
    part = parse_shard(shard)
    documents: list[dict[str, Any]] = []
    failed = 0
    manifests = [
        load_manifest(name, place, root) for name in (manifest_names(place) if table == "all" else [table])
    ]
    # What is drawn of another experiment's records comes after it.
    manifests.sort(key=lambda each: any(figure.of for figure in each.figures))
    for manifest, rows, named in having(manifests, _words(only), _words(methods)):
        runs = plan(manifest, seeds=seeds, only=rows, methods=named, shard=part)
        cells = search_cells(manifest, rows, named, part)
        if storage is not None and not cells and table != "all":
            raise InputError(f"--storage is for experiments with a search; {table} has none here")
        if dry_run:
            documents.append(_describe(manifest, runs, cells, jobs, force, as_json))
            continue
        problems: list[dict[str, str]] = []
        if not from_records:
            show = not quiet and not as_json
            if cells:
                problems += _failures(
                    search_all(
                        manifest,
                        cells,
                        storage=storage,
                        jobs=jobs,
                        root=root,
                        force=force,
                        show_progress=show,
                    )
                )
                # What is to be tested is known now.
                runs = plan(manifest, seeds=seeds, only=rows, methods=named, shard=part)
            problems += _execute(manifest, runs, jobs, force, root, show)
        failed += len(problems)
        documents.append(_tables(manifest, as_json) | {"failed": problems})
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    if failed:
        raise typer.Exit(1)


def _check_unused(given: dict[str, Any]) -> None:
    """Tables of all records need no choice of runs; an option that would change nothing is a mistake."""
    for option, value in given.items():
        if value:
            raise InputError(f"--from-records makes the tables of all that is recorded; leave out {option}")


def _words(text: str | None) -> list[str]:
    return [] if text is None else [word.strip() for word in text.split(",")]


def _missing(manifest: Manifest, runs: list[Run], force: bool) -> list[Run]:
    from psgnn_lab.records import find_record

    return [run for run in runs if force or find_record(manifest.records, run) is None]


def _describe(
    manifest: Manifest,
    runs: list[Run],
    cells: list[SearchCell],
    jobs: int | None,
    force: bool,
    as_json: bool,
) -> dict[str, Any]:
    """Runs, how many of them exist, and the time that the others will take; trials of a search likewise."""
    import os

    from psgnn.console import print_table
    from psgnn_lab.estimate import Estimate, as_time
    from psgnn_lab.records import find_record
    from psgnn_lab.trials import read_trials

    missing = _missing(manifest, runs, force)
    taken = sum(record["seconds"] for run in runs if (record := find_record(manifest.records, run)))
    taken += sum(trial.seconds for cell in cells for trial in read_trials(manifest.records, cell))
    estimate = Estimate(manifest.records, runs)
    rows: list[tuple[str, int, int, int, float]] = []
    for row in manifest.rows:
        planned = [run for run in runs if run.row.name == row.name]
        left = [run for run in missing if run.row.name == row.name]
        if planned:
            rows.append((row.name, len(planned), len(planned) - len(left), len(left), estimate.total(left)))
    trials = _describe_trials(manifest, cells, force)
    rows += trials
    seconds = sum(row[4] for row in rows) / (jobs or os.cpu_count() or 1)
    if not as_json:
        columns = ["row", "runs", "recorded", "missing", "time of the missing on one core"]
        print_table(manifest.title, columns, [[*row[:4], as_time(row[4])] for row in rows])
        typer.echo(
            f"{manifest.name}: {len(runs)} runs, {len(runs) - len(missing)} recorded, {len(missing)} missing"
            + (
                f"; {sum(row[3] for row in trials)} trials missing, and the runs of what they find"
                if trials
                else ""
            )
            + f": about {as_time(seconds)}; what is recorded took {as_time(taken)} on one core"
        )
    names = ("row", "runs", "recorded", "missing", "seconds")
    return {
        "experiment": manifest.name, "runs": len(runs), "recorded": len(runs) - len(missing),
        "missing": [str(run) for run in missing], "seconds": seconds, "taken": taken,
        "rows": [dict(zip(names, row, strict=True)) for row in rows],
    }  # fmt: skip


def _describe_trials(
    manifest: Manifest, cells: list[SearchCell], force: bool
) -> list[tuple[str, int, int, int, float]]:
    """Of every row that is searched: trials, how many of them exist, how many do not, and the time of these."""
    from psgnn_lab.trials import read_trials, seconds_left

    time = seconds_left(manifest.records, cells, force=force)
    rows: list[tuple[str, int, int, int, float]] = []
    for name in dict.fromkeys(cell.row.name for cell in cells):
        own = [cell for cell in cells if cell.row.name == name]
        wanted = sum(cell.wanted for cell in own)
        done = sum(min(len(read_trials(manifest.records, cell)), cell.wanted) for cell in own) * (not force)
        rows.append((f"{name}, search", wanted, done, wanted - done, sum(time[str(cell)] for cell in own)))
    return rows


def _execute(
    manifest: Manifest, runs: list[Run], jobs: int | None, force: bool, root: Path | None, show: bool
) -> list[dict[str, str]]:
    """Make what is missing; the runs that failed."""
    from psgnn_lab.runner import execute_all

    missing = _missing(manifest, runs, force)
    outcome = execute_all(
        missing,
        manifest.records,
        jobs=jobs,
        root=root,
        show_progress=show,
    )
    return _failures(outcome)


def _failures(outcome: Outcome) -> list[dict[str, str]]:
    """Report what failed, a line each on stderr."""
    for run, error in outcome.failed:
        sys.stderr.write(f"psgnn: error: {run}: {' '.join(error.split())}\n")
    return [{"run": str(run), "error": error} for run, error in outcome.failed]


def _tables(manifest: Manifest, as_json: bool) -> dict[str, Any]:
    """Write the figures and the page, and print the tables."""
    from psgnn_lab.figures import write_figures
    from psgnn_lab.tables import document, markdown, write_page

    figures = [str(path) for path in write_figures(manifest)]
    page = write_page(manifest)
    if as_json:
        return document(manifest) | {"figures": figures, "page": None if page is None else str(page)}
    typer.echo(markdown(manifest))
    for path in figures:
        typer.echo(f"the figure is {path}")
    if page is not None:
        typer.echo(f"the {'figure is' if manifest.only_figures else 'tables are'} in {page}")
    return {}
