"""Experiments: a manifest names runs, a runner makes and records them, tables show them.

experiments/NAME.toml                      what is measured on what, with published values
experiments/records/ROW/METHOD.json        what came out, one line a seed
docs/results.md                            the tables, between markers
"""
