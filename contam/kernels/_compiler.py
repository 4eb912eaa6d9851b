"""Compile a kernel once for all its callers, and optimise it only where Python calls it.

Numba on its own compiles a function anew for each constant a caller passes and for read-only
arrays, and takes it to machine code with two wrappers although only another kernel calls it.
All of that is optimised again in each of its callers. Here every kernel has one signature, and
kernels that kernels call are kept as LLVM bitcode: machine code is made once, for what Python
calls, with all below it. This takes a third of the time (ADR 3).

It overrides parts of Numba that are not public, so versions that were never tried with it
(`IS_KNOWN`) compile in Numba's own way: slower, with the same results.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from numba.core import codegen, compiler, sigutils, targetconfig
from numba.core import dispatcher as numba_dispatcher
from numba.core import runtime as numba_runtime
from numba.core import types as numba_types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.np import arrayobj as numba_arrayobj

from contam.kernels._cache import ContentCache, ContentCacheImpl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Whether this version of Numba is one that all of this was tried with.
IS_KNOWN: bool = (0, 61) <= numba.version_info.short <= (0, 68)

#: Numba has no types, and no public names for what is extended here.
types: Any = numba_types
_dispatcher: Any = numba_dispatcher
_arrayobj: Any = numba_arrayobj
_FunctionCompiler: Any = _dispatcher._FunctionCompiler  # noqa: SLF001
_runtime: Any = numba_runtime
rtsys: Any = _runtime.rtsys
_JITCodeLibrary: Any = codegen.JITCodeLibrary
_CPUDispatcher: Any = CPUDispatcher
_TargetConfig: Any = targetconfig.TargetConfig
_compile_result: Any = compiler.compile_result
_normalize_signature: Any = sigutils.normalize_signature

#: What the mangled name of every kernel of this package holds.
_OWN_NAME = "6contam7kernels"
#: Every kernel of the modules that are imported.
KERNELS: list[Kernel] = []
#: Those among them that this process has compiled or loaded, and who is told how many there are.
_ready: set[object] = set()
_listeners: list[Callable[[int], None]] = []


@contextmanager
def report_compiled(listener: Callable[[int], None]) -> Iterator[None]:
    """Tell `listener` how many kernels are ready, whenever another one is."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def target_name() -> str:
    """The processor and the features that code is made for."""
    return str(cpu_target.target_context.codegen().magic_tuple())


def plain_type(given: Any, annotation: str | None = None) -> Any:
    """The type that a kernel is compiled for, whichever variant of it a caller has.

    A constant counts as a number, a read-only array as any other (no kernel writes to an array
    that it only reads: `make interpreted` would fail), a parameter annotated `int` is int64.
    """
    given = types.unliteral(given)
    if isinstance(given, types.BaseTuple):
        plain = [plain_type(member) for member in given]
        return types.BaseTuple.from_types(plain, getattr(given, "instance_class", None))
    if isinstance(given, types.Array) and not given.mutable:
        return given.copy(readonly=False)
    if annotation == "int" and isinstance(given, types.Integer) and given is not types.uint64:
        return types.int64
    return given


