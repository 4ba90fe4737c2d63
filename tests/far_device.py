"""A device that is not there: tensors that claim to be elsewhere, and an error where they meet some that stayed.

What happens on it is computed on the CPU. So a whole training can be run "on a GPU" without one, and compared.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

FAR = torch.device("meta")
# Places may be asked for by indices of either device, as on a GPU.
INDEXED = (
    "aten.index.Tensor",
    "aten.index_put_.default",
    "aten._index_put_impl_.default",
    "aten.index_put.default",
)


class Far(torch.Tensor):
    """A tensor on the far device; ``held`` has its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, real: torch.Tensor, requires_grad: bool = False) -> Far:
        made: Far = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, real.shape, strides=real.stride(), storage_offset=real.storage_offset(), dtype=real.dtype,
            device=FAR, requires_grad=requires_grad,
        )  # fmt: skip
        made.held = real
        return made

    def __init__(self, real: torch.Tensor, requires_grad: bool = False) -> None:
        super().__init__()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Far({self.held!r})"

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in ("matmul", "__matmul__") and args[0].dim() == 1:
            return (args[0][None] @ args[1])[0]  # torch would change a shape in place, which is ours to keep
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(function, args, kwargs or {})


class FarDevice(TorchDispatchMode):
    """While it is on, moving something to the device `FAR` works."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(function, args, kwargs or {})


def compute(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """One operation: on far tensors alone, or on near ones alone; or a move."""
    tensors = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
    far = [tensor for tensor in tensors if isinstance(tensor, Far)]
    target = kwargs.get("device")
    name = str(function)
    if far and name not in INDEXED and not name.startswith(("aten._to_copy", "aten.copy_")):
        left = [tensor for tensor in tensors if not isinstance(tensor, Far) and tensor.dim() > 0]
        assert not left, f"{name}: a tensor of shape {list(left[0].shape)} stayed on the CPU"
    moved = far and not (target is not None and torch.device(target).type == "cpu")
    if target is not None and torch.device(target).type == "meta":
        kwargs, moved = {**kwargs, "device": torch.device("cpu")}, True
    args, kwargs = tree_map(lambda value: value.held if isinstance(value, Far) else value, (args, kwargs))
    found = function(*args, **kwargs)
    in_place = name.endswith(("_.default", "_.Tensor", "_.Scalar")) and isinstance(found, torch.Tensor)
    if in_place and far and found.shape == tensors[0].shape:
        return tensors[0]
    return tree_map(lambda value: Far(value) if moved and isinstance(value, torch.Tensor) else value, found)
