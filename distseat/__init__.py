"""distseat: social bias in text encoders and in the corpora that trained them, measured at scale."""

__all__ = ["__version__"]

__version__ = "0.1.0"
