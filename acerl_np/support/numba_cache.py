"""numba's cache of machine code, with one stamp over all that a kernel depends on; how kernels are compiled.

numba's own cache looks only at the file of the function that it caches. A kernel that calls kernels
of other files would then be served stale after one of those changed.

A kernel that is only ever inlined is neither optimised nor made machine code by itself: its callers do
that with their own code. Literals that are passed do not specialise a kernel, and the garbage collector
rests while one is compiled, as it would find nothing.

All of numba that may change without notice is used here and nowhere else. `compiled` goes on without
this module if a version of numba does not fit it.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numba
from llvmlite.binding import parse_bitcode
from numba import types
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result

from acerl_np.support import machine_code
from acerl_np.support.by_reference import is_referred, mark_references, refer
from acerl_np.support.log import note_compiling

Function = Callable[..., Any]


class _Locator(_CacheLocator):
    """Tell numba's cache to use `cache_folder` and `source_stamp`."""

    def __init__(self, function: Function, py_file: str) -> None:
        self._module = function.__module__
        self._name = f"{self._module}.{function.__code__.co_firstlineno}"
        self._py_file = py_file  # numba names it where code cannot be kept

    def get_cache_path(self) -> str:
        return str(machine_code.cache_folder(self._module))

    def get_source_stamp(self) -> str:
        return machine_code.source_stamp(self._module)

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Function, py_file: str) -> _Locator | None:
        return cls(py_func, py_file)


class _NoEnvironments:
    """numba's code generator, for code that nobody calls from Python."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Set nothing: no machine code would read it."""


class _InlinedLibrary(JITCodeLibrary):
    """LLVM's code of a kernel, as its callers take it over."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironments(self._codegen)

    def add_ir_module(self, module: Any) -> None:
        mark_references(module)
        super().add_ir_module(module)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        return self.name, self._get_module_for_linking().as_bitcode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _InlinedCompiler(Compiler):
    """Compiles what only kernels call."""

    def compile_extra(self, function: Function) -> Any:
        """Compile a function, as numba's own compiler, into an `_InlinedLibrary`."""
        codegen = self.state.targetctx.codegen()
        self.state.library = _InlinedLibrary(codegen, function.__qualname__)
        return super().compile_extra(function)


class _Contents(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _InlinedContents(_Contents):
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return super().get_filename_base(fullname, abiflags) + "i"

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        (name, code), described, environment, signature, *_ = payload
        library = _InlinedLibrary(target_context.codegen(), name)
        library._final_module = parse_bitcode(code)
        library._finalized = True
        return compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, described, environment),
            fndesc=described,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=[],
            referenced_envs=(),
        )


class _KernelCache(FunctionCache):
    """Machine code of one kernel; numba asks for it before compiling, and hands it over after."""

    is_announced = True

    def __init__(self, function: Function, contents: type[_Contents]) -> None:
        self._impl_class = contents
        super().__init__(function)
        folder = machine_code.cache_folder(function.__module__)
        if self.cache_path != str(folder):  # and with it another stamp
            raise NotImplementedError(f"machine code would go to {self.cache_path}")
        if folder is None:
            self.disable()

    def load_overload(self, signature: Any, *arguments: Any) -> Any:
        try:
            found = super().load_overload(signature, *arguments)
            # Two processes that save at once may both name their file alike.
            if found and found.signature.args != getattr(signature, "args", signature):
                found = None
        except Exception as error:  # of files as of numba: compiling anew is always right
            found = None
            machine_code.warn_once(machine_code.NOT_READ, error)
            # A damaged file would be met again by whoever comes next.
            with contextlib.suppress(Exception):
                self.flush()
        if found is None and self.is_announced:
            note_compiling(is_kept=machine_code.cache_folder() is not None)
        return found

    def save_overload(self, *arguments: Any) -> None:
        try:
            super().save_overload(*arguments)
        except Exception as error:  # such as a full disk
            machine_code.warn_once(machine_code.NOT_KEPT, error)
        machine_code.drop_unused()


class _NamedCache(_KernelCache):
    """Machine code of a function of a user's, by its name."""

    is_announced = False

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self._py_func.__qualname__


def make_callback(function: Function, signature: Any, options: dict[str, Any], name: str) -> Any:
    """Return a function for calls by its address, compiled or loaded by its name."""
    function.__qualname__ = name  # of its files and in its machine code, too
    made: Any = CFunc(function, (signature.args, signature.return_type), {}, options)
    made._cache = _NamedCache(function, _Contents)
    made.compile()
    return made


BY_KERNELS = {"pipeline_class": _InlinedCompiler}
"""The option of numba by which a function is compiled for calls by kernels alone."""


def _make_called(function: Function, options: dict[str, Any]) -> Any:
    """Return a function compiled for kernels: literals do not specialise it, tuples come by reference."""
    called = numba.njit(**options, **BY_KERNELS)(function)
    find_template = called.get_call_template

    def find(arguments: Any, named: dict[str, Any]) -> Any:
        taken = {name: refer(types.unliteral(kind)) for name, kind in named.items()}
        return find_template([refer(types.unliteral(kind)) for kind in arguments], taken)

    called.get_call_template = find
    return called


def _make_entry(function: Function, options: dict[str, Any]) -> Function:
    """Return what Python calls: it lays down tuples for the function, which may allocate then."""
    called = _make_called(function, {k: v for k, v in options.items() if k != "_nrt"})
    names = ", ".join(inspect.signature(function).parameters)
    entry: Function = eval(f"lambda {names}: called({names})", {"called": called})
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(entry, name, getattr(function, name))
    return entry


def make_kernel(function: Function, options: dict[str, Any], within: dict[str, Any]) -> Any:
    """Return a function compiled for calls from Python; a call by a kernel compiles it for that kernel.

    `options` are numba's for the former, `within` for the latter. Both load their machine code if there is
    some, and save what they compile.
    """
    own = numba.njit(**options)(function)
    # Another version of numba may ask no such cache, which would go unnoticed.
    attrgetter("_cache", "get_call_template", "get_overload", "_compiler._get_implementation")(own)
    attrgetter("load_overload", "save_overload")(FunctionCache)
    own._cache = _KernelCache(function, _Contents)
    made: list[Any] = []

    def find_called() -> Any:
        if not made:
            made.append(_make_called(function, within))
            made[0]._cache = _KernelCache(function, _InlinedContents)
        return made[0]

    def find_body(arguments: Any, named: dict[str, Any]) -> Function:
        return _make_entry(function, within) if any(map(is_referred, arguments)) else function

    own._compiler._get_implementation = find_body
    own.get_call_template = lambda *arguments: find_called().get_call_template(*arguments)
    own.get_overload = lambda signature: find_called().get_overload(signature)
    own.called_signatures = lambda: made[0].signatures if made else []
    return own


class _Rest(event.Listener):
    """Lets the garbage collector rest while kernels are compiled; numba's lock is held meanwhile."""

    def __init__(self) -> None:
        self._were_on: list[bool] = []

    def on_start(self, event: Any) -> None:
        self._were_on.append(gc.isenabled())
        if isinstance(getattr(event.data["dispatcher"], "_cache", None), _KernelCache):
            gc.disable()

    def on_end(self, event: Any) -> None:
        if self._were_on.pop():
            gc.enable()


event.register("numba:compile", _Rest())
