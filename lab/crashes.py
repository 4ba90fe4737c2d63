"""End or kill every command that writes at any moment, and look at what its repeat leaves.

python lab/crashes.py --kills 100 --json lab/benchmarks/results/crashes.json
"""

from psgnn_lab.crashes import main

if __name__ == "__main__":
    main()
