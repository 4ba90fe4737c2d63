"""Experiments: a manifest names runs, a runner makes and records them, tables and figures show them.

experiments/NAME.toml                      what is measured on what, with published values
experiments/records/ROW/METHOD.json        what came out, one line a seed
experiments/records/search/ROW/MODEL.json  what a hyperparameter search has tried, one line a trial
docs/results.md                            the tables, between markers
docs/figures/NAME.svg, .png                the figures, which the page shows
"""
