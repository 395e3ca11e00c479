"""What the ranks of a group say to each other: the header of each call, exchanges of rows, and how a call ended.

Protocol of a call (`Call`). All ranks of a group make the same calls, in the same order.

1. A rank prepares: it checks its arguments and allocates all that the call needs.
2. `Call.agree`: each rank tells all ranks one header of 64-bit words::

       [ number of the call | digest of its text | whether step 1 failed | number for all | digest of what is heard |
         a number for each rank ... ]

   If a rank failed, or if ranks make different calls, all ranks raise `CollectiveError` here. Nothing was exchanged.
3. `Call.exchange`, any number of times. The headers say how many rows each rank sends to each other one. So all ranks
   know all sizes, and nobody waits for a message that nobody sends.
4. `Call.conclude`: each rank tells whether its part failed. All ranks raise, or none.

On a GPU, steps 2 and 4 use a stream of their own. So a rank waits for what the others tell, and not for what it has
launched meanwhile: a header is behind its numbers (`Channel.mark`), and the word of step 4 is behind nothing.

A rank that does not answer within the time-out of the group, or whose process ended, is lost: `PeerLost`. Then no rank
can know what the others have done, and the channel refuses all further calls.

A KeyboardInterrupt comes out when a call has ended: a rank that left a call would leave the others waiting for it.

Why a channel has a process group of its own: a program may use its own group meanwhile, on another thread. Two threads
that use one communicator of NCCL can wait for each other.
"""

from __future__ import annotations

import signal
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
import torch.distributed as dist

from ..errors import CollectiveError, DeviceError, ParameterError, PeerLost
from ..runtime.devices import engine_for
from ..runtime.memory import bytes_of

__all__ = ["Call", "Channel", "Heard", "Message", "channel_of"]

T = TypeVar("T")

_FIELDS = 5
"""Of a header, ahead of the numbers for ranks: call, digest, failure, number for all, digest of what is heard."""

_WORD_BYTES = 8

_BEYOND = 1 << 32
"""No program makes so many groups by itself."""

_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
"""Newer versions of PyTorch warn of the older name."""


class Heard(Protocol):
    """What the ranks of a call compare by digests in their headers, and more closely if these differ."""

    def digest(self) -> int:
        """A number for what this rank has."""
        ...

    def compare(self, call: Call, digests: Sequence[int]) -> None:
        """Hear the digests of all ranks, in the same way on all of them."""
        ...


class Message(NamedTuple):
    """Bytes that one rank sends or receives.

    Attributes
    ----------
    peer
        The other rank.
    data
        uint8, contiguous.
    """

    peer: int
    data: torch.Tensor


