"""``python -m psgnn`` is the command ``psgnn``."""

from psgnn.cli import main

main()
