"""``python -m psgnn_lab``."""

from psgnn_lab.commands import main

main()
