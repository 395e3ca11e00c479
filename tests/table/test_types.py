"""Tables are generic for type checkers alone: at run time, parameters change nothing (see also ``tests/typing``)."""

from __future__ import annotations

import pickle
import runpy
from pathlib import Path

import numpy as np

from warphash import HashMap, HashSet, MultiMap

KEYS = np.arange(5)


def test_a_typed_program() -> None:
    assert runpy.run_path(str(Path(__file__).parents[1] / "typing" / "program.py"))["run"]()


def test_parameters_of_a_class() -> None:
    table = HashMap[np.int64, np.float32]("i8", "f4", device="cpu")
    assert type(table) is HashMap and table.insert(KEYS, 0.5).all()
    assert type(HashSet[np.int64].from_arrays(KEYS, device="cpu")) is HashSet
    assert type(pickle.loads(pickle.dumps(table))) is type(table.copy()) is HashMap
    assert isinstance(MultiMap[np.int64, np.int64]("i8", "i8", device="cpu"), MultiMap)


def test_a_subclass_is_made_from_arrays() -> None:
    class Named(HashMap[np.int64, np.float32]):
        name = "mine"

    table = Named.from_arrays(KEYS, KEYS.astype("f4"), device="cpu")
    assert type(table) is Named and table.copy().name == "mine"
