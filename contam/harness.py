"""Ask installed evaluators for the items of their tasks, as rows of a benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from contam import extras
from contam.errors import BenchmarkError, Public, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.dataset import Sample
    from lm_eval.api.task import Task

#: Fewer texts may begin alike by chance.
_FEW: Final = 4
#: Where a line, a sentence or a label ends.
_END: Final = re.compile(r"\n|[.?!:]\s")


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The items of one task.

    name   as logs call the task;  split  that it evaluates, "" where it does not say
    rows   `id` as logs have it, `question`, and where they are there `choices` and `answer`
    """

    name: str
    split: str
    rows: Sequence[dict[str, Any]]


def own_texts(texts: Sequence[str]) -> list[str]:
    """The texts without what all of them begin and end with: instructions and worked examples.

    Whole lines, sentences and labels are taken off: questions may begin alike. Of a few texts,
    none.
    """
    if len(texts) < _FEW or len(set(texts)) < _FEW:
        return list(texts)
    n_head = max((end.end() for end in _END.finditer(shared_head(texts))), default=0)
    rests = [text[n_head:] for text in texts]
    tail = shared_head([text[::-1] for text in rests])[::-1]
    end = _END.search(tail)
    n_tail = len(tail) - end.start() - (end[0] != "\n") if end else 0
    return [text[: len(text) - n_tail].strip() for text in rests]


def shared_head(texts: Sequence[str]) -> str:
    """What all of some texts begin with; "" of no text."""
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    n = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:n]


def listed_choices(text: str, labels: Sequence[str]) -> tuple[str, list[str]]:
    """A text that ends in labelled choices, a line each, apart: (question, choices).

    The text and no choices where it does not. `A. one` and `(A) one` begin a choice labelled A.
    """
    if len(labels) < 2:  # noqa: PLR2004 - one choice is none
        return text, []
    places = []
    at = 0
    for label in labels:
        name = re.escape(label.strip().strip("().:"))
        found = re.compile(rf"(?:^|\n)[ \t]*\(?{name}[).:][ \t]*").search(text, at)
        if not name or found is None:
            return text, []
        places.append(found)
        at = found.end()
    ends = [place.start() for place in places[1:]] + [len(text)]
    choices = [text[p.end() : end].strip() for p, end in zip(places, ends, strict=True)]
    if not all(choices):
        return text, []
    return text[: places[0].start()].strip(), choices


def inspect_task(name: str) -> TaskRows:
    """The items of PACKAGE/TASK, with the ids that Inspect writes into its logs.

    Raises MissingExtraError, UsageError for a name that is not there, and BenchmarkError where the
    task cannot load its data.
    """
    extras.require("inspect")
    package, _, task = name.partition("/")
    points = [point for point in entry_points(group="inspect_ai") if point.name == package]
    if not points or not task:
        raise UsageError(
            "no installed package offers Inspect tasks as {!r}", Public(package),
            hint="write inspect:PACKAGE/TASK, as in `inspect eval PACKAGE/TASK`",
        )  # fmt: skip
    try:
        make = getattr(points[0].load(), task, None)
        samples = None if make is None else list(make().dataset)
    except Exception as error:
        # Tasks run code of their own.
        raise BenchmarkError(
            "Inspect cannot load {!r}: {}: {}",
            Public(name), Public(type(error).__name__), str(error).partition("\n")[0],
            hint="see that `inspect eval PACKAGE/TASK --limit 1` works here",
        ) from error  # fmt: skip
    if samples is None:
        raise UsageError("{} has no Inspect task {!r}", Public(package), Public(task))
    texts = own_texts([_asked(sample) for sample in samples])
    rows = [
        _sample_row(number, sample, text)
        for number, (sample, text) in enumerate(zip(samples, texts, strict=True), 1)
    ]
    return TaskRows(task, "", rows)


def _asked(sample: Sample) -> str:
    """What the user says: the system's part is instruction."""
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(message.text for message in sample.input if message.role == "user")


def _sample_row(number: int, sample: Sample, text: str) -> dict[str, Any]:
    # Inspect numbers samples without an id from 1.
    row: dict[str, Any] = {
        "id": str(number if sample.id is None else sample.id),
        "question": text,
        "answer": sample.target,
    }
    if sample.choices:
        row["choices"] = sample.choices
    return row


def lm_eval_tasks(name: str, include: Sequence[str] = ()) -> list[TaskRows]:
    """The items of a task, or of each task of a group or tag.

    Their ids are the numbers that the harness writes as `doc_id`.

    include  folders with tasks of one's own

    Raises MissingExtraError, UsageError for a name that is not there, and BenchmarkError where the
    harness cannot load the data.
    """
    extras.require("lm-eval")
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=list(include) or None)
    if name not in manager.all_tasks:
        raise UsageError(
            "lm-evaluation-harness has no task {!r}", Public(name),
            hint="`lm-eval ls tasks` lists them; --include-path DIR adds your own",
        )  # fmt: skip
    try:
        tasks = manager.load(name)["tasks"]
        return [_rows(of, task) for of, task in sorted(tasks.items())]
    except BenchmarkError:
        raise
    except Exception as error:
        # Tasks run code of their own, and the library that reads their data raises as it likes.
        raise BenchmarkError(
            "lm-evaluation-harness cannot load {!r}: {}: {}",
            Public(name), Public(type(error).__name__), str(error).partition("\n")[0],
            hint="see that `lm-eval run --model dummy --limit 1 --tasks ...` works here",
        ) from error  # fmt: skip


def _rows(name: str, task: Task) -> TaskRows:
    docs = list(task.eval_docs)
    choices = [_choices(task, doc) for doc in docs]
    labels = choices[0] if choices and all(some == choices[0] for some in choices) else []
    texts = own_texts([_text(task, doc, own) for doc, own in zip(docs, choices, strict=True)])
    rows = []
    for number, (doc, text, own) in enumerate(zip(docs, texts, choices, strict=True)):
        question, listed = listed_choices(text, labels) if labels else (text, [])
        row = {"id": str(number), "question": question, "answer": _answer(task, doc, listed or own)}
        if listed or (own and not labels):
            row["choices"] = listed or own
        rows.append(row)
    config = task.config
    return TaskRows(name, str(config.test_split or config.validation_split or ""), rows)


def _choices(task: Task, doc: dict[str, Any]) -> list[str]:
    if task.config.doc_to_choice is None:
        return []
    return [str(choice).strip() for choice in task.doc_to_choice(doc)]


def _text(task: Task, doc: dict[str, Any], choices: Sequence[str]) -> str:
    """What is asked; where choices stand for contexts, what they share and what follows."""
    text = task.doc_to_text(doc)
    if isinstance(text, int):
        return f"{shared_head(choices)} {task.doc_to_target(doc)}".strip()
    return text if isinstance(text, str) else str(text)


def _answer(task: Task, doc: dict[str, Any], choices: Sequence[str]) -> object:
    target = task.doc_to_target(doc)
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(choices):
        return choices[target]
    return target.strip() if isinstance(target, str) else target
