"""Entry point of ``python -m reproduction``."""

import sys

from reproduction.command import main

if __name__ == "__main__":
    sys.exit(main())
