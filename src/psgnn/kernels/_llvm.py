"""Sums of rows in registers, with what is next on its way from memory: an instruction that numba has no name for.

Its plain twin, ``_plain_add_rows``, says what it does, and takes its place where numba compiles nothing
(``NUMBA_DISABLE_JIT=1``). On a graph of a million nodes it makes a whole training 1.4 to 1.7 times as fast.

Numba compiles a kernel again when the file of the kernel changes. After a change here alone, remove the ``*.nbi``
files of the kernels that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LINE = 16  # float32 numbers in a line of the processor's cache
FAR_AHEAD = 64  # prefetch distance, in edges
SECOND_CACHE = 2  # as LLVM numbers them


def _instruction(twin: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an instruction of its definition in LLVM; without compilation it is the plain twin."""
    if config.DISABLE_JIT:
        return lambda definition: twin
    return intrinsic(**options)  # type: ignore[no-any-return]


def _plain_add_rows(
    x: npt.NDArray[np.float32],
    indices: npt.NDArray[np.int32],
    first: int,
    last: int,
    y: npt.NDArray[np.float32],
    place: int,
    column: int,
    lines: int,
) -> None:
    width = lines * LINE
    for i in range(first, last):
        y.reshape(-1)[place : place + width] += x[indices[i], column : column + width]


@_instruction(_plain_add_rows, prefer_literal=True)  # the lines are held in registers
def add_rows(
    typing_context: Any,
    x: Any,
    indices: Any,
    first: Any,
    last: Any,
    y: Any,
    place: Any,
    column: Any,
    lines: Any,
) -> Any:
    """``y.flat[place:place + n] += x[j, column:column + n]`` for the j in ``indices[first:last]``, one after the other.

    n is `lines` times `LINE`, and y another array than x. A compiler that does not know the number of columns adds
    them up in memory, with a test for every few of them; where x fits the cache, that takes twice the time.
    """
    for array, dtype in ((x, types.float32), (y, types.float32), (indices, types.int32)):
        _check_contiguous(array)
        if array.dtype != dtype:
            raise TypingError(f"rows are added up in arrays of {dtype}, found {array}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, vector = ir.IntType(64), ir.VectorType(ir.FloatType(), LINE)
        arrays = [
            context.make_array(kind)(context, builder, args[at])
            for at, kind in ((0, x), (1, indices), (4, y))
        ]
        table, neighbours, sums = arrays
        begin, end, place, column = args[2], args[3], args[5], args[6]
        width = cgutils.unpack_tuple(builder, table.shape)[1]
        final = builder.sub(neighbours.nitems, ir.Constant(word, 1))

        def lines_of(data: Any, at: Any) -> list[Any]:
            starts = [builder.add(at, ir.Constant(word, LINE * line)) for line in range(lines.literal_value)]
            addresses = [builder.gep(data, [start], inbounds=True) for start in starts]
            return [builder.bitcast(address, vector.as_pointer()) for address in addresses]

        def row_of(link: Any) -> list[Any]:
            node = builder.load(builder.gep(neighbours.data, [link], inbounds=True))
            return lines_of(table.data, builder.add(builder.mul(builder.sext(node, word), width), column))

        before = builder.basic_block
        test, body, done = (builder.append_basic_block(name) for name in ("test", "body", "done"))
        given = [builder.load(address, align=4) for address in lines_of(sums.data, place)]
        builder.branch(test)

        builder.position_at_end(test)
        link, *totals = (builder.phi(kind) for kind in (word, *[vector] * len(given)))
        for variable, value in zip((link, *totals), (begin, *given), strict=True):
            variable.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", link, end), body, done)

        builder.position_at_end(body)
        soon = builder.add(link, ir.Constant(word, FAR_AHEAD))
        for address in row_of(builder.select(builder.icmp_signed("<", soon, final), soon, final)):
            _prefetch(builder, address)
        rows = [builder.load(address, align=4) for address in row_of(link)]
        after = [builder.fadd(total, row) for total, row in zip(totals, rows, strict=True)]
        for variable, value in zip(
            (link, *totals), (builder.add(link, ir.Constant(word, 1)), *after), strict=True
        ):
            variable.add_incoming(value, body)
        builder.branch(test)

        builder.position_at_end(done)
        for total, address in zip(totals, lines_of(sums.data, place), strict=True):
            builder.store(total, address, align=4)
        return context.get_dummy_value()

    number = types.intp
    return types.void(x, indices, number, number, y, number, number, lines), codegen


def _prefetch(builder: Any, address: Any) -> None:
    """Have what is at the address on its way to the second cache."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    to_read, keep, data = (ir.Constant(number, value) for value in (0, SECOND_CACHE, 1))
    builder.call(fetch, [builder.bitcast(address, byte), to_read, keep, data])


def _check_contiguous(array: Any) -> None:
    if array.layout != "C":
        raise TypingError(f"places are those of contiguous arrays, found {array}")
