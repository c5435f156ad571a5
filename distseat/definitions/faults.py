"""Every fault of a file, collected and told at once: file, key, what was expected, what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

__all__ = ["Faults", "nearest"]

_EXPECTED = {
    "extra_forbidden": "no such key is known here",
    "missing": "this key is required",
    "string_type": "a text was expected",
}


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint to the known name most like `name`, or an empty text."""
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}" if close else ""


_shown = Repr()
_shown.maxstring = _shown.maxother = 60


@dataclass(slots=True)
class Faults:
    """The faults found so far; empty means that all is well."""

    lines: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lines)

    def add(self, file: str, key: str, message: str) -> None:
        """Note one fault at a key of a file."""
        self.lines.append(f"{file}: {key}: {message}" if key else f"{file}: {message}")

    def add_validation(self, file: str, error: ValidationError, *, known_keys: Sequence[str] = ()) -> None:
        """Note all that pydantic found in a file."""
        for detail in error.errors():
            location = _key_path(detail["loc"])
            if detail["type"] == "extra_forbidden":
                hint = nearest(str(detail["loc"][-1]), known_keys)
                self.add(file, location, f"{_EXPECTED['extra_forbidden']}{hint}")
            else:
                self.add(file, location, _told(detail["type"], detail["msg"], detail["input"]))

    def told(self, what: str) -> str:
        """All faults as one message, for the error that ends the reading."""
        many = f"{len(self.lines)} faults" if len(self.lines) > 1 else "1 fault"
        return "\n".join([f"{what}: {many}", *(f"  {line}" for line in self.lines)])


def _key_path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _told(kind: str, message: str, value: Any) -> str:
    found = _shown.repr(value)
    if kind == "string_type" and isinstance(value, bool):
        return f"a text was expected, found the yes/no value {found}; put the word in quotes"
    if kind == "missing":
        return _EXPECTED["missing"]
    expected = _EXPECTED.get(kind, message[:1].lower() + message[1:])
    return f"{expected}, found {found}"
