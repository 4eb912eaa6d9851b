"""What the reference prints from the code: commands, exit codes, columns, policies, errors, metrics.

`docs/reference.md` and `docs/policies.md` hold the notes; Sphinx puts this beside them when it builds the site.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import typer

from contam import errors
from contam.cli.main import EXIT_CODES, app
from contam.detect.policies.policy import get_policy, list_policies
from contam.detect.report import TABLES
from contam.server.observe import Metrics
from contam.study import boards, dates, fresh_sets, preparing
from contam.tables import hit_table, schemas, score_schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

_COMMAND = re.compile(r"^### (contam [a-z ]+)\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^<!-- printed: ([^ ]+) -->\n", re.MULTILINE)
DESCRIBED: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("contam.tables").joinpath("columns.toml").read_text(encoding="utf-8")
)


def printed(page: str) -> str:
    """A page of the reference with all that is made from the code."""
    notes = dict(_COMMAND.findall(page))
    page = _COMMAND.sub("", page)
    return _MARK.sub(lambda found: _made(found[1], notes), page)


def _made(mark: str, notes: Mapping[str, str]) -> str:
    if mark == "commands":
        return "".join(_command(name, found, notes) for name, found in commands())
    if mark == "exit-codes":
        return _table(("code", "means"), ((str(code), what) for code, what in EXIT_CODES.items()))
    if mark == "errors":
        return _table(("code", "class", "exit code", "when"), map(_error, every_error()))
    if mark == "policies":
        return policies()
    if mark == "metrics":
        head = ("metric", "kind", "labels", "meaning")
        return _table(
            head, ((f"`{n}`", k, ", ".join(ls) or "none", m) for n, k, ls, m in metrics())
        )
    return columns(mark)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


# ------------------------------------------------------------------------------- commands


def commands(group: Any = None, above: str = "contam") -> Iterator[tuple[str, Any]]:
    """Every command with its name, `contam index build` among them, as `--help` lists them."""
    group = group or typer.main.get_command(app)
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, f"{above} {name}")
        else:
            yield f"{above} {name}", found


def options(found: Any) -> list[tuple[str, str]]:
    """The arguments and options of a command, each with what its help says."""
    context = typer.Context(found)
    rows = []
    for parameter in found.params:
        record = parameter.get_help_record(context)
        name, said = record or (parameter.make_metavar(context), parameter.help)
        # Of an argument typer also names the type, in its own words.
        rows.append((f"`{re.sub(r' <(?:str|list.str.)>$', '', name)}`", _escaped(said)))
    return rows


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]<>*])", r"\\\1", text)


def _command(name: str, found: Any, notes: Mapping[str, str]) -> str:
    examples = found.epilog.partition("Examples:\n")[2]
    return (
        f"### {name}\n\n{_escaped(found.help)}\n\n{notes.get(name, '').strip()}\n\n"
        f"{_table(('option', 'meaning'), options(found))}```text\n{examples}\n```\n\n"
    )


# -------------------------------------------------------------------------------- columns


def tables() -> dict[str, dict[str, str]]:
    """Every published table by name: its columns, in order, with their types."""
    removed = hit_table.REMOVED.append(hit_table.TEXT)
    known: dict[str, pa.Schema] = {
        **TABLES,
        hit_table.HITS_FILE: hit_table.HITS,
        "removed/SHARD.parquet": removed,
        "calibration.parquet": schemas.CALIBRATION,
        **{f"scores/{name}": schema for name, schema in score_schemas.TABLES.items()},
    }
    found = {name: {each.name: _kind(each) for each in known[name]} for name in known}
    for study, own in {
        "fresh": fresh_sets.TABLES,
        "preparation": preparing.TABLES,
        "board": boards.TABLES,
        "time": dates.TABLES,
    }.items():
        for name, kinds in own.items():
            schema = schemas.schema_of((each, kind, True) for each, kind in kinds.items())
            found[f"study/{study}/{name}"] = {each.name: _kind(each) for each in schema}
    return found


def _kind(column: pa.Field) -> str:
    return str(column.type).replace(" not null", "").replace("element: ", "").replace("item: ", "")


def described(table: str, column: str) -> str:
    """What a column means; "" where nobody says."""
    own = {**DESCRIBED["any"], **DESCRIBED.get(table, {})}
    if column in own:
        return own[column]
    for ending, what in DESCRIBED["endings"].items():
        before = column.removesuffix(ending)
        if before != column and described(table, before):
            return f"{what} `{before}`"
    return ""


def columns(mark: str) -> str:
    """The columns of one file, or of all whose names begin so; the keys of a file of JSON."""
    if mark.endswith(".json"):
        keys = DESCRIBED[mark].items()
        return _table(("key", "holds"), ((f"`{key}`", what) for key, what in keys))
    head = ("column", "type", "holds")
    return "".join(
        ("" if name == mark else f"**{name}**\n\n")
        + _table(
            head, ((f"`{each}`", f"`{kind}`", described(name, each)) for each, kind in own.items())
        )
        for name, own in tables().items()
        if name.startswith(mark)
    )


# ------------------------------------------------------------- policies, errors and metrics


_KNOWN = {"source": "its source code", "paper": "its paper", "secondary": "quotations only"}


def policies() -> str:
    """An overview of the policies."""
    head = ("policy", "definition", "known from", "searches for", "in", "judged parts", "labels")
    rows = (
        (
            f"`{spec.id}`",
            spec.title,
            "" if get_policy(spec.id).traits.ours else _KNOWN[spec.confidence],
            f"{spec.n} {'letters and digits' if spec.unit == 'char' else 'words'}: {spec.aggregation}",
            spec.scope,
            ", ".join(spec.parts),
            ", ".join(
                f"{label} {'from' if spec.comparison == 'at least' else 'above'} {score:g}"
                for score, label in reversed(spec.thresholds)
            ),
        )
        for spec in list_policies(optional=True)
    )
    return _table(head, rows)


def every_error() -> list[type[errors.ContamError]]:
    """All classes of errors, the base included."""
    return [
        each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, errors.ContamError)
    ]


def _error(one: type[errors.ContamError]) -> tuple[str, ...]:
    when = (inspect.getdoc(one) or "").partition("\n")[0]
    return f"`{one.code}`", f"`{one.__name__}`", str(one.exit_code), when


def metrics() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name, kind, labels and meaning of every metric of ours, in their order."""
    found = []
    for metric in vars(Metrics()).values():
        kind = type(metric).__name__.lower()
        if kind in {"counter", "gauge", "histogram"}:
            (family,) = metric.describe()
            name = f"{family.name}_total" if kind == "counter" else family.name
            found.append((name, kind, tuple(metric._labelnames), family.documentation))
    return found
