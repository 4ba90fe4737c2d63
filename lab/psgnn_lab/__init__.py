"""Experiments: a manifest names runs, a runner makes and records them, tables and figures show them.

experiments/NAME.toml                      what is measured on what, with published values
experiments/records/ROW/METHOD.json        what came out, one line a seed
experiments/records/search/ROW/MODEL.json  what a hyperparameter search has tried, one line a trial
docs/results.md                            the tables, between markers
docs/figures/NAME.svg, .png                the figures, which the page shows
"""

from psgnn.datasets._catalog import CATALOG, Dataset, Option

# Of random graphs, in `psgnn_lab.pretraining.families`.
FAMILY_NAMES = (
    "grid", "caveman", "small-world", "preferential", "blocks", "geometric", "tree", "road", "bipartite", "copying",
    "similarity", "core", "random", "meetings", "overlay",
)  # fmt: skip
# The laboratory has a dataset more, for its experiments.
CATALOG["family"] = Dataset(
    "family",
    graphs=1,
    nodes=360,
    edges=404,
    licence="MIT (built by psgnn)",
    options={"family": Option("road", choices=FAMILY_NAMES), "seed": Option(0, minimum=0)},
    build="psgnn_lab.pretraining.families:family_graph",
)
