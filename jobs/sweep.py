"""`distseat sweep` as a job: `ray job submit --working-dir . -- python jobs/sweep.py CONFIG [options]`."""

import sys

from distseat.cli import main

if __name__ == "__main__":
    main(["sweep", "--address", "auto", *sys.argv[1:]])
