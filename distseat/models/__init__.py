"""Models: what they are called, where they come from, which exact revision is measured."""

from distseat.models.catalogue import CATALOGUE, catalogued
from distseat.models.resolution import local_directory, resolve
from distseat.models.spec import (
    CWORD_POOLINGS,
    POOLINGS,
    CwordPooling,
    EncodingOptions,
    ModelSpec,
    Pooling,
    ResolvedModel,
    VectorSpec,
)

__all__ = [
    "CATALOGUE",
    "CWORD_POOLINGS",
    "POOLINGS",
    "CwordPooling",
    "EncodingOptions",
    "ModelSpec",
    "Pooling",
    "ResolvedModel",
    "VectorSpec",
    "catalogued",
    "local_directory",
    "resolve",
]
