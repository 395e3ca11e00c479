"""The laboratory: workloads, verified measurements, comparisons with other libraries, and the papers' figures.

Its wings import one way, each from those below it:

- ``report/``: results files, tables for a terminal, pictures, and the reference results.
- ``figures/``: the figures and tables of papers: their data files, and the experiments that measure them.
- ``ops/``: the relational verbs beside what other libraries have for the same work.
- ``rivals/``: other libraries' tables, and the contest of lookups with them.
- ``bench/``: the standard benchmark: runs, clocks, turns at a GPU, right answers, ceilings, limits and sweeps.
- ``data/``: keys and values: random words, workloads, data sets and look-alikes.

``kernels/`` has the kernels that only the laboratory runs. The product imports nothing from here; the command does.
"""
