"""`distseat encode` as a job: `ray job submit --working-dir . -- python jobs/encode.py CONFIG [options]`."""

import sys

from distseat.cli import main

if __name__ == "__main__":
    main(["encode", "--address", "auto", *sys.argv[1:]])
