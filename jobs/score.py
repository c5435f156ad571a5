"""`distseat score` as a job: `ray job submit --working-dir . -- python jobs/score.py CONFIG [options]`."""

import sys

from distseat.cli import main

if __name__ == "__main__":
    main(["score", "--address", "auto", *sys.argv[1:]])
