"""What an optimizer keeps for each row of the blocks of an embedding, such as the moments of Adam.

An optimizer keeps a state for each parameter. Entries of the parameter's shape have a row for each row of the
parameter. The other entries, such as the number of steps, are alike for all blocks of an embedding: a new block begins
with those of the first block. So all rows are trained as those of one parameter that had room for them from the start.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..errors import ParameterError

__all__ = ["RowState", "add_block", "new_rows", "replace_state", "row_state"]


class RowState(NamedTuple):
    """The state of an optimizer for the blocks of an embedding.

    Attributes
    ----------
    columns
        For each entry with rows, by name, what each block has.
    others
        The other entries: a number and the name of its type if it is a tensor's.
    """

    columns: dict[str, list[torch.Tensor]]
    others: dict[str, tuple[float, str | None]]


def add_block(optimizer: Any, first: torch.Tensor, block: torch.Tensor) -> None:
    """Have an optimizer train a new block beside the first one.

    Raises
    ------
    ParameterError
        If it does not train the first one.
    """
    group = _group_of(optimizer, first)
    if any(each is block for each in group["params"]):
        return
    group["params"].append(block)
    state = optimizer.state.get(first)
    if state:
        optimizer.state[block] = {
            name: _new_rows(group, block, entry.dtype) if _has_rows(entry, first) else copy.deepcopy(entry)
            for name, entry in state.items()
        }


def row_state(optimizer: Any, blocks: Sequence[torch.Tensor]) -> RowState:
    """The state of an optimizer that trains some blocks; empty without an optimizer, or before its first step."""
    if optimizer is None or not optimizer.state.get(blocks[0]):
        return RowState({}, {})
    group, state = _group_of(optimizer, blocks[0]), optimizer.state[blocks[0]]

    def rows_of(block: torch.Tensor, name: str) -> torch.Tensor:
        held: torch.Tensor | None = optimizer.state.get(block, {}).get(name)
        return _new_rows(group, block, state[name].dtype) if held is None else held

    names = sorted(name for name, entry in state.items() if _has_rows(entry, blocks[0]))
    columns = {name: [rows_of(block, name) for block in blocks] for name in names}
    others = {name: _number_of(entry) for name, entry in state.items() if name not in columns and entry is not None}
    return RowState(columns, others)


def replace_state(optimizer: Any, blocks: Sequence[torch.Tensor], state: RowState) -> None:
    """Put a state in place of that for some blocks. An empty one: their rows are as rows that had no gradient yet."""
    group = _group_of(optimizer, blocks[0])
    for number, block in enumerate(blocks):
        if not (state.columns or state.others):
            for entry in optimizer.state.get(block, {}).values():
                if _has_rows(entry, block):
                    entry.copy_(_new_rows(group, block, entry.dtype))
            continue
        made: dict[str, Any] = {name: each[number] for name, each in state.columns.items()}
        place = block.device if group.get("capturable") or group.get("fused") else torch.device("cpu")
        for name, (value, dtype) in state.others.items():
            made[name] = value if dtype is None else torch.tensor(value, dtype=getattr(torch, dtype), device=place)
        optimizer.state[block] = made


def new_rows(optimizer: Any, blocks: Sequence[torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    """What an optimizer keeps for blocks whose rows had no gradient yet."""
    group = _group_of(optimizer, blocks[0])
    return [_new_rows(group, block, dtype) for block in blocks]


def _new_rows(group: dict[str, Any], block: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    begin = group.get("initial_accumulator_value", 0)  # of Adagrad
    return torch.full_like(block, begin, dtype=dtype, requires_grad=False)


def _group_of(optimizer: Any, first: torch.Tensor) -> dict[str, Any]:
    for group in optimizer.param_groups:
        if any(each is first for each in group["params"]):
            found: dict[str, Any] = group
            return found
    raise ParameterError(
        "the optimizer does not train this embedding: make it with the embedding's parameters, as in "
        "torch.optim.Adam(embedding.parameters()), and then call embedding.add_to(optimizer)"
    )


def _has_rows(entry: Any, block: torch.Tensor) -> bool:
    return isinstance(entry, torch.Tensor) and entry.shape == block.shape


def _number_of(entry: Any) -> tuple[float, str | None]:
    if isinstance(entry, torch.Tensor):
        return entry.item(), str(entry.dtype).removeprefix("torch.")
    return entry, None
