"""NamedTuples of arrays, as kernels hand them to each other: by reference.

numba hands over each array of a tuple by its parts, seven words and more: hundreds for a problem and a state,
written out at every call. Without them a training's kernels compile in two thirds of the time, a lookahead's
in half of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
)

ADDRESS = ir.ArrayType(ir.IntType(8), 0).as_pointer()
"""LLVM's type of a reference."""

if ir.IntType(8).as_pointer() == ADDRESS:
    raise ImportError(
        "llvmlite's pointers have no types, so references are not told from other arguments"
    )


class Reference(types.Type):
    """numba's type of a tuple that lies in memory while a call lasts, and is only read."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.fields, self.types, self.instance_class = own.fields, own.types, own.instance_class
        digest = hashlib.sha256(str(own).encode()).hexdigest()[:16]
        super().__init__(f"{own.instance_class.__name__}.{digest}")


def is_referred(kind: Any) -> bool:
    """Whether kernels hand over by reference what is of this type."""
    return isinstance(kind, (types.NamedTuple, types.NamedUniTuple))


def refer(kind: Any) -> Any:
    """Return the type in which a kernel takes an argument of this type."""
    return Reference(kind) if is_referred(kind) else kind


@register_model(Reference)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, ADDRESS)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        return refer(kind.types[kind.fields.index(name)]) if name in kind.fields else None


@lower_getattr_generic(Reference)
def _read(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    k, whole = kind.fields.index(name), context.get_value_type(kind.own)
    own = kind.types[k]
    if isinstance(whole, ir.ArrayType):  # of fields of one type
        offset = k * context.get_abi_sizeof(whole.element)
    else:
        offset = whole.get_element_offset(context.target_data, k)
    word = ir.IntType(64)
    there = builder.gep(address, [word(0), word(offset)], inbounds=True)
    if is_referred(own):
        return builder.bitcast(there, ADDRESS)
    there = builder.bitcast(there, context.get_value_type(own).as_pointer())
    return impl_ret_borrowed(context, builder, own, builder.load(there))


@lower_cast(types.NamedTuple, Reference)
@lower_cast(types.NamedUniTuple, Reference)
def _lay_down(context: Any, builder: Any, own: Any, kind: Reference, value: Any) -> Any:
    return builder.bitcast(cgutils.alloca_once_value(builder, value), ADDRESS)


def mark_references(module: ir.Module) -> None:
    """Tell LLVM that nobody writes where references lead, so that nothing there is read twice."""
    for function in module.functions:
        for argument in function.args:
            if argument.type == ADDRESS:
                # llvmlite does not know the second, LLVM does.
                set.update(argument.attributes, ("noalias", "readonly"))
