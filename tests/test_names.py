"""The public names, and how they are called: whoever changes either names it here and in CHANGELOG.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import warphash

NAMES = {
    "0.1.0": """
        Aggregates CaptureError CollectiveError CorruptFile DeviceError DtypeError EngineUnavailable FrameGroupBy
        GroupBy GroupRows HashMap HashSet Index JoinIndices MultiMap NestedCall Operation ParameterError PathError
        PeerLost ProcessError ShapeError SlabAllocator Stats TableFull UniqueAll UniqueCounts UniqueInverse
        UnsupportedVerb WarphashError drop_duplicates duplicated factorize get_num_threads group_by intersect1d
        isin join merge nunique set_memory_resource set_num_threads setdiff1d setxor1d union1d unique unique_all
        unique_counts unique_inverse unique_values unpickle_to value_counts
    """,
}
"""The names that each release added. A name is taken away as CONTRIBUTING.md says, and then from here."""

POSITIONAL = {
    # as a dict's, and its like
    "HashMap.get": "default",
    "HashMap.pop": "default",
    "HashMap.find": "default",
    "HashMap.execute": "values default",
    "MultiMap.find": "default",
    "MultiMap.execute": "values default",
    # as PyTorch's
    "HashMap.cuda": "index",
    "HashSet.cuda": "index",
    "MultiMap.cuda": "index",
    "HashMap.flush": "buckets",
    "HashSet.flush": "buckets",
    "MultiMap.flush": "buckets",
    # as pandas'
    "Index.join": "how",
    "drop_duplicates": "subset",
    "duplicated": "keep",
    "group_by": "on",
    "join": "how",
    "merge": "how",
    # as NumPy's
    "intersect1d": "assume_unique return_indices",
    "isin": "assume_unique invert",
    "setdiff1d": "assume_unique",
    "setxor1d": "assume_unique",
    "unique": "return_index return_inverse return_counts axis",
}
"""The options that may be given by their place, of the verbs that follow another library in this."""

ARRAY_API = ("isin", "unique_all", "unique_counts", "unique_inverse", "unique_values")
"""The set functions of the Python array API standard."""


def verbs() -> Iterator[tuple[str, object]]:
    """Public functions, classes and methods, by name; not what a release builds for its callers, such as `Stats`."""
    for name in warphash.__all__:
        one = getattr(warphash, name)
        if not inspect.isclass(one):
            yield name, one
        elif not issubclass(one, Exception) and name not in ("Operation", "Stats"):
            yield name, one
            own = (key for key in dir(one) if not key.startswith("_") and not hasattr(tuple, key))
            own = (key for key in own if callable(getattr(one, key)))
            yield from ((f"{name}.{key}", getattr(one, key)) for key in own)


def by_place(one: object) -> str:
    """The options of a verb that may be given by their place."""
    assert callable(one)
    return " ".join(
        name
        for name, parameter in inspect.signature(one).parameters.items()
        if parameter.default is not parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
    )


def test_the_names_are_those_of_the_releases() -> None:
    listed = [name for names in NAMES.values() for name in names.split()]
    assert len(set(listed)) == len(listed)
    assert sorted(listed) == sorted(warphash.__all__), "name the addition, or the removal, in NAMES"
    assert all(hasattr(warphash, name) for name in listed)


def test_options_are_given_by_name() -> None:
    found = {name: options for name, one in verbs() if (options := by_place(one))}
    assert len(list(verbs())) > 100
    assert found == POSITIONAL


def test_the_names_of_the_array_api_are_there() -> None:
    assert set(ARRAY_API) <= set(warphash.__all__)
