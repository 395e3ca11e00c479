"""Figures and tables of papers: a data file ``NAME.toml`` for each, and the experiments that measure its points.

`catalogue` reads the data files. `experiments` runs what a figure's panels name: each kind of measurement has a module.
"""
