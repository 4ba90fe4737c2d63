"""Single instructions of the processor that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

AHEAD = 16  # links between the neighbour that is sent for from memory and the one that is read
STRIDE = 4  # nodes of a queue likewise


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Zeros below the lowest one of a word that is not zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """Ones of a word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Have ``array[place]`` of a contiguous array ``[M]`` on its way from memory, for a read that comes soon.

    Neighbours are in random places: most of the time that a walk over a large graph takes is waiting for them. It
    changes nothing but time, and nothing at all where there is no such place.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(array)(context, builder, args[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(values.data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(fetch, [address, to_read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
