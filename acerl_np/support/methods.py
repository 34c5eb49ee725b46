"""NamedTuples whose methods compiled functions can call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import (
    intrinsic,
    make_attribute_wrapper,
    models,
    overload,
    overload_method,
    register_model,
)

from acerl_np.support.compiled import list_inlined

Function = Callable[..., Any]


def add_methods(kind: type, finders: dict[str, Function], by_literal: Function) -> Function:
    """Return a function of such a tuple: what it returns has the tuple's fields and its methods.

    `finders` return the body of a method for numba's types of its arguments; `by_literal` is asked with
    literals. numba knows methods by the class of a type, and all NamedTuples are of one; so this is another.
    """
    if numba.config.DISABLE_JIT:
        return lambda value: value
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]

    class Methods(types.Type):
        def __init__(self, own: Any) -> None:
            self.types, self._own = own.types, own
            super().__init__(kind.__name__)

        @property
        def key(self) -> Any:
            return self._own

    @register_model(Methods)
    class _Model(models.StructModel):
        def __init__(self, manager: Any, own: Any) -> None:
            super().__init__(manager, own, list(zip(fields, own.types, strict=True)))

    for name in fields:
        make_attribute_wrapper(Methods, name, name)

    @intrinsic
    def convert(typing_context, value):
        own = Methods(value)

        def write(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(own)(context, builder)
            for k, name in enumerate(fields):
                setattr(made, name, builder.extract_value(arguments[0], k))
            return impl_ret_borrowed(context, builder, own, made._getvalue())

        return own(value), write

    def with_methods(value):
        return value

    options = list_inlined()
    overload(with_methods, jit_options=options)(lambda value: lambda value: convert(value))
    for name, find in finders.items():
        find.__signature__ = inspect.signature(getattr(kind, name))  # type: ignore[attr-defined]
        how = {"jit_options": options, "strict": False, "prefer_literal": find is by_literal}
        overload_method(Methods, name, **how)(find)
    return with_methods
