"""Passing hundreds of arrays in one word: a named tuple that stays where it is while kernels look
into it.

Numba passes a named tuple field by field, and an array as seven numbers or more. This driver's
state makes a thousand of them; handing those on at every call took most of a replay, and of the
compiler's time. `referred` writes them down once, beside its caller's variables. What it returns
is the address: `ref.field` reads the field there, or is again a reference where the field is a
named tuple. The tuples never change, only what their arrays hold, and the compiler is told so.

A reference must not outlive the kernel that made it. Without the compiler it is the tuple itself.
"""

from __future__ import annotations

from typing import Any, TypeVar

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.typing import templates

T = TypeVar("T")
_types: Any = types  # no stubs
_cgutils: Any = cgutils
_templates: Any = templates
_extending: Any = extending
_word: Any = ir.IntType(8).as_pointer()


def referred(one: T) -> T:
    """The named tuple by its address, inside a kernel; itself where the compiler is off."""
    return one


class Ref(_types.Type):  # type: ignore[misc]
    """The compiler's type of an address at which a named tuple of type `of` stands."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Ref({of})")


@_extending.register_model(Ref)
class RefModel(_extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _word)


@_extending.type_callable(referred)  # type: ignore[untyped-decorator]
def type_referred(context: Any) -> Any:
    def typed(one: Any) -> Any:
        return Ref(one) if isinstance(one, _types.BaseNamedTuple) else None

    return typed


@_extending.lower_builtin(referred, _types.BaseNamedTuple)  # type: ignore[untyped-decorator]
def lower_referred(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Stores the tuple. The empty instruction stands between these stores and all reads, which
    claim that nothing is ever stored there."""
    kept = _cgutils.alloca_once_value(builder, args[0])
    address = builder.bitcast(kept, _word)
    kind = ir.FunctionType(_word, [_word])
    return builder.asm(kind, "", "=r,0,~{memory}", [address], side_effect=True)


@_templates.infer_getattr
class RefAttributes(_templates.AttributeTemplate):  # type: ignore[misc]
    key = Ref

    def generic_resolve(self, ref: Any, name: str) -> Any:
        if name not in ref.of.fields:
            return None
        field = ref.of[ref.of.fields.index(name)]
        return Ref(field) if isinstance(field, _types.BaseNamedTuple) else field


@_extending.lower_getattr_generic(Ref)  # type: ignore[untyped-decorator]
def lower_field(context: Any, builder: Any, ref: Any, address: Any, name: str) -> Any:
    """Reads the field, number by number, so that those nobody asks for are never read."""
    at = ref.of.fields.index(name)
    tuple_ = builder.bitcast(address, context.get_value_type(ref.of).as_pointer())
    field = _cgutils.gep_inbounds(builder, tuple_, 0, at)
    if isinstance(ref.of[at], _types.BaseNamedTuple):
        return builder.bitcast(field, _word)
    return _read(builder, field)


def _read(builder: Any, pointer: Any) -> Any:
    kind = pointer.type.pointee
    if not isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        number = builder.load(pointer)
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
        return number
    whole = ir.Constant(kind, ir.Undefined)
    for at in range(len(kind.elements) if hasattr(kind, "elements") else kind.count):
        part = _read(builder, _cgutils.gep_inbounds(builder, pointer, 0, at))
        whole = builder.insert_value(whole, part, at)
    return whole
