"""Compiled loops, by subject: every ``@njit`` of the package is here. Plain arrays in and out; no other package of psgnn is known here."""
