"""Put the published test files into the wheel, inside the package; an editable install reads them from the checkout."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PublishedTests(BuildHookInterface[Any]):
    """hatchling's force-include, except in editable installs, where a copy would grow stale."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add data/tests to a standard wheel."""
        if version == "standard":
            build_data["force_include"]["data/tests"] = "distseat/data/tests"