class _LateLibrary(_JITCodeLibrary):  # type: ignore[misc]  # untyped base
    """Code that becomes machine code when somebody asks for the address of a function in it.

    Other libraries link its bitcode, optimise it with their own, and never ask.
    """

    _is_late = False

    def finalize(self) -> None:
        """Link what this calls, and leave the rest for later."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # not in the oldest versions
                self._reload_init.update(library._reload_init)  # noqa: SLF001 - as its base does
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalize_dynamic_globals()
        self._finalized = True
        self._is_late = True

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function, as an integer; 0 where this does not define it."""
        self._ensure_finalized()
        if self._is_late:
            if name not in {function.name for function in self.get_defined_functions()}:
                return 0
            self._get_module_for_linking()  # before optimising, which takes the module over
            self._is_late = False
            # What was linked in is of use in here alone: its parameters can go, or be registers.
            for function in self.get_defined_functions():
                if function.linkage == llvm.Linkage.linkonce_odr:
                    function.linkage = llvm.Linkage.internal
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
        return int(super().get_pointer_to_function(name))

    def serialize_using_bitcode(self) -> tuple[str, str, bytes]:
        """What `_unserialize` takes to make the same library in another process."""
        return self.name, "late", self._get_module_for_linking().as_bitcode()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, list[str]]]:
        """What `_unserialize` takes to make the same library, to be called by Python alone.

        Numba also stores the bitcode, which nobody links here: to parse it took most of the time of
        loading a kernel.
        """
        self._ensure_finalized()
        module = self._get_module_for_linking()
        defined = [
            value.name
            for values in (module.functions, module.global_variables)
            for value in values
            if not value.is_declaration
        ]
        return self.name, "called", (self._get_compiled_object(), defined)

    @classmethod
    def _unserialize(cls, generator: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        if kind not in ("late", "called"):
            return super()._unserialize(generator, state)
        library = generator.create_library(name)
        if kind == "called":
            code, defined = data
            library.enable_object_caching()
            library._set_compiled_object(code)  # noqa: SLF001
            library._finalize_final_module()  # noqa: SLF001
            generator._engine._defined_symbols.update(defined)  # noqa: SLF001
            return library
        library._final_module = library._shared_module = llvm.parse_bitcode(data)  # noqa: SLF001
        library._finalize_dynamic_globals()  # noqa: SLF001
        library._finalized = library._is_late = True  # noqa: SLF001
        return library


@contextmanager
def _late_libraries(generator: Any) -> Iterator[None]:
    """Make every library of this block a late one; the caller has Numba's lock."""
    if "_library_class" in vars(generator):
        yield
        return

    def set_env(name: str, env: Any) -> None:
        # The engine knows no variable of a library without machine code.
        if generator._engine.get_global_value_address(name):  # noqa: SLF001
            type(generator).set_env(generator, name, env)

    was_collecting = gc.isenabled()
    compare = _TargetConfig.values
    wrap_index = _arrayobj.fix_integer_index

    def plain_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        # Kernels count from the front of an array: NUMBA_BOUNDSCHECK=1 finds one that does not.
        if _OWN_NAME in builder.function.name:
            return context.cast(builder, index, kind, types.intp)
        return wrap_index(context, builder, kind, index, size)

    generator._library_class = _LateLibrary  # noqa: SLF001
    generator.set_env = set_env
    _TargetConfig.values = _option_values
    _arrayobj.fix_integer_index = plain_index
    gc.disable()  # a tenth of the time, and what a compiler makes is alive until it ends
    try:
        yield
    finally:
        del generator._library_class, generator.set_env  # noqa: SLF001
        _TargetConfig.values = compare
        _arrayobj.fix_integer_index = wrap_index
        if was_collecting:
            gc.enable()


def _option_values(config: Any) -> Any:
    """What Numba's own `values` gives; that one takes a sixth of the time of compiling."""
    kind = type(config)
    if kind not in _default_values:
        _default_values[kind] = {name: option.default for name, option in kind.options.items()}
    return _default_values[kind] | config._values  # noqa: SLF001


#: By class, because every comparison of two configurations asks for them.
_default_values: dict[type, dict[str, Any]] = {}


class _InnerCompiler(_FunctionCompiler):  # type: ignore[misc]  # untyped base
    """Compiles to bitcode alone, without the wrappers by which Python and C call."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags


class _InnerCacheImpl(ContentCacheImpl):
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"inner-{super().get_filename_base(fullname, abiflags)}"

    def reduce(self, result: Any) -> tuple[Any, ...]:
        """What is kept of a compiled kernel that kernels call."""
        result.fndesc.typemap = result.fndesc.calltypes = None  # not needed, and not to be pickled
        code = result.library.serialize_using_bitcode()
        return code, result.fndesc, result.environment, result.signature, result.reload_init

    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
        """The result of an earlier compilation, as if it had been made here."""
        code, fndesc, environment, signature, reload_init = payload
        return _compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            library=target_context.codegen().unserialize_library(code),
            environment=environment,
            fndesc=fndesc,
            signature=signature,
            reload_init=reload_init,
            objectmode=False,
            lifted=(),
            referenced_envs=(),
        )


class _InnerCache(ContentCache):
    _impl_class = _InnerCacheImpl


class _OneSignature(_CPUDispatcher):  # type: ignore[misc]  # untyped base
    """A function that is compiled for the plain types of what it is called with."""

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        super().__init__(function, targetoptions={"nopython": True, **options})
        parameters = self._compiler.pysig.parameters
        self._annotations = [function.__annotations__.get(name) for name in parameters]

    def compile(self, sig: Any) -> Any:
        """The entry point for these argument types, compiled unless it is there."""
        given, _ = _normalize_signature(sig)
        own = tuple(map(plain_type, given, self._annotations))
        with global_compiler_lock, _late_libraries(cpu_target.target_context.codegen()):
            entry = super().compile(own)
        if self.py_func not in _ready:
            _ready.add(self.py_func)
            for listener in _listeners:
                listener(len(_ready))
        self._accept(given, own, entry)
        return entry

    def _accept(self, given: tuple[Any, ...], own: tuple[Any, ...], entry: Any) -> None:
        """Take note that arguments of the given types are answered by `entry`."""


class _Inner(_OneSignature):
    """A kernel as other kernels call it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        super().__init__(function, options)
        own: Any = vars(self)["_compiler"]
        self._compiler = _InnerCompiler(
            function, own.targetdescr, own.targetoptions, own.locals, own.pipeline_class
        )
        self._cache = _InnerCache(function)

    def add_overload(self, result: Any) -> None:
        """Let kernels that are compiled later find what was compiled."""
        # Numba finds code by its entry point, and this has none.
        result = result._replace(entry_point=object())
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result


class _KernelCache(ContentCache):
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for a signature; None when it is not there."""
        # Numba's own first takes note of all that it can compile: a tenth of a second in each run,
        # though nothing is compiled then. Whoever does compile takes note of it there.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class Kernel(_OneSignature):
    """A kernel as Python calls it; `inner` is the same for kernels that call it.

    options  of numba.njit
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        super().__init__(function, {**options, "no_cfunc_wrapper": True})
        self._cache = _KernelCache(function)
        self.inner = _Inner(function, options)
        KERNELS.append(self)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The signature by which a kernel calls this one."""
        return self.inner.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """What a kernel calls for a signature."""
        return self.inner.get_overload(sig)

    def add_overload(self, result: Any) -> None:
        """Make what was compiled or loaded callable."""
        super().add_overload(result)
        # The environments of kernels that were linked in: they had no machine code before.
        for environment in result._find_referenced_environments():  # noqa: SLF001
            result.codegen.set_env(environment.env_name, environment)

    def _accept(self, given: tuple[Any, ...], own: tuple[Any, ...], entry: Any) -> None:
        if given != own:
            self._insert([member._code for member in given], entry, False)  # noqa: SLF001
