"""Encoders: one file a family; importing the package loads none of them."""

from distseat.encoders.protocol import Encoder

__all__ = ["Encoder"]