class Channel:
    """The way between the ranks of one group.

    Parameters
    ----------
    group
        The group of the caller. The channel makes one of its own, of the same ranks: a collective call.

    Attributes
    ----------
    rank, world
        Of this process, and how many there are.
    place
        Where messages lie: the CPU, or the current GPU of this process if the group uses NCCL.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.rank: int = dist.get_rank(group)
        self.world: int = dist.get_world_size(group)
        self.ranks = [dist.get_global_rank(group, rank) for rank in range(self.world)]
        self.place = _place_of(group)
        self.calls = 0
        self._lock = threading.Lock()
        self._lost: str | None = None
        self._words = torch.empty(_FIELDS, dtype=torch.int64, pin_memory=self.place.type == "cuda")
        of_gpu: Any = torch.cuda  # whose functions have no types
        self._aside = of_gpu.Stream(self.place) if self.place.type == "cuda" else None
        with self.peers():
            timeout = _timeout_of(group, self.place)
            self.group = _group_like(group, self.ranks, self.ranks[self.rank], timeout, self.place)

    @property
    def device(self) -> str:
        """The name of the place, as tables name it."""
        return "cpu" if self.place.type == "cpu" else f"cuda:{self.place.index}"

    def stream(self) -> int | None:
        """The stream in whose order messages are ready and read; None on a CPU."""
        if self.place.type == "cpu":
            return None
        handle: int = torch.cuda.current_stream(self.place).cuda_stream
        return handle

    def memory(self, nbytes: int) -> torch.Tensor:
        """Uninitialised bytes for messages. On a CPU, they are the engine's, which keeps what is freed."""
        if self.place.type == "cpu" and nbytes:
            return torch.from_numpy(bytes_of(engine_for("cpu").allocate(nbytes)))
        try:
            return torch.empty(nbytes, dtype=torch.uint8, device=self.place)
        except RuntimeError as error:  # `torch.OutOfMemoryError` is one, too
            raise MemoryError(f"{nbytes:,} bytes for messages of a collective call: {error}") from None

    def header(self) -> torch.Tensor:
        """A new header: zeros, in the memory of messages."""
        return torch.zeros(_FIELDS + self.world, dtype=torch.int64, device=self.place)

    def numbers_at(self, header: torch.Tensor) -> int:
        """The address of a header's numbers for ranks."""
        begin: int = header.data_ptr()
        return begin + _FIELDS * _WORD_BYTES

    @contextmanager
    def call(self, text: str) -> Iterator[Call]:
        """Make a collective call; calls of other threads wait.

        Parameters
        ----------
        text
            What is called, and with which options: that of all ranks must be equal.

        Raises
        ------
        CollectiveError
            If a rank failed, or calls something else. All ranks raise it.
        PeerLost
            If a rank does not answer, or one was lost before.
        """
        with self._lock, _interrupts_later():
            if self._lost is not None:
                raise PeerLost(f"a rank of this group was lost before ({self._lost}): start the program again")
            self.calls += 1
            made = Call(self, text)
            try:
                yield made
            except (CollectiveError, PeerLost):
                raise
            except BaseException as error:
                if made.is_announced:
                    self._lost = f"this rank left a call: {error}"
                    raise
                made.fail(error)
                raise

    def mark(self) -> Any:
        """What is launched in the stream of messages by now; None on a CPU, where all of that is done."""
        return None if self._aside is None else torch.cuda.current_stream(self.place).record_event()

    @contextmanager
    def aside(self, behind: Any = None) -> Iterator[None]:
        """Use a stream beside that of the messages, on a GPU; behind a `mark`."""
        if self._aside is None:
            yield
            return
        if behind is not None:
            self._aside.wait_event(behind)
        with torch.cuda.stream(self._aside):
            yield

    def write(self, words: Sequence[int], target: torch.Tensor) -> None:
        """Write the first words of a row of integers, and no others until all ranks have heard these."""
        source = self._words[: len(words)]
        source.copy_(torch.tensor(words, dtype=torch.int64))
        target[: len(words)].copy_(source, non_blocking=True)

    def done(self, text: str, work: Callable[[], T]) -> T:
        """Do local work that may take long, and then hear of all ranks: all did theirs, or all raise.

        An interrupt ends the work at once, unlike that of a `call`.

        Raises
        ------
        CollectiveError, PeerLost
            As `call`.
        """
        made: list[T] = []
        error: BaseException | None = None
        try:
            made.append(work())
        except BaseException as raised:
            error = raised
        try:
            with self.call(text) as call:
                if error is not None:
                    raise error
                call.agree()
        except CollectiveError:
            if isinstance(error, KeyboardInterrupt):
                raise error from None
            raise
        return made[0]

    @contextmanager
    def peers(self) -> Iterator[None]:
        """Wait for other ranks: what the library raises meanwhile means that a rank is lost."""
        try:
            yield
        except RuntimeError as error:  # `torch.distributed.DistBackendError` is one, too
            self._lost = str(error).splitlines()[0][:200]
            raise PeerLost(
                f"a rank of the group does not answer: {self._lost}. What the other ranks did of this call is unknown: "
                "start the program again, from a checkpoint"
            ) from error


