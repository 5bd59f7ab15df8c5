"""What decides the claims: the functions that pages register."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from nads_book.claims.register import ClaimError, load
from nads_book.experiments.evidence import Evidence

Decide = TypeVar("Decide", bound=Callable[..., Evidence])
DECISIONS: dict[str, functools.partial[Evidence]] = {}  # id of a claim -> function that decides it


def decides(id: str, **arguments: Any) -> Callable[[Decide], Decide]:
    """Register a function as what decides a claim.

    Args:
        id: name in ``book/claims.toml``.
        **arguments: arguments of the function.

    Raises:
        ClaimError: for a name that the register lacks, or that another function decides.
    """
    known = _registered()
    if known and id not in known:
        raise ClaimError(f"{id!r} is decided, which is no claim of book/claims.toml")

    def register(function: Decide) -> Decide:
        if id in DECISIONS:
            raise ClaimError(f"two functions decide {id!r}")
        DECISIONS[id] = functools.partial(function, **arguments)
        return function

    return register


@functools.cache
def _registered() -> frozenset[str]:
    return frozenset(load())
