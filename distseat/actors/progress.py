"""How a run tells what it does: the events that the driver reports."""

from typing import Protocol

__all__ = ["Progress", "Silent"]


class Progress(Protocol):
    """Receives the events of a run."""

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int, n_tests: int) -> None:
        """What is left to do."""

    def encoded(self, n_stimuli: int) -> None:
        """So many more stimuli are in the store."""

    def model_done(self, name: str) -> None:
        """All stimuli of a model are in the store."""

    def scored(self, n_rows: int) -> None:
        """So many more rows are committed."""

    def corrected(self, n_tests: int) -> None:
        """So many more tests are corrected over all their rows."""

    def note(self, text: str) -> None:
        """Something to know: a retry, a wait."""


class Silent:
    """Tells nothing."""

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int, n_tests: int) -> None:
        """Tell nothing."""

    def encoded(self, n_stimuli: int) -> None:
        """Tell nothing."""

    def model_done(self, name: str) -> None:
        """Tell nothing."""

    def scored(self, n_rows: int) -> None:
        """Tell nothing."""

    def corrected(self, n_tests: int) -> None:
        """Tell nothing."""

    def note(self, text: str) -> None:
        """Tell nothing."""
