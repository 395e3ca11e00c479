"""Random sequences of all verbs, on every design, with keys of every type in every container, beside a dict."""

from __future__ import annotations

from fuzz.example import Example
from fuzz.key_types import KEY_TYPES
from fuzz.subject import VALUE_TYPES, VERBS, Subject


def run(example: Example) -> None:
    example.choose_design()
    key = example.choose(KEY_TYPES)
    subject = Subject(example, key, None if example.happens(0.25) else example.choose(VALUE_TYPES))
    for _ in range(example.between(3, 15)):
        example.choose(VERBS)(subject)
    subject.check()
