"""Run the command line with ``python -m fastmix``."""

import sys

from fastmix.cli import main

if __name__ == "__main__":
    sys.exit(main())
