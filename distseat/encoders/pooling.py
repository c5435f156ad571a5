"""How token vectors become one, and which tokens a word is made of."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["pool", "pooled_positions", "subtoken_positions"]

_SPACE_MARKERS: Final = "\u0120\u2581 "  # byte-level BPE and sentencepiece write a leading space as a character
_NOT_ONE_TOKEN: Final = -1


def subtoken_positions(
    offsets: Sequence[tuple[int, int]], names: Sequence[str], special: Sequence[bool], start: int, end: int
) -> list[int]:
    """Positions of the tokens that a word's characters `start` to `end` are in.

    A token belongs to the word if their characters overlap: some tokenizers count the space before a word as part of
    its first token, so that equal starts cannot be asked for. A token that is only the mark of that space does not.

    Examples
    --------
    >>> subtoken_positions([(0, 4), (4, 5), (4, 7), (7, 9)], ["This", "\u2581", "\u2581is", "Ad"], [False] * 4, 5, 9)
    [2, 3]
    """
    return [
        position
        for position, (first, last) in enumerate(offsets)
        if max(first, start) < min(last, end) and not special[position] and names[position].strip(_SPACE_MARKERS)
    ]


def pool(pooling: str, states_ntd: torch.Tensor, seen_nt: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    """One vector a text.

    Parameters
    ----------
    pooling
        cls, mean, max, last over the tokens seen; first-subword, last-subword, mean-subword over the word's.
    states_ntd
        Hidden states, shape ``(n, tokens, dimension)``.
    seen_nt
        Which tokens count, shape ``(n, tokens)``: no padding, and no special tokens where they are excluded.
    words
        For the subword rules, positions of each text's word.

    Returns
    -------
    torch.Tensor
        Shape ``(n, dimension)``.
    """
    return _POOLINGS[pooling](states_ntd, seen_nt, words)


def pooled_positions(
    pooling: str, specials: Sequence[Sequence[bool]], words: Sequence[Sequence[int]], *, exclude_special: bool
) -> NDArray[np.int32]:
    """The position whose hidden state is the vector, shape ``(n,)``; -1 where the vector is of several tokens."""
    if pooling == "cls":
        return np.zeros(len(specials), dtype=np.int32)
    if pooling == "last":
        last = [max(i for i, flag in enumerate(row) if not (flag and exclude_special)) for row in specials]
        return np.array(last, dtype=np.int32)
    if pooling in ("first-subword", "last-subword"):
        edge = 0 if pooling == "first-subword" else -1
        return np.array([word[edge] for word in words], dtype=np.int32)
    return np.full(len(specials), _NOT_ONE_TOKEN, dtype=np.int32)


def _cls(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:  # noqa: ARG001 - one signature for all
    return states[:, 0]


def _mean(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:  # noqa: ARG001 - likewise
    weights = seen.unsqueeze(-1).to(torch.float32)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1)


def _max(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:  # noqa: ARG001 - likewise
    return states.masked_fill(~seen.unsqueeze(-1), -torch.inf).amax(dim=1)


def _last(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:  # noqa: ARG001 - likewise
    positions = torch.arange(seen.shape[1], device=seen.device).expand_as(seen)
    return _at(states, positions.masked_fill(~seen, -1).amax(dim=1))


def _first_subword(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    return _at(states, torch.tensor([word[0] for word in words], device=seen.device))


def _last_subword(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    return _at(states, torch.tensor([word[-1] for word in words], device=seen.device))


def _mean_subword(states: torch.Tensor, seen: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    inside = torch.zeros_like(seen)
    for row, word in enumerate(words):
        inside[row, list(word)] = True
    return _mean(states, inside, words)


def _at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return states[torch.arange(len(states), device=states.device), positions]


_POOLINGS: Final[dict[str, Callable[[torch.Tensor, torch.Tensor, Sequence[Sequence[int]]], torch.Tensor]]] = {
    "cls": _cls,
    "mean": _mean,
    "max": _max,
    "last": _last,
    "first-subword": _first_subword,
    "last-subword": _last_subword,
    "mean-subword": _mean_subword,
}
