"""Instructions, and facts about memory, that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
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
    """Have ``array.flat[place]`` of a contiguous array on its way from memory, for a read that comes soon.

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


@intrinsic
def given(typing_context: Any, array: Any, place: Any) -> Any:
    """``array.flat[place]`` of a contiguous array that the kernel never writes to."""

    _check_contiguous(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, array, args))
        return _apart(builder, value, 0)

    return array.dtype(array, types.intp), codegen


@intrinsic(prefer_literal=True)  # scopes are known when the kernel is compiled
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
