"""distseat: social bias in text encoders and in the corpora that trained them, measured at scale.

On arrays of your own, without a sweep: `distseat.weat`, `distseat.wefat`, `distseat.holm`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distseat.statistics import holm, weat, wefat

__all__ = ["__version__", "holm", "weat", "wefat"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the statistics, and the compiler that they need, when first asked for: the command starts sooner."""
    if name in {"holm", "weat", "wefat"}:
        from distseat import statistics  # noqa: PLC0415 - only who asks pays for it

        return getattr(statistics, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
