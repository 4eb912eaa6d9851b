"""Convert dataclasses to plain JSON values and back, with every value checked."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

LEFT_OUT: Final = MappingProxyType({"left out": True})
"""Metadata of a field that is not written where it has its default: older versions lack it."""


class PlainError(ValueError):
    """A plain value does not have its type; the message names the place."""


def to_plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no type of its own
    """A dataclass, a tuple or a dict of plain values as JSON values; fields by their names."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list):
        return [to_plain(element) for element in value]
    if isinstance(value, dict):
        return {str(key): to_plain(element) for key, element in value.items()}
    cls: type = type(value)
    left_out = _left_out(cls)
    return {
        name: to_plain(getattr(value, name))
        for name in _names(cls)
        if name not in left_out or getattr(value, name) != left_out[name]
    }


def from_plain(cls: type[T], value: object, where: str) -> T:
    """The dataclass `cls` from what `to_plain` made of one; `where` names it in errors.

    Every key must be there and no other, every value of its very type (a truth value is no
    number); only a field with `LEFT_OUT` is missing where it has its default. Raises PlainError.
    """
    return cast("T", _dataclass(cls, value, where))


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


@cache
def _left_out(cls: type) -> dict[str, Any]:
    """The fields that are not written where they have their default, with it."""
    return {
        one.name: one.default for one in fields(cls) if LEFT_OUT.items() <= one.metadata.items()
    }


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _dataclass(cls: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise PlainError(f"{where} is no object")
    hints = _hints(cls)
    left_out = _left_out(cls)
    names = [name for name in _names(cls) if name not in left_out or name in value]
    if missing := [name for name in names if name not in value]:
        raise PlainError(f"{where} lacks {missing[0]!r}")
    if extra := [name for name in value if name not in hints]:
        raise PlainError(f"{where} has an unknown key {extra[0]!r}")
    found = {name: _value(hints[name], value[name], f"{where}.{name}") for name in names}
    if needless := [name for name in left_out if name in found and found[name] == left_out[name]]:
        raise PlainError(f"{where}.{needless[0]} has its default, with which it is left out")
    return cls(**found)


def _value(kind: Any, value: object, where: str) -> object:  # noqa: ANN401 - a type annotation
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        some = next(argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else _value(some, value, where)
    if origin in {tuple, dict}:
        return _many(origin, arguments, value, where)
    if type(value) is not kind:
        raise PlainError(f"{where} is {value!r:.60}, not of type {kind.__name__}")
    return value


def _many(kind: type, arguments: tuple[Any, ...], value: object, where: str) -> object:
    if kind is tuple:
        if not isinstance(value, list):
            raise PlainError(f"{where} is no list")
        return tuple(_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if not isinstance(value, dict):
        raise PlainError(f"{where} is no object")
    return {key: _value(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
