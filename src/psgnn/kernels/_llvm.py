"""Instructions, and facts about memory, that numba has no name for.

Each has a plain twin in Python, ``_plain_...``, which says what it does. The twin takes its place where numba compiles
nothing (``NUMBA_DISABLE_JIT=1``).

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
AHEAD = 16  # prefetch distance, in edges
FAR_AHEAD = 64  # the same for the second cache, which waits for more of them at once
STRIDE = 4  # prefetch distance in a queue, in nodes
FIRST_CACHE, SECOND_CACHE = 3, 2  # as LLVM numbers them
WRITTEN = 1  # the scope (see `add`) of a kernel that adds to one array


def _instruction(twin: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an instruction of its definition in LLVM; without compilation it is the plain twin."""
    if config.DISABLE_JIT:
        return lambda definition: twin
    return intrinsic(**options) if options else intrinsic  # type: ignore[no-any-return]


def _plain_trailing_zeros(word: np.uint64) -> np.uint64:
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


@_instruction(_plain_trailing_zeros)
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Zeros below the lowest one of a word that is not zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


def _plain_count_ones(word: np.uint64) -> np.uint64:
    return np.uint64(bin(int(word)).count("1"))


@_instruction(_plain_count_ones)
def count_ones(typing_context: Any, word: Any) -> Any:
    """Ones of a word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _plain_prefetch(array: npt.NDArray[Any], place: int) -> None:
    pass


@_instruction(_plain_prefetch)
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Have ``array.flat[place]`` of a contiguous array on its way from memory, for a read that comes soon.

    Neighbours are in random places: most of the time that a walk over a large graph takes is waiting for them. It
    changes nothing but time, and nothing at all where there is no such place.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(array)(context, builder, args[0])
        _send_for(builder, builder.gep(values.data, [args[1]]), FIRST_CACHE)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def _plain_given(array: npt.NDArray[Any], place: int) -> Any:
    return array.flat[place]


@_instruction(_plain_given)
def given(typing_context: Any, array: Any, place: Any) -> Any:
    """``array.flat[place]`` of a contiguous array that no `add` of the kernel writes to."""

    _check_contiguous(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, array, args))
        return _apart(builder, value, 0)

    return array.dtype(array, types.intp), codegen


def _plain_add(array: npt.NDArray[Any], place: int, value: Any, scope: int) -> None:
    array.flat[place] += array.dtype.type(value)


@_instruction(_plain_add, prefer_literal=True)  # scopes are known when the kernel is compiled
def add(typing_context: Any, array: Any, place: Any, value: Any, scope: Any) -> Any:
    """``array.flat[place] += value``, where arrays of another scope, 1 to 4, share no memory with this one.

    Without that word, every short loop over rows of several arrays begins with comparing all their addresses, which
    takes longer than the loop.
    """

    _check_contiguous(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, array, args)
        before = _apart(builder, builder.load(address), scope.literal_value)
        after = builder.fadd(before, args[2], flags=("fast",))
        _apart(builder, builder.store(after, address), scope.literal_value)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype, scope), codegen


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
            _send_for(builder, address, SECOND_CACHE)
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


def _send_for(builder: Any, address: Any, cache: int) -> None:
    """Have what is at the address on its way to a cache."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    to_read, keep, data = (ir.Constant(number, value) for value in (0, cache, 1))
    builder.call(fetch, [builder.bitcast(address, byte), to_read, keep, data])


def _check_contiguous(array: Any) -> None:
    if array.layout != "C":
        raise TypingError(f"places are those of contiguous arrays, found {array}")


def _address(context: Any, builder: Any, array: Any, args: Any) -> Any:
    values = context.make_array(array)(context, builder, args[0])
    return builder.gep(values.data, [args[1]], inbounds=True)


def _apart(builder: Any, access: Any, scope: int) -> Any:
    """The access to memory, marked as one that meets none of another scope."""
    module = builder.module
    domain = module.add_metadata(["psgnn"])
    scopes = [module.add_metadata([f"psgnn {number}", domain]) for number in range(5)]
    access.set_metadata("alias.scope", module.add_metadata([scopes[scope]]))
    access.set_metadata(
        "noalias", module.add_metadata([other for other in scopes if other is not scopes[scope]])
    )
    return access
