"""Names of methods and alternatives, told at once where they are wrong: a slip must not pick another computation."""

from collections.abc import Sequence

from distseat.errors import ConfigError

__all__ = ["require_option"]


def require_option(name: str, value: str, known: Sequence[str]) -> None:
    """Check that an option has one of its values.

    Raises
    ------
    ConfigError
        It has not.
    """
    if value not in known:
        raise ConfigError(f"{name} is {value!r}, but one of {', '.join(known)} was expected")
