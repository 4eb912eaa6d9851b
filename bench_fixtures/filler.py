"""Documents about nothing in particular, recombined from our own sentences in filler/*.txt.

A filler file holds `language:`, `title:` and slot lines (`name: option | option`), then one
sentence per line. `{name}` takes an option of that slot, `{n:3-40}` a number, and a pilcrow
stands for a line break (only code needs it; `[[` and `]]` stand for braces there).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from draw import Draw

_HEADER = re.compile(r"(\w+): (.+)")
_NUMBER = re.compile(r"\{n:(-?\d+)-(\d+)\}")
_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCES_PER_PARAGRAPH = 5
_NO_SPACES = frozenset({"zh"})


@dataclass(frozen=True)
class Topic:
    """What can be said about one subject, in one language."""

    name: str
    language: str
    titles: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]
    frames: tuple[str, ...]

    def about(self, draw: Draw) -> Topic:
        """Return the topic as one document sees it: most subjects are settled from the start."""
        settled = {
            name: options if draw.below(3) == 0 else (draw.pick(options),)
            for name, options in self.slots.items()
        }
        return replace(self, slots=settled)

    def say(self, frame: str, draw: Draw) -> str:
        """Fill the slots of one title or sentence."""
        while _SLOT.search(frame):
            frame = _SLOT.sub(lambda slot: draw.pick(self.slots[slot[1]]), frame)
        frame = _NUMBER.sub(lambda n: str(draw.between(int(n[1]), int(n[2]))), frame)
        frame = frame.replace("¶", "\n").replace("[[", "{").replace("]]", "}")
        return frame if self.language == "code" else frame[0].upper() + frame[1:]

    def title(self, draw: Draw) -> str:
        """Return a headline."""
        return self.say(draw.pick(self.titles), draw)

    def paragraphs(self, draw: Draw, n_sentences: int) -> list[str]:
        """Return up to n sentences, none of them twice, cut into paragraphs."""
        frames: list[str] = []
        while len(frames) < n_sentences:
            frames += draw.sample(self.frames, n_sentences - len(frames))
        sentences = list(dict.fromkeys(self.say(frame, draw) for frame in frames))
        if self.language == "code":
            return sentences
        glue = "" if self.language in _NO_SPACES else " "
        out: list[str] = []
        while sentences:
            n = 1 + draw.below(_SENTENCES_PER_PARAGRAPH)
            out.append(glue.join(sentences[:n]))
            sentences = sentences[n:]
        return out


@dataclass
class _Draft:
    language: str = ""
    titles: list[str] = field(default_factory=list)
    slots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    frames: list[str] = field(default_factory=list)


def read_topic(path: Path) -> Topic:
    """Read one filler file.

    Raises:
        ValueError: a sentence names a slot that the file does not define.
    """
    draft = _Draft()
    for line in path.read_text(encoding="utf-8").splitlines():
        header = None if draft.frames else _HEADER.fullmatch(line)
        if header is None:
            draft.frames.append(line)
        elif header[1] == "language":
            draft.language = header[2]
        elif header[1] == "title":
            draft.titles.append(header[2])
        else:
            draft.slots[header[1]] = tuple(header[2].split(" | "))
    for frame in (*draft.titles, *draft.frames):
        for slot in _SLOT.findall(frame):
            if slot not in draft.slots:
                raise ValueError(f"{path.name}: no slot called {slot}")
    return Topic(path.stem, draft.language, tuple(draft.titles), draft.slots, tuple(draft.frames))


def read_topics(folder: Path) -> list[Topic]:
    """Read every filler file of a folder, by name."""
    return [read_topic(path) for path in sorted(folder.glob("*.txt"))]


def article(topic: Topic, draw: Draw, n_sentences: int) -> list[str]:
    """Return the blocks of one document: headline and paragraphs, in one of four layouts."""
    topic = topic.about(draw)
    body = topic.paragraphs(draw, n_sentences)
    if topic.language == "code":
        return [f"# {topic.title(draw)}", *body]
    layout = draw.pick(("plain", "sections", "list", "thread"))
    if layout == "sections":
        return [f"# {topic.title(draw)}", *body[:-1], f"## {topic.title(draw)}", body[-1]]
    if layout == "list":
        return [topic.title(draw), *("- " + block for block in body)]
    if layout == "thread":
        return [f"Posted by user{draw.between(100, 9999)}:\n{block}" for block in body]
    return [topic.title(draw), *body]
