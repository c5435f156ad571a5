"""Where the published test files lie: beside the package when it is installed, beside its folder in a checkout."""

from pathlib import Path

from distseat.errors import DefinitionError

__all__ = ["published_directory"]

_PACKAGE = Path(__file__).resolve().parent.parent


def published_directory(package: Path = _PACKAGE) -> Path:
    """Directory of the published test files.

    A wheel carries them inside the package (distseat/data/tests); a checkout, installed editable or sent to a cluster
    as Ray's working_dir, has them beside it (data/tests).

    Raises
    ------
    DefinitionError
        Neither place holds them.
    """
    places = (package / "data" / "tests", package.parent / "data" / "tests")
    for place in places:
        if (place / "tests.yaml").is_file():
            return place
    told = " or ".join(map(str, places))
    raise DefinitionError(f"the published test files are not in {told}; install distseat again, or send data/ along")
