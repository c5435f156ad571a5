"""The exceptions of distseat: one root, and for each kind of trouble a class that is also the builtin it resembles.

DistseatError                exit code 2: the user can mend it
├── DefinitionError          (ValueError)        a test file that is not what it should be
├── ConfigError              (ValueError)        a configuration that is not what it should be
├── ModelError               (LookupError)       a model, revision or layer that is not there or may not be loaded
├── EncodingError            (ValueError)        a stimulus that this model cannot encode
├── AssociationError         (ValueError)        vectors that no association can be computed from
├── StorageError             (OSError)           a place that cannot be read or written
│   └── FormatVersionError                       a store or result written by another version of the format
└── IncompleteRunError       (RuntimeError)      exit code 3: a run that is not whole
"""

from typing import ClassVar

__all__ = [
    "AssociationError",
    "ConfigError",
    "DefinitionError",
    "DistseatError",
    "EncodingError",
    "FormatVersionError",
    "IncompleteRunError",
    "ModelError",
    "StorageError",
]


class DistseatError(Exception):
    """Root of all errors that distseat raises on purpose; its message says what to do next."""

    exit_code: ClassVar[int] = 2


class DefinitionError(DistseatError, ValueError):
    """A test file that is not what it should be; the message lists every fault of every file."""


class ConfigError(DistseatError, ValueError):
    """A configuration that is not what it should be; the message lists every fault."""


class ModelError(DistseatError, LookupError):
    """A model, revision or layer that does not exist, or files that may not be loaded."""


class EncodingError(DistseatError, ValueError):
    """A stimulus that the model cannot encode, with the model, the text and the reason."""


class AssociationError(DistseatError, ValueError):
    """Stimulus vectors that no association can be computed from."""


class StorageError(DistseatError, OSError):
    """A place that cannot be listed, read or written."""


class FormatVersionError(StorageError):
    """A store or a result that another version of the format has written."""


class IncompleteRunError(DistseatError, RuntimeError):
    """A run of which units failed or are missing; nothing was decided and no table was written."""

    exit_code: ClassVar[int] = 3
