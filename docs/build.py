"""Make the generated parts of the documentation anew: pictures, and tables between markers.

python docs/build.py            # write
python docs/build.py --check    # fail if a table is not what its results say
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psgnn.scoring._network import Weights

ROOT = Path(__file__).resolve().parent.parent


def benchmark(name: str) -> ModuleType:
    """A benchmark script as a module; some import others."""
    if str(ROOT / "lab" / "benchmarks") not in sys.path:
        sys.path.append(str(ROOT / "lab" / "benchmarks"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "lab" / "benchmarks" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"benchmarks/{name}.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_tables(page: str) -> str:
    """The page with every table between ``<!-- NAME begin -->`` and ``<!-- NAME end -->`` made from its results."""
    for path in sorted((ROOT / "lab" / "benchmarks" / "results").glob("*.json")):
        begin, end = f"<!-- {path.stem} begin -->\n", f"<!-- {path.stem} end -->"
        if begin in page:
            table = benchmark(path.stem).markdown(json.loads(path.read_text())["rows"])
            head, rest = page.split(begin)
            page = head + begin + table + end + rest.split(end, 1)[1]
    return with_experiments(with_weights(page))


def with_weights(page: str) -> str:
    """The page with what shipped weights say about themselves between ``<!-- NAME weights begin -->`` and its end."""
    from psgnn.scoring._network import WEIGHTS, read_weights

    for name in WEIGHTS:
        begin, end = f"<!-- {name} weights begin -->\n", f"<!-- {name} weights end -->"
        if begin in page:
            head, rest = page.split(begin)
            page = head + begin + weights_table(read_weights(name)) + end + rest.split(end, 1)[1]
    return page


def weights_table(weights: Weights) -> str:
    """Numbers of the weights, and the range of the graphs that they were trained on."""
    numbers = sum(tensor.size for tensor in weights.tensors.values())
    made, check = weights.about["made"], weights.about["check"]
    lines = [
        f"{numbers:,} numbers; {made['graphs']} graphs of every family, seed {made['seed']}, {made['steps']} steps. "
        "Mean AUC on the graphs of the families that were kept from training: "
        f"{check['auc_strict']:.4f} strict, {check['auc']:.4f} in context, from one set of anchors and "
        "without the correction.",
        "",
        "| of a graph | from | to |",
        "| --- | ---: | ---: |",
    ]
    lines += [f"| {name} | {low:.2f} | {high:.2f} |" for name, (low, high) in weights.about["range"].items()]
    return "\n".join(lines) + "\n"


def with_experiments(page: str) -> str:
    """The page with the tables of every experiment that has markers in it, made from its records."""
    from psgnn_lab.manifest import load_manifest, manifest_names
    from psgnn_lab.tables import with_tables as with_records

    for name in manifest_names(ROOT / "lab" / "experiments"):
        if f"<!-- {name} begin -->" in page:
            page = with_records(page, load_manifest(name, ROOT / "lab" / "experiments"))
    return page


def pictures() -> None:
    """The picture of the README, and that of growth."""
    from psgnn.anchors import select_anchors
    from psgnn.datasets import load_dataset
    from psgnn.report.plot import plot_anchors

    (data,) = load_dataset("communities")
    sets = {rule: select_anchors(data, rule, "log") for rule in ("random", "degree", "farthest-first")}
    plot_anchors(data, sets).savefig(ROOT / "docs" / "images" / "anchors.png", dpi=110)
    grown = json.loads((ROOT / "lab" / "benchmarks" / "results" / "scale.json").read_text())["rows"]
    benchmark("scale").plot(grown).savefig(ROOT / "docs" / "images" / "growth.png", dpi=110)


def figures() -> None:
    """The figures of the experiments, made from their records."""
    from psgnn_lab.figures import write_figures
    from psgnn_lab.manifest import load_manifest, manifest_names

    for name in manifest_names(ROOT / "lab" / "experiments"):
        write_figures(load_manifest(name, ROOT / "lab" / "experiments"))


def main() -> None:
    """Write, or check."""
    check = "--check" in sys.argv
    for path in sorted((ROOT / "docs").glob("*.md")):
        old = path.read_text()
        new = with_tables(old)
        if check and new != old:
            raise SystemExit(f"{path} is not current; run make docs")
        path.write_text(new)
    if not check:
        pictures()
        figures()


if __name__ == "__main__":
    main()
