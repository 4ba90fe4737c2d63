"""Compiled loops by subject. Every ``@njit`` of psgnn is here.

Kernels take and return plain arrays, and import nothing else of psgnn. With ``NUMBA_DISABLE_JIT=1`` all of them run as
Python, slowly and with the same results.
"""
