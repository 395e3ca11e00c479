"""`ShardedEmbedding`: vectors of arbitrary ids, each on the rank that owns the id.

A lookup goes this way, and is collective.

1. Each rank takes the distinct ids of its batch. They travel to their owners (`route.Route`).
2. In training mode, an owner gives new ids the next rows of its own. It answers with the vectors of the rows.
3. Each element gets the vector of its id.

Its backward pass is collective, too, and goes the same way: each rank sums up the gradients of each id, and ids and
sums travel to the owners, which add them up in the gradients of their rows. Owners look the ids up again. So they keep
nothing of a lookup but the number of their rows: an id that got its row later was unknown, and gets no gradient.

Order. Calls have numbers, and the text of a call names its lookup (`Channel.call`). So ranks whose backward passes take
lookups in different orders all raise `CollectiveError`, and no gradient goes astray. PyTorch takes the nodes of equal
graphs in the same order, the last lookup first, if all lookups answer on one device.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from ..errors import CollectiveError, CorruptFile, DtypeError, ParameterError, ShapeError, UnsupportedVerb
from ..relational.factors import factorize
from ..runtime.devices import engine_for
from ..table.column_file import shown
from ..table.maps import HashMap
from ..table.options import integer
from .channel import channel_of
from .optimized_rows import RowState, add_block, new_rows, replace_state, row_state
from .route import Answers, Kind, Route, Rows
from .state import rebuilt, state_of
from .tables import piece_of, share_of
from .vectors import Gradients, capacity_of, first_vectors, put, sums, vectors_of

__all__ = ["ShardedEmbedding"]

_VECTOR_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By bytes. PyTorch does less with unsigned integers."""

_GRADIENTS = ("sum", "mean")
_CHUNK = 1 << 22
"""Numbers of new vectors that are made at once: each takes some words of 8 bytes meanwhile."""

_STATE_ENTRY = re.compile("about|table|shard[0-9]{4}")
_VECTOR = "vector"