class Call:
    """One collective call, as this rank sees it.

    Attributes
    ----------
    is_announced
        Whether this rank has told the others its header.
    for_all
        The number for all of each rank, of the last headers.
    heard
        What the ranks compare; None for nothing, on all ranks alike.
    """

    def __init__(self, channel: Channel, text: str) -> None:
        self._channel, self._text = channel, text
        self.is_announced = False
        self.for_all: list[int] = []
        self.heard: Heard | None = None

    def agree(self, header: torch.Tensor | None = None, behind: Any = None, *, for_all: int = 0) -> list[list[int]]:
        """Tell all ranks this rank's header, and hear theirs.

        Parameters
        ----------
        header
            With the numbers for ranks, which the stream of messages may still be writing. None: there are no numbers.
        behind
            A `Channel.mark` behind the numbers; None: now.
        for_all
            A number that this rank tells all ranks.

        Returns
        -------
        list
            The numbers of all ranks: of rank r for rank s at ``[r][s]``.

        Raises
        ------
        CollectiveError
            If a rank failed, or calls something else. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        return self._agree(header, None, behind, for_all)

    def fail(self, error: BaseException) -> None:
        """As `agree`, of a rank whose preparation raised ``error``: raises on all ranks."""
        self._agree(None, error)

    def _agree(
        self, header: torch.Tensor | None, error: BaseException | None, behind: Any = None, for_all: int = 0
    ) -> list[list[int]]:
        header = self._channel.header() if header is None else header
        self.is_announced = True
        number, text = self._channel.calls, self._text
        digest = 0 if self.heard is None or error is not None else self.heard.digest()
        words = [number, zlib.crc32(text.encode()), error is not None, for_all, digest]
        rows = self._gathered(words, header, behind or self._channel.mark())
        # A rank that failed may not know all options of its call.
        if len({row[0] for row in rows}) > 1 or len({row[1] for row in rows if not row[2]}) > 1:
            texts = dict(enumerate(self.told(f"call {number}, {text}")))
            raise CollectiveError(
                f"the ranks of a group must make the same calls in the same order, got {_listed(texts)}: see which "
                "rank leaves a call out, or makes it with other options",
                texts,
            ) from error
        self._raise_alike([bool(row[2]) for row in rows], error, rounds=0)
        self.for_all = [row[3] for row in rows]
        if self.heard is not None:
            self.heard.compare(self, [row[4] for row in rows])
        return [row[_FIELDS:] for row in rows]

    def exchange(self, sent: Iterable[Message], received: Iterable[Message]) -> Callable[[], None]:
        """Begin to send and receive. Empty messages are left out, on both sides.

        Returns
        -------
        callable
            Waits for the end. On a GPU, the work that is launched from then on comes behind the messages.
        """
        channel = self._channel
        operations = [
            dist.P2POp(way, message.data, channel.ranks[message.peer], group=channel.group)
            for way, messages in ((dist.isend, sent), (dist.irecv, received))
            for message in messages
            if len(message.data)
        ]
        if not operations:
            return lambda: None
        with channel.peers():
            works = dist.batch_isend_irecv(operations)

        def wait() -> None:
            with channel.peers():
                for work in works:
                    work.wait()

        return wait

    def conclude(self, error: BaseException | None, rounds: int, *, has_begun: bool = False) -> None:
        """Tell all ranks how this rank's part went, and raise on all if one failed.

        Parameters
        ----------
        error
            What was raised; None if nothing was.
        rounds, has_begun
            Rounds that were done, and whether there was any.

        Raises
        ------
        CollectiveError
            If a rank failed.
        PeerLost
            If a rank does not answer.
        """
        told = torch.empty(2, dtype=torch.int64, device=self._channel.place)
        rows = self._gathered([error is not None, rounds], told)
        done = min(row[1] for row in rows)
        self._raise_alike([bool(row[0]) for row in rows], error, done, has_begun=has_begun)

    def together(self, work: Callable[[], T], *, has_begun: bool = False) -> T:
        """Do local work behind `agree`: it is done on all ranks, or all raise. ``has_begun`` as of `conclude`.

        Raises
        ------
        CollectiveError
            If the work raised on a rank.
        PeerLost
            If a rank does not answer.
        """
        made: list[T] = []
        error: BaseException | None = None
        try:
            made.append(work())
        except BaseException as raised:
            error = raised
        self.conclude(error, 0, has_begun=has_begun)
        return made[0]

    def total(self, n: int) -> int:
        """The sum of a number of each rank: an `agree`."""
        header = self._channel.header()
        header[-self._channel.world :] = n
        return sum(row[0] for row in self.agree(header))

    def told(self, given: Any) -> list[Any]:
        """What each rank gives: any object that can be pickled, of few bytes."""
        channel = self._channel
        every: list[Any] = [None] * channel.world
        with channel.peers():
            dist.all_gather_object(every, given, group=channel.group)
        return every

    def _gathered(self, words: Sequence[int], row: torch.Tensor, behind: Any = None) -> list[list[int]]:
        """The rows of all ranks: some words, and numbers behind them."""
        channel = self._channel
        with channel.peers(), channel.aside(behind):
            channel.write(words, row)
            every = torch.empty(channel.world * len(row), dtype=row.dtype, device=row.device)
            _all_gather(every, row, group=channel.group)
            rows: list[list[int]] = every.view(channel.world, len(row)).tolist()
        return rows

    def _raise_alike(
        self, failed: Sequence[bool], error: BaseException | None, rounds: int, *, has_begun: bool = False
    ) -> None:
        if not any(failed):
            return
        texts = self.told("" if error is None else f"{type(error).__name__}: {error}")
        failures = {rank: texts[rank] for rank, has_failed in enumerate(failed) if has_failed}
        said = f"{self._text} failed on {_listed(failures)}"
        raise CollectiveError(said, failures, rounds, has_begun=has_begun) from error


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Have an interrupt come out at the end. Python handles signals in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[FrameType | None] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: noted.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler if handler is not None else signal.SIG_DFL)
        if noted and callable(handler):
            handler(signal.SIGINT, noted[0])


_channels: dict[dist.ProcessGroup, Channel] = {}
"""Those of groups: a program has few groups."""


def channel_of(group: Any = None) -> Channel:
    """The channel of a process group, of a device mesh with one dimension, or of all ranks (None).

    The first call for a group is collective.

    Raises
    ------
    ParameterError
        If there is no process group, or ``group`` is something else.
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise ParameterError(
            "there is no process group: call warphash.distributed.init() first, in a program that torchrun starts"
        )
    if group is None:
        group = dist.group.WORLD
    elif hasattr(group, "get_group"):
        if group.ndim != 1:
            raise ParameterError(
                f"group must be a process group or a device mesh with one dimension, got one with {group.ndim}: give "
                'one of them, as in mesh["dp"]'
            )
        group = group.get_group()
    if not isinstance(group, dist.ProcessGroup):
        raise ParameterError(
            f"group must be a process group of torch.distributed, or a device mesh, got {type(group).__name__}; a rank "
            "that is not in a group makes no calls of it"
        )
    made = _channels.get(group)
    if made is None:
        made = _channels[group] = Channel(group)
    return made


