"""Lay out help: commands in groups by what a reader wants, two examples on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperGroup

if TYPE_CHECKING:
    import typer

EXAMPLES: Final[dict[str, tuple[str, str]]] = {
    "scan": (
        "contam scan --corpus shards/*.parquet --benchmark gsm8k.jsonl --out results",
        "contam scan --corpus dump --text body --benchmark mmlu --policy contam palm-70 --out two",
    ),
    "plan": (
        "contam plan --corpus shards --benchmark gsm8k.jsonl --out plan",
        "contam plan --corpus shards --benchmark gsm8k.jsonl --lease-size 2GB --out plan",
    ),
    "merge": (
        "contam merge parts --out results",
        "contam merge parts-a parts-b --plan plan --out results --fail-on-flagged",
    ),
    "clean": (
        "contam clean --corpus shards --benchmark gsm8k.jsonl --out found --action list",
        "contam clean --corpus shards --benchmark gsm8k.jsonl --action mask --most 0.1% --out done",
    ),
    "query": (
        "contam query --index web --benchmark gsm8k.jsonl --out results",
        "contam query --index ./web --text 'Natalia sold clips to 48 of her friends'",
    ),
    "show": (
        "contam show results",
        "contam show results gsm8k/17",
    ),
    "review": (
        "contam review results --labels anna.jsonl --reader Anna",
        "contam review pack --accept accepted.csv --reader Anna",
    ),
    "policies": ("contam policies", "contam policies gpt3-test"),
    "sql": (
        "contam sql results 'select label, count(*) from verdicts group by all'",
        "contam sql results \"copy evidence to 'evidence.csv'\"",
    ),
    "warm": ("contam warm", "contam warm --json"),
    "logs": ("contam logs runs", "contam logs scores.csv --columns id=item,score=correct"),
    "items": (
        "contam items gsm8k.jsonl --map question=prompt,answer=solution",
        "contam items --from-logs runs --out items.jsonl",
    ),
    "rescore": (
        "contam rescore --verdicts results --logs runs --out scores",
        "contam rescore --verdicts labels.csv --unlisted clean --logs runs --out scores",
    ),
    "study fresh": (
        "contam study fresh --original old.csv --fresh new.csv --out study",
        "contam study fresh --original old.csv --fresh new.csv --reference model-a --out study",
    ),
    "study preparation": (
        "contam study preparation --scores scores.csv --out study",
        "contam study preparation --scores scores.csv --chance mmlu=0.25 --out study",
    ),
    "study board": (
        "contam study board --scores board.csv --out study",
        "contam study board --rescored scores --out study",
    ),
    "study time": (
        "contam study time --logs runs --out study",
        "contam study time --logs runs --cutoff model-a=2024-06-01 --out study",
    ),
    "export": (
        "contam export --verdicts results --logs runs",
        "contam export --verdicts results --logs runs --out clean.json",
    ),
    "serve": (
        "contam serve --index web",
        "contam serve --index web code --port 8080 --data /srv/contam",
    ),
    "keys add": ("contam keys add anna", "contam keys add ci --scope check"),
    "keys list": ("contam keys list", "contam keys list --data /srv/contam"),
    "keys revoke": ("contam keys revoke 3f9c2a", "contam keys revoke 3f9c2a --data /srv/contam"),
    "check": (
        "contam check --server http://127.0.0.1:8000 --benchmark gsm8k.jsonl",
        "contam check --server http://127.0.0.1:8000 --benchmark gsm8k.jsonl --out results",
    ),
    "annotate": (
        "contam annotate runs --verdicts results",
        "contam annotate runs --server http://127.0.0.1:8000",
    ),
    "audit run": ("contam audit run AUDIT.toml", "contam audit run AUDIT.toml --out pack"),
    "audit init": ("contam audit init AUDIT.toml", "contam audit init audits/AUDIT.toml"),
    "audit verify": ("contam audit verify pack", "contam audit verify pack --json"),
    "audit gate": ("contam audit gate RULES.toml", "contam audit gate RULES.toml pack --json"),
    "audit diff": ("contam audit diff pack-1 pack-2", "contam audit diff pack-1 pack-2 --json"),
    "audit export": (
        "contam audit export pack --format conda",
        "contam audit export pack --format model-card --out card.md",
    ),
    "index build": (
        "contam index build --corpus shards/*.parquet --index web",
        "contam index build --corpus shards --index ./chars --recipe chars --memory 4GB",
    ),
    "index plan": (
        "contam index plan --corpus shards --out plan",
        "contam index plan --corpus shards --recipe compact --out plan",
    ),
    "index merge": (
        "contam index merge parts --plan plan --index web",
        "contam index merge parts-a parts-b --plan plan --index ./web --overwrite",
    ),
    "index add": (
        "contam index add --corpus new-shards --index web",
        "contam index add --corpus new-shards --index web --workers 4",
    ),
    "index retire": (
        "contam index retire --index web --shard old.parquet",
        "contam index retire --index web --document doc-17 doc-18",
    ),
    "index compact": ("contam index compact --index web", "contam index compact --index ./web"),
    "index verify": (
        "contam index verify --index web",
        "contam index verify --index web --corpus /mnt/shards",
    ),
    "index show": ("contam index show --index web", "contam index show --index web --json"),
}


def add_examples(app: typer.Typer, above: tuple[str, ...] = ()) -> None:
    """Show the examples below the help of every command of an app, and of its groups."""
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        # The mark keeps the lines as they are.
        command.epilog = "\n".join(["\b", "Examples:", *EXAMPLES[" ".join([*above, name])]])
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name:
            add_examples(group.typer_instance, (*above, group.name))


GROUPS: Final = {
    "Find what a corpus contains": (
        "items", "scan", "plan", "merge", "query", "index", "show", "sql", "policies", "warm",
    ),
    "Take it out of a corpus": ("clean",),
    "Score models on clean items": ("logs", "rescore", "export", "annotate", "study"),
    "Serve answers, and ask for them": ("serve", "keys", "check"),
    "Sign off a release": ("audit", "review"),
}  # fmt: skip


class GroupedHelp(TyperGroup):
    """Lists the commands under headings."""

    # Both are classes of click, or of the copy of it that newer versions of typer have.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write a section for each group, all with the same indent."""
        longest = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    (name.ljust(longest), self.commands[name].get_short_help_str(100))
                    for name in names
                )
