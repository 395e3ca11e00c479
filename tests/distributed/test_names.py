"""The names of the package, without ranks."""

from __future__ import annotations

import pytest

import warphash


def test_names_are_there_and_a_program_needs_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    import warphash.distributed as distributed

    assert all(hasattr(distributed, name) for name in distributed.__all__)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(warphash.ParameterError, match="torchrun"):
        distributed.init("gloo")
