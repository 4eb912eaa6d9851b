"""`contam hash`: write items as hashes, to check them without showing their text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options
from contam.cli.output_file import refuse_replacing
from contam.errors import UsageError

SPREAD_OPTIONS = ("--benchmark", "--map")


def hash_items(
    *,
    benchmark: options.Benchmarks,
    out: Annotated[
        str,
        typer.Option(metavar="FILE", help="JSONL file: each line is a body for POST /v1/check."),
    ],
    index: Annotated[str | None, typer.Option(metavar="DIR", help="Hash for this index.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Hash for indexes of this recipe. [default: standard]"),
    ] = None,
    tokenizer: options.Tokenizer = None,
    served: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Check against this index of the service only."),
    ] = None,
    policy: options.Policies = None,
    at_once: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Items per line, at most what the service accepts."),
    ] = 256,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    home: options.Home = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Hash items, so that a service can check them without seeing their text.

    docs/guides/service.md describes what this hides, and what it cannot hide.
    """
    if index is not None and (recipe is not None or tokenizer is not None):
        raise UsageError("--index decides how it is hashed: leave out --recipe and --tokenizer")
    target = Path(out)
    if target.exists() and not overwrite:
        raise UsageError(f"{out} exists", hint="give --overwrite to replace it")
    refuse_replacing(target, benchmark)
    from contam.benchmark.mapping import parse_mapping
    from contam.benchmark.read_files import read_benchmarks
    from contam.cli.options import split_names
    from contam.cli.terminal import talk
    from contam.detect.indexed.blind import write_bodies
    from contam.detect.indexed.guarantee import refuse_blind
    from contam.detect.policies.policy import get_policy
    from contam.index.home import resolve_index
    from contam.index.manifest import read_manifest
    from contam.index.recipe import load_recipe

    policies = split_names(policy if policy is not None else ["contam"])
    refuse_blind([get_policy(chosen_policy) for chosen_policy in policies])
    chosen = (
        load_recipe(recipe or "standard", tokenizer=tokenizer)
        if index is None
        else read_manifest(resolve_index(index, home)).recipe
    )
    found = read_benchmarks(
        benchmark,
        mapping=parse_mapping(mapping) if mapping else None,
        name=name,
        split=split,
        secret=True,
    )
    items = [item for benchmark in found for item in benchmark.items]
    asked = {
        **({} if served is None else {"index": served}),
        "policies": policies,
    }
    n_lines = write_bodies(target, items, chosen, asked, at_once)
    if not quiet:
        talk(f"{out}: {len(items)} items in {n_lines} requests")
