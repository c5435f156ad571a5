"""What a model is to distseat: its name, where its files are, and what is measured on it by default."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, NamedTuple

from distseat.definitions import Encoding

__all__ = [
    "CWORD_POOLINGS",
    "POOLINGS",
    "CwordPooling",
    "EncodingOptions",
    "ModelSpec",
    "Pooling",
    "ResolvedModel",
    "VectorSpec",
]

Pooling = Literal["cls", "mean", "max", "last"]
POOLINGS: Final[tuple[Pooling, ...]] = ("cls", "mean", "max", "last")

CwordPooling = Literal["first-subword", "last-subword", "mean-subword"]
CWORD_POOLINGS: Final[tuple[CwordPooling, ...]] = ("first-subword", "last-subword", "mean-subword")


class VectorSpec(NamedTuple):
    """Which vector of a stimulus: its encoding, how token vectors became one, and the hidden state they are from."""

    encoding: Encoding
    pooling: str
    layer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingOptions:
    """What changes a model's vectors beyond its files; all of it is part of the model's key and of every row.

    Attributes
    ----------
    dtype
        Of the weights and the arithmetic; vectors are stored as float32 whatever it is.
    special_tokens
        Whether `mean`, `max` and `last` see the tokens that the tokenizer adds ([CLS], [SEP], <s>).
    prefix_bos
        Whether the beginning-of-sequence token is put before every text: a decoder's first position is odd without it.
    """

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    special_tokens: Literal["include", "exclude"] = "include"
    prefix_bos: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model as a user or the catalogue names it; its revision may still be a name such as "main".

    Attributes
    ----------
    name
        How results call it.
    source
        A Hugging Face id ("google-bert/bert-base-cased"), a directory, or "package:PACKAGE/FOLDER" for a model that a
        Python package carries.
    revision
        Commit, tag or branch of a Hugging Face id; of a package's model the commit that its files are known to equal.
    weights_sha256
        Of model.safetensors, where it is known; checked before loading.
    pooling
        How token vectors become one for `word` and `sent`; None where nothing is published and the user must say.
    n_parameters
        For the list of models; None if not known.
    num_gpus
        What an encoder actor asks of a cluster.
    """

    name: str
    source: str
    revision: str | None = None
    weights_sha256: str | None = None
    pooling: Pooling | None = None
    n_parameters: int | None = None
    num_gpus: float = 1.0
    options: EncodingOptions = field(default_factory=EncodingOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """A model at one exact revision, as a frozen plan and every row record it.

    Attributes
    ----------
    revision
        A commit, or "sha256:..." over the files of a directory.
    n_hidden_states
        Layers that can be asked for: the embedding layer and every block.
    """

    spec: ModelSpec
    revision: str
    n_hidden_states: int

    @property
    def key(self) -> str:
        """Name of the model's folder in a store: what determines its vectors, readable and hashed."""
        identity = [self.spec.name, self.revision, asdict(self.spec.options)]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', self.spec.name)}-{digest}"
