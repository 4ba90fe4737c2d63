"""Compiled loops over CSR graphs, by subject. Plain arrays in and out; no other package of psgnn is known here."""