def _place_of(group: dist.ProcessGroup) -> torch.device:
    if "nccl" not in str(dist.get_backend(group)):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise DeviceError("the group uses NCCL, and this process sees no GPU: make the group with backend='gloo'")
    return torch.device("cuda", torch.cuda.current_device())


def _group_like(
    group: dist.ProcessGroup, ranks: Sequence[int], rank: int, timeout: timedelta | None, place: torch.device
) -> Any:
    """A new group of the ranks of a group. Collective.

    Ranks find each other for a new group under a name. A part of the name is a number that each rank counts for itself:
    since PyTorch 2.14, the groups that it has heard of; before, the groups that it is in. Where the numbers differ,
    ranks would wait for ever, each under another name. So the ranks of the group first have one number.
    """
    library: Any = dist.distributed_c10d._world
    version: Any = torch.__version__  # which a tuple compares with
    counted = library.group_count
    every: list[Any] = [None] * len(ranks)
    dist.all_gather_object(every, (len(library.pg_names), counted), group=group)
    most_names, most_counted = map(max, zip(*every, strict=True))
    if version >= (2, 14):
        library.group_count = _BEYOND + most_counted + most_names  # another number for each group of these ranks
    else:
        for _ in range(most_names - len(library.pg_names)):
            dist.new_group([rank], backend="gloo", use_local_synchronization=True)
    options = None if place.type == "cpu" else _options_of_nccl(timeout)
    try:
        return dist.new_group(list(ranks), timeout=timeout, pg_options=options, use_local_synchronization=True)
    finally:
        library.group_count = counted  # that of ranks outside of the group has not changed


def _options_of_nccl(timeout: timedelta | None) -> Any:
    """Messages go ahead of local work that the GPU has not begun. They would wait for it otherwise."""
    library: Any = dist  # which does not list these options in its ``__all__``
    options = library.ProcessGroupNCCL.Options()
    options.is_high_priority_stream = True
    if timeout is not None:
        options._timeout = timeout  # which the library compares with that of the group
    return options


def _timeout_of(group: dist.ProcessGroup, place: torch.device) -> timedelta | None:
    """The time-out of a group; None, which stands for the default one, if the library does not tell."""
    options = getattr(group._get_backend(place), "options", None)
    found = getattr(options, "_timeout", None)
    return found if isinstance(found, timedelta) else None


def _listed(texts: dict[int, str]) -> str:
    """Texts of ranks, in a message: equal ones once."""
    ranks: dict[str, list[str]] = {}
    for rank, text in texts.items():
        ranks.setdefault(text, []).append(str(rank))
    return "; ".join(f"rank{'s' * (len(of) > 1)} {', '.join(of)}: {text}" for text, of in ranks.items())
