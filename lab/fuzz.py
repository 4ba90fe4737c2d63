"""Attack the readers of psgnn with mutated files, in processes that may crash, hang or run out of memory.

    python lab/fuzz.py --cases 100000 --json lab/benchmarks/results/fuzz.json

A failure is anything but success or one line that says what is wrong. It is named by target, seed and case:

    python lab/fuzz.py --target "MATLAB, sparse" --seed 0 --case 17 --keep folder

writes the file again.
"""

from psgnn_lab.fuzz import main

if __name__ == "__main__":
    main()
