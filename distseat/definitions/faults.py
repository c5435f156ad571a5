"""Every fault of a file, collected and told at once: file, key, what was expected, what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

__all__ = ["Faults", "nearest"]

_shown = Repr()
_shown.maxstring = _shown.maxother = 60

_EXPECTED = {
    "dict_type": "a mapping (key: value) was expected",
    "model_type": "a mapping (key: value) was expected",
    "model_attributes_type": "a mapping (key: value) was expected",
    "list_type": "a list was expected",
    "string_type": "a text was expected",
    "string_too_short": "a text that is not empty was expected",
    "string_pattern_mismatch": "a text without blanks at its ends was expected",
    "int_type": "a whole number was expected",
    "int_parsing": "a whole number was expected",
    "too_short": "at least 1 entry was expected",
}
_NAME_EXPECTED = "a name of letters, digits, _ . + - was expected"


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint to the known name most like `name`, or an empty text."""
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), list(folded), n=1)
    return f"; did you mean {folded[close[0]]!r}" if close else ""


@dataclass(slots=True)
class Faults:
    """The faults found so far; empty means that all is well."""

    lines: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lines)

    def add(self, file: str, key: str, message: str) -> None:
        """Note one fault at a key of a file."""
        self.lines.append(f"{file}: {key}: {message}" if key else f"{file}: {message}")

    def add_validation(
        self, file: str, error: ValidationError, content: object, *, known_keys: Sequence[str] = ()
    ) -> None:
        """Note all that pydantic found in a file's content, once a place."""
        expected: dict[str, list[str]] = {}
        found: dict[str, str] = {}
        for detail in error.errors():
            place = _key_path(detail["loc"], content)
            if detail["type"] == "extra_forbidden":
                message = f"no such key is known here{nearest(str(detail['loc'][-1]), known_keys)}"
            else:
                message = _expected(detail)
                found[place] = _found(detail)
            expected.setdefault(place, []).append(message)
        for place, messages in expected.items():
            self.add(file, place, " or ".join(dict.fromkeys(messages)) + found.get(place, ""))

    def told(self, what: str) -> str:
        """All faults as one message, for the error that ends the reading."""
        many = f"{len(self.lines)} faults" if len(self.lines) > 1 else "1 fault"
        return "\n".join([f"{what}: {many}", *(f"  {line}" for line in self.lines)])


def _key_path(location: tuple[int | str, ...], content: object) -> str:
    """A place in the user's words: pydantic's marks of unions and of keys are left out."""
    path = ""
    for part in location:
        if isinstance(content, dict):
            keys = [key for key in content if key == part or str(key) == part]
            if not keys and path and part != location[-1]:
                continue
            path += f".{part}" if path else str(part)
            content = content[keys[0]] if keys else None
        elif isinstance(content, list) and isinstance(part, int):
            path += f"[{part}]"
            content = content[part] if part < len(content) else None
    return path


def _expected(detail: Any) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "this key is required"
    if kind == "string_pattern_mismatch" and detail["ctx"]["pattern"].startswith("^["):
        return _NAME_EXPECTED
    if kind == "literal_error":
        return f"{detail['ctx']['expected']} was expected"
    message = str(_EXPECTED.get(kind) or detail["msg"].removeprefix("Value error, "))
    return message[0].lower() + message[1:]


def _found(detail: Any) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "missing":
        return ""
    hint = "; put it in quotes" if kind == "string_type" and isinstance(value, bool | int | float) else ""
    shown = f"the yes/no value {value}" if isinstance(value, bool) else _shown.repr(value)
    return f", found {shown}{hint}"
