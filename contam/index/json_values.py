"""Convert dataclasses to plain JSON values and back, with every value checked."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


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
    return {name: to_plain(getattr(value, name)) for name in _names(cls)}


def from_plain(cls: type[T], value: object, where: str) -> T:
    """The dataclass `cls` from what `to_plain` made of one; `where` names it in errors.

    Every key must be there and no other, every value of its very type (a truth value is no
    number). Raises PlainError.
    """
    return cast("T", _dataclass(cls, value, where))


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _dataclass(cls: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise PlainError(f"{where} is no object")
    hints = _hints(cls)
    names = _names(cls)
    if missing := [name for name in names if name not in value]:
        raise PlainError(f"{where} lacks {missing[0]!r}")
    if extra := [name for name in value if name not in hints]:
        raise PlainError(f"{where} has an unknown key {extra[0]!r}")
    found = {name: _value(hints[name], value[name], f"{where}.{name}") for name in names}
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
