"""Draw the README's picture from the quickstart's results: `python docs/picture.py`."""

import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from distseat.cli.display import results_table
from distseat.stores import read_rows

_PICTURE = Path(__file__).parent / "images" / "quickstart.svg"


def main() -> None:
    """Write docs/images/quickstart.svg, with the reader's own fixed-width font in place of a font of the net."""
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=96, file=nowhere)
        results_table(read_rows(Path("out/quickstart/results.parquet")), console)
    title = "distseat sweep examples/quickstart.yaml"
    svg = console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id="distseat")
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "monospace")
    _PICTURE.parent.mkdir(exist_ok=True)
    _PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
