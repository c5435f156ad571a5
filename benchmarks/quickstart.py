"""How long the quickstart takes and how much memory all of its processes hold: `python benchmarks/quickstart.py`.

Goals on two cores, with everything installed: first run under 90 s and 3 GB, second run under 30 s.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

_SAMPLE_S = 0.3


def main() -> None:
    """Run the quickstart twice into one directory and print seconds and peak memory of each run."""
    distseat = Path(sys.executable).with_name("distseat")
    with tempfile.TemporaryDirectory() as out:
        for name in ("first run", "second run"):
            seconds, peak = _measured([str(distseat), "sweep", "examples/quickstart.yaml", "--out", out])
            print(f"{name}: {seconds:.1f} s, at most {peak / 1e9:.2f} GB (proportional set size of all processes)")


def _measured(command: list[str]) -> tuple[float, int]:
    started, peak = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - the project's own command
        while process.poll() is None:
            peak = max(peak, _memory(process.pid))
            time.sleep(_SAMPLE_S)
    if process.returncode:
        sys.exit(f"the quickstart failed with exit code {process.returncode}")
    return time.monotonic() - started, peak


def _memory(pid: int) -> int:
    total = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for member in family:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:  # it ended meanwhile
            continue
    return total


if __name__ == "__main__":
    main()