class ShardedEmbedding(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # of PyTorch, which need not be installed
    """Vectors of arbitrary ids over the ranks of a process group: a tensor of any ids in, their vectors out.

    A call of the module is collective, and so is its backward pass. All ranks call the same modules in the same order,
    each with ids of its own, of any shape, zero too. The vector of an id is on the rank that owns the id, and only
    there. Its gradient is the sum of what all ranks have for it.

    In training mode, an id that was never seen gets a row on its owner, and a first vector. In evaluation mode, unknown
    ids have the vector 0, nothing changes, and gradients of unknown ids are dropped.

    All ranks take part in the backward pass of each lookup. So the loss of each rank depends on all vectors that the
    rank has looked up, also on those of an empty batch: ``loss + 0 * vectors.sum()`` does. Lookups are differentiated
    once.

    The parameters of a rank are blocks of its own rows: new ids bring new blocks (``distributed/vectors.py``). `add_to`
    has an optimizer train these, too. Do not wrap the module in ``DistributedDataParallel``, which takes parameters as
    alike on all ranks: wrap the rest of the model, and choose ``gradients="mean"`` beside it.

    Parameters
    ----------
    embedding_dim
        Numbers of a vector.
    id_dtype
        Integer type of the ids. Tensors of types whose numbers it has are taken, too.
    dtype
        Of the vectors: float16, bfloat16, float32 or float64. Gradients of 16 bits are summed in 32.
    initial
        Makes the first vectors of ids: takes a tensor of ids, and returns float[n, embedding_dim]. By default, these
        are standard normal numbers, as of ``torch.nn.Embedding``. They depend on the id and ``seed`` alone, and so not
        on the number of ranks.
    seed
        Of the first vectors.
    sparse
        As of ``torch.nn.Embedding``: gradients are sparse tensors, which ``SGD``, ``Adagrad`` and ``SparseAdam`` take.
    gradients
        ``"sum"``: gradients are those of the sum of the losses of all ranks. ``"mean"``: of their mean, as
        ``DistributedDataParallel`` has it.
    capacity
        Ids of all ranks together to make room for. There is more room when more come.
    group
        A process group of ``torch.distributed``, or a device mesh with one dimension. None: all ranks.
    piece_bytes
        As of `ShardedMap`.

    Attributes
    ----------
    local
        The `HashMap` from this rank's own ids to their rows here. Reading it is not collective.

    Raises
    ------
    CollectiveError
        If a rank's arguments are wrong, or are not those of the other ranks.

    Examples
    --------
    In a program that ``torchrun --nproc-per-node 2`` starts::

        users = wd.ShardedEmbedding(16)
        optimizer = torch.optim.Adam(users.parameters())
        users.add_to(optimizer)
        for ids, expected in batches:                       # a rank's own
            loss = loss_of(users(ids), expected)            # users(ids) has the shape (*ids.shape, 16)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.distributed.checkpoint.save({"users": users}, checkpoint_id="folder")
    """

    def __init__(
        self,
        embedding_dim: int,
        *,
        id_dtype: torch.dtype = torch.int64,
        dtype: torch.dtype = torch.float32,
        initial: Callable[[torch.Tensor], torch.Tensor] | None = None,
        seed: int = 0,
        sparse: bool = False,
        gradients: str = "sum",
        capacity: int = 1024,
        group: Any = None,
        piece_bytes: int | None = None,
    ) -> None:
        super().__init__()
        self._channel = channel = channel_of(group)
        with channel.call("make a ShardedEmbedding") as call:
            self.embedding_dim = integer("embedding_dim", embedding_dim, 1)
            self._id_dtype, self._key_dtype = id_dtype, _key_type(id_dtype)
            if dtype not in _VECTOR_TYPES:
                raise DtypeError(f"dtype must be one of {', '.join(map(str, _VECTOR_TYPES))}, got {dtype!r}")
            if gradients not in _GRADIENTS:
                raise ParameterError(f"gradients must be one of {', '.join(map(repr, _GRADIENTS))}, got {gradients!r}")
            self._sparse, self._divisor = bool(sparse), channel.world if gradients == "mean" else 1
            seed = integer("seed", seed, -(1 << 63))
            self._initial = initial or partial(first_vectors, width=self.embedding_dim, seed=seed)
            piece = piece_of(channel, piece_bytes)
            rows = max(1, share_of(integer("capacity", capacity, 0), channel.world))
            self.local: HashMap[Any, Any] = self._new_map(rows)
            self._route = Route(channel, engine_for(channel.device), piece)
            self._optimizer: weakref.ref[Any] | None = None
            self._add_blocks([self._new_block(rows, dtype, channel.place)])
            call.agree()
        first = "given vectors" if initial else f"seed={seed}"
        options = f"sparse={sparse}, gradients={gradients}, {first}, piece_bytes={piece}"
        with channel.call(f"a ShardedEmbedding of {embedding_dim} {dtype} for {id_dtype}, {options}") as call:
            call.agree()
        self._name, self._lookups = channel.calls, 0

    @property
    def rank(self) -> int:
        """This process among those of the group."""
        return self._channel.rank

    @property
    def world(self) -> int:
        """Ranks of the group."""
        return self._channel.world

    def extra_repr(self) -> str:
        """What ``repr`` says inside the brackets.

        Returns
        -------
        str
            For people.
        """
        return f"{self.embedding_dim}, rank {self.rank} of {self.world} with {len(self.local):,} ids"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of ids. Collective.

        Parameters
        ----------
        ids
            A tensor of ids, of any shape.

        Returns
        -------
        tensor
            Of the shape ``(*ids.shape, embedding_dim)``, on the device of ``ids``.

        Raises
        ------
        CollectiveError
            If a rank's ids are no dense tensor of integers that ``id_dtype`` has, or there is no memory on a rank. The
            call can be made again.
        PeerLost
            If a rank does not answer.
        """
        self._lookups += 1
        mode = "training" if self.training else "evaluation"
        said = f"{self._lookups} of ShardedEmbedding {self._name} ({self._dtype})"
        with self._channel.call(f"lookup {said}, {mode}") as call:
            codes, batch = factorize(self._batch(ids))
            vectors, answers = (self._room(n, self._dtype, self.embedding_dim) for n in (len(batch), len(codes)))
            self._route.go(call, len(batch), [_rows_of(batch)], [_answers_to(vectors)], self._look_up)
            torch.index_select(vectors, 0, codes, out=answers)
        lookup = _Lookup(self, said, batch, codes, len(self.local))
        apply: Any = _Looked.apply  # which has no types
        made: torch.Tensor = apply(lookup, [answers], *self._blocks)
        return made.to(ids.device).view(*ids.shape, self.embedding_dim)

    def total(self) -> int:
        """Ids of all ranks together. Collective; this rank's own are ``len(embedding.local)``.

        Returns
        -------
        int
            The same on all ranks.
        """
        with self._channel.call("total") as call:
            return call.total(len(self.local))

    def to_arrays(self) -> tuple[torch.Tensor, torch.Tensor]:
        """This rank's own ids, and their vectors. Not collective.

        Returns
        -------
        ids, vectors
            Tensors of the shapes ``(n,)`` and ``(n, embedding_dim)``.
        """
        keys, rows = self.local.to_arrays(like="torch")
        return keys.view(self._id_dtype), vectors_of(self._blocks, rows)

    def add_to(self, optimizer: Any) -> None:
        """Have an optimizer of this module's parameters train the blocks that come later, too. Not collective.

        New blocks join the group of the first one, with what the optimizer keeps for rows that had no gradient yet. So
        all rows are trained as those of one large parameter. The optimizer's state for rows, and the number of its
        steps, go along in `state_dict`. So an optimizer of its own is best: for the rest of the model, make another.

        Parameters
        ----------
        optimizer
            Of ``torch.optim``, made with the parameters of this module.

        Raises
        ------
        ParameterError
            If the optimizer does not have the parameters.
        """
        blocks = self._blocks
        for block in blocks:
            add_block(optimizer, blocks[0], block)
        self._optimizer = weakref.ref(optimizer)

    # ---- a batch
    def _batch(self, ids: torch.Tensor) -> torch.Tensor:
        """The ids as keys, where messages lie."""
        if not isinstance(ids, torch.Tensor):
            raise DtypeError(f"expected a tensor of ids, got {type(ids).__name__}: give torch.as_tensor(ids)")
        if ids.is_nested or ids.layout != torch.strided or ids.is_meta:
            raise ShapeError(f"expected a dense tensor of ids with data, got {ids.layout} on {ids.device}")
        if not _holds(self._id_dtype, ids.dtype):
            other = "" if _limits(ids.dtype) is None else f", or make ShardedEmbedding(…, id_dtype={ids.dtype})"
            raise DtypeError(
                f"expected ids of {self._id_dtype}, or of a type whose numbers it has, got {ids.dtype}: convert them"
                f"{other}"
            )
        flat: torch.Tensor = ids.detach().to(self._channel.place, self._id_dtype).reshape(-1)
        return flat.contiguous().view(self._key_dtype)

    def _look_up(self, n: int, at: list[int], to: list[int]) -> None:
        """An owner's part of a lookup: vectors of ids."""
        keys = self._copied(at[0], n, self._key_dtype)
        rows, found = self.local.find(keys, -1)
        if self.training and not found.all():
            absent = (~found).nonzero().view(-1)
            rows[absent] = self._numbered(keys[absent])
        vectors = vectors_of(self._blocks, rows).to(self._channel.place)
        if n:
            self._engine.copy(to[0], vectors.data_ptr(), vectors.nbytes, self._channel.stream())

    def _numbered(self, keys: torch.Tensor) -> torch.Tensor:
        """The rows of ids that have none, which get the next ones. Rows and vectors are there before the ids are."""
        codes, new = factorize(keys)
        begin = len(self.local)
        self._add_blocks(self._more_blocks(begin + len(new)))
        chunk = max(1, _CHUNK // self.embedding_dim)
        for first in range(0, len(new), chunk):
            of_chunk = new[first : first + chunk]
            vectors = self._initial(of_chunk.view(self._id_dtype))
            if vectors.shape != (len(of_chunk), self.embedding_dim):
                raise ShapeError(
                    f"initial must return a vector of {self.embedding_dim} numbers for each of {len(of_chunk):,} ids, "
                    f"got shape {tuple(vectors.shape)}"
                )
            put(self._blocks, begin + first, vectors.detach().to(self._dtype))
        self.local.insert(new, torch.arange(begin, begin + len(new), device=new.device), assume_unique=True)
        rows: torch.Tensor = codes + begin
        return rows

    def _gradients(self, lookup: _Lookup, given: torch.Tensor, blocks: list[torch.Tensor]) -> list[torch.Tensor]:
        """The gradients of blocks, of those of the answers of a lookup. Collective."""
        batch, width = lookup.batch, self.embedding_dim
        with self._channel.call(f"gradients of lookup {lookup.said}") as call:
            vectors = sums(lookup.codes, len(batch), given) / self._divisor
            made = Gradients(blocks, sparse=self._sparse)

            def add(n: int, at: list[int], to: list[int]) -> None:
                keys = self._copied(at[0], n, self._key_dtype)
                rows = self.local.find(keys, -1)[0]
                rows[rows >= lookup.end] = -1
                made.add(rows, self._copied(at[1], n, vectors.dtype, width))

            self._route.go(call, len(batch), [_rows_of(batch), _rows_of(vectors)], [], add)
            return call.together(made.made)

    def _room(self, n: int, dtype: torch.dtype, *row: int) -> torch.Tensor:
        """Room for rows, in memory for messages."""
        return self._channel.memory(n * dtype.itemsize * int(np.prod(row))).view(dtype).view(n, *row)

    def _copied(self, at: int, n: int, dtype: torch.dtype, *row: int) -> torch.Tensor:
        """A copy of rows of a message."""
        made = self._room(n, dtype, *row)
        if n:
            self._engine.copy(made.data_ptr(), at, made.nbytes, self._channel.stream())
        return made

    # ---- blocks
    @property
    def _engine(self) -> Any:
        return engine_for(self._channel.device)

    @property
    def _blocks(self) -> list[torch.Tensor]:
        parameters: Any = self._parameters
        return list(parameters.values())

    @property
    def _dtype(self) -> torch.dtype:
        """Of the vectors; ``module.double()`` and its like change it."""
        found: torch.dtype = self._blocks[0].dtype
        return found

    def _new_map(self, capacity: int) -> HashMap[Any, Any]:
        return HashMap(_name(self._key_dtype), "int64", capacity=capacity, device=self._channel.device)

    def _new_block(self, rows: int, dtype: torch.dtype, device: torch.device) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.zeros((rows, self.embedding_dim), dtype=dtype, device=device))

    def _more_blocks(self, n: int) -> list[torch.nn.Parameter]:
        """The block that is missing for ``n`` rows, if one is: it doubles the rows, or has all that lack."""
        blocks = self._blocks
        there = capacity_of(blocks)
        return [] if n <= there else [self._new_block(max(there, n - there), self._dtype, blocks[0].device)]

    def _add_blocks(self, blocks: list[torch.nn.Parameter]) -> None:
        for block in blocks:
            there = self._blocks
            self.register_parameter(f"block{len(there)}", block)
            if there:
                block.requires_grad_(there[0].requires_grad)
                if (optimizer := self._optimizer and self._optimizer()) is not None:
                    add_block(optimizer, there[0], block)

    # ---- what PyTorch asks of a module
    def __getstate__(self) -> dict[str, Any]:
        raise UnsupportedVerb(
            "a ShardedEmbedding cannot be copied or pickled, because it belongs to a process group: make another one, "
            "and load_state_dict(state_dict())"
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add the rank's own rows: text that describes them, and an entry for each shard (`state.state_of`).

        A row is the bytes of its vector and of what the optimizer keeps for it.
        """
        blocks = self._blocks
        state = row_state(self._optimizer and self._optimizer(), blocks)
        columns = {_VECTOR: blocks, **state.columns}
        about = {
            "embedding_dim": self.embedding_dim,
            "id_dtype": _name(self._id_dtype),
            "columns": [(name, _name(each[0].dtype)) for name, each in columns.items()],
            "others": state.others,
        }
        keys, rows = self.local.to_arrays(like="torch")
        held = [vectors_of(each, rows).cpu().view(torch.uint8) for each in columns.values()]
        table = self._table_of(keys.cpu(), torch.cat(held, 1))
        destination[prefix + "about"] = json.dumps(about)
        for name, entry in state_of(self._channel, table).items():
            destination[prefix + name] = entry

    def _table_of(self, keys: torch.Tensor, rows: torch.Tensor) -> HashMap[Any, Any]:
        """A table from ids to rows of bytes."""
        value = ("uint8", rows.shape[1])
        made: HashMap[Any, Any] = HashMap(_name(self._key_dtype), value, capacity=len(keys), device="cpu")
        made.insert(keys, rows, assume_unique=True)
        return made

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Hold the rows of a state in place of all ids. Collective.

        The rows of a rank are spread over the entries of the shards that the rank owns. If a rank's state is wrong, no
        rank changes anything.
        """
        state = {key[len(prefix) :]: entry for key, entry in state_dict.items() if key.startswith(prefix)}
        unexpected_keys += [prefix + key for key in state if not _STATE_ENTRY.fullmatch(key)]
        try:
            with self._channel.call("load the state of a ShardedEmbedding") as call:
                put_in_place = self._prepared(state)
                call.agree()
        except CollectiveError as error:
            error_msgs.append(f"{prefix}: {error}")
            return
        put_in_place()

    def _prepared(self, state: dict[str, Any]) -> Callable[[], None]:
        """Read a state, and make room for its rows. What is returned puts it in place."""
        columns, others = self._columns_of(state.get("about"))
        sizes = [self.embedding_dim * getattr(torch, dtype).itemsize for _, dtype in columns]
        no_rows = self._table_of(torch.empty(0, dtype=self._key_dtype), torch.empty((0, sum(sizes)), dtype=torch.uint8))
        table: Any = rebuilt(self._channel, no_rows, state)
        keys, rows = table.to_arrays(like="torch")
        local = self._new_map(max(len(keys), self.local.capacity))
        local.insert(keys, torch.arange(len(keys), device=keys.device), assume_unique=True)
        self._add_blocks(self._more_blocks(len(keys)))
        blocks, optimizer, kept = self._blocks, self._optimizer and self._optimizer(), RowState({}, others)
        held = [part.contiguous().to(blocks[0].device) for part in rows.split(sizes, 1)]
        parts = {name: part.view(getattr(torch, dtype)) for (name, dtype), part in zip(columns, held, strict=True)}
        vectors = parts.pop(_VECTOR)
        if optimizer is not None:
            for name, part in parts.items():
                kept.columns[name] = new_rows(optimizer, blocks, part.dtype)
                put(kept.columns[name], 0, part)

        def put_in_place() -> None:
            self.local = local
            put(blocks, 0, vectors)
            if optimizer is not None:
                replace_state(optimizer, blocks, kept)

        return put_in_place

    def _columns_of(self, about: Any) -> tuple[list[tuple[str, str]], dict[str, tuple[float, str | None]]]:
        """The columns of the rows of a state, and what the optimizer kept beside them."""
        try:
            told = json.loads(about)
            columns = [(name, dtype) for name, dtype in told["columns"]]
            others = {name: (value, dtype) for name, (value, dtype) in told["others"].items()}
            of_state = told["embedding_dim"], told["id_dtype"], columns[0][1]
        except (TypeError, ValueError, LookupError, AttributeError):
            raise CorruptFile(
                f"the state must be that of a ShardedEmbedding, got {shown(about)} as the text that describes it"
            ) from None
        expected = self.embedding_dim, _name(self._id_dtype), _name(self._dtype)
        if of_state != expected:
            raise DtypeError(
                f"the state must have {expected[0]} numbers of {expected[2]} for ids of {expected[1]}, got "
                f"{shown(of_state[0])} of {shown(of_state[2])} for {shown(of_state[1])}: make the module of these types"
            )
        return columns, others


class _Lookup:
    """A lookup that was made, as its backward pass needs it.

    Attributes
    ----------
    said
        Names the lookup, alike on all ranks.
    batch, codes
        The distinct ids of this rank, and the number of the id of each element.
    end
        Rows that this rank had given at the end.
    """

    def __init__(
        self, embedding: ShardedEmbedding, said: str, batch: torch.Tensor, codes: torch.Tensor, end: int
    ) -> None:
        self.embedding, self.said, self.batch, self.codes, self.end = embedding, said, batch, codes, end


class _Looked(torch.autograd.Function):  # type: ignore[misc, unused-ignore]  # as above
    """The answers of a lookup as a function of the blocks. A list hides the answers from PyTorch until then."""

    @staticmethod
    def forward(ctx: Any, lookup: _Lookup, answers: list[torch.Tensor], *blocks: torch.Tensor) -> torch.Tensor:
        ctx.lookup, ctx.blocks = lookup, [block.detach() for block in blocks]
        return answers.pop()

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        lookup = ctx.lookup
        return None, None, *lookup.embedding._gradients(lookup, gradients, ctx.blocks)


def _rows_of(array: torch.Tensor) -> Rows:
    return Rows(array.data_ptr(), _row_bytes(array))


def _answers_to(array: torch.Tensor) -> Answers:
    return Answers(array.data_ptr(), Kind(_row_bytes(array)))


def _row_bytes(array: torch.Tensor) -> int:
    return int(array.element_size()) * int(np.prod(array.shape[1:]))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _key_type(dtype: Any) -> torch.dtype:
    """The signed type as wide as one of ids."""
    if _limits(dtype) is None:
        raise DtypeError(f"id_dtype must be an integer type of PyTorch's, such as torch.int64, got {dtype!r}")
    return _SIGNED[dtype.itemsize]


def _holds(wide: torch.dtype, narrow: torch.dtype) -> bool:
    """Whether a type of integers has all numbers of another type."""
    outer, inner = _limits(wide), _limits(narrow)
    return outer is not None and inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]


def _limits(dtype: Any) -> tuple[int, int] | None:
    """The least and the largest number of a type of integers; None for another type."""
    try:
        found = torch.iinfo(dtype)
    except TypeError:
        return None
    return found.min, found.max
