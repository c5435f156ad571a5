"""What every encoder offers, whatever library it stands on."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from distseat.definitions import Stimulus
from distseat.models import VectorSpec
from distseat.stores import EncodedUnit

__all__ = ["Encoder"]


class Encoder(Protocol):
    """A loaded model that turns stimuli into vectors."""

    @property
    def about(self) -> Mapping[str, str]:
        """What produced the vectors, for the metadata of every part: tokenizer, library versions, device, threads."""
        ...

    def encode(self, stimuli: Sequence[Stimulus], specs: Sequence[VectorSpec]) -> EncodedUnit:
        """Encode stimuli, each distinct text once, into every asked vector.

        Raises
        ------
        EncodingError
            A stimulus that this model cannot encode.
        """
        ...
