"""Tests made ready: the sentences of their templates, and the sources that tests come from."""

from distseat.templates.expansion import expand, expand_form
from distseat.templates.published_format import export_tests, read_published_format
from distseat.templates.sources import PUBLISHED, load_tests, select_tests

__all__ = [
    "PUBLISHED",
    "expand",
    "expand_form",
    "export_tests",
    "load_tests",
    "read_published_format",
    "select_tests",
]
