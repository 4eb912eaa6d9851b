"""Suggest the known field that an unknown one may stand for."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What may be a name that was typed: anything else may be somebody's text.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_CLOSE: Final = 0.7


def with_fields(model: object, errors: list[Any]) -> list[Any]:
    """The errors of a validator, those of unknown fields with the names that there are.

    model  what the request was held against, a model or a union of models

    `ctx` of such an error gets `fields`, and `meant`: a known name that is close to the one sent,
    or empty.
    """
    return [
        {**error, "ctx": _known(model, error["loc"])}
        if error["type"] == "extra_forbidden"
        else error
        for error in errors
    ]


def _known(model: object, loc: tuple[str | int, ...]) -> dict[str, object]:
    fields = list(
        dict.fromkeys(name for candidate in _at(model, loc[:-1]) for name in candidate.model_fields)
    )
    return {"fields": fields, "meant": _meant(str(loc[-1]), model, fields)}


def _meant(sent: str, model: object, fields: list[str]) -> str:
    """A known name, of this object or of `options`, that is as good as the one sent."""
    if not _PLAIN.fullmatch(sent):
        return ""
    options = {
        name: f"options.{name}"
        for candidate in (_at(model, ("options",)) if "options" in fields else ())
        for name in candidate.model_fields
    }
    known = {**options, **{name: name for name in fields}}
    found = difflib.get_close_matches(sent.lower(), known, n=1, cutoff=_CLOSE)
    return known[found[0]] if found else ""


def _at(model: object, loc: Iterable[str | int]) -> list[type[BaseModel]]:
    """The models that may stand at a place of a request."""
    found = list(_models(model))
    for step in loc:
        named = [candidate for candidate in found if step in _tags(candidate)]
        if named:
            # The validator names the way it went through a union, too.
            found = named
            continue
        inner = [
            candidate.model_fields[step] for candidate in found if step in candidate.model_fields
        ]
        if inner:
            found = [model for candidate in inner for model in _models(candidate.annotation)]
    return list(dict.fromkeys(found))


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    kind = model.model_fields.get("kind")
    return () if kind is None else get_args(kind.annotation)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in an annotation, within lists, unions and values of objects."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
