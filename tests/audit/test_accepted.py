"""What a person accepted stays in sight, and holds for what was seen, for a while."""

import dataclasses
import datetime as dt
import io
import json

import pytest

from contam.audit.gate import load_rules, run_gate
from contam.audit.pack import run_audit
from contam.audit.sample import AcceptSession
from contam.audit.spec import load_spec
from contam.audit.verify import TIMES, files_of
from contam.cli.main import main
from contam.detect.accepted import (
    ACCEPTED,
    CHANGED,
    COLUMNS,
    EXPIRED,
    NOT_FLAGGED,
    NOT_THERE,
    AcceptedRow,
    add_accepted,
    find_accepted,
    read_accepted,
)
from contam.detect.report import load_report
from contam.errors import ConfigError
from contam.tables import schemas
from tests.audit.conftest import write_spec

NOW = dt.date(2026, 11, 1)
LATER = dt.date(2027, 3, 1)


def together(folder):
    return load_report(folder / "checks" / "together")


def session(folder, *items, file="none.csv", policy="contam"):
    return AcceptSession.open(folder, folder.parent / file, policy, items)


def rows_of(folder, *items, policy="contam"):
    """Rows that accept these items, or all that are flagged."""
    found = session(folder, *items, policy=policy)
    return [row for item in found.items for row in found.rows(item, "why", "Anna", LATER)]


def states(rows, folder, today=NOW):
    return {row["state"] for row in find_accepted(rows, together(folder), today).rows}


@pytest.fixture
def gate(audited, tmp_path):
    """Judge the audit by a share of flagged items, with these rows accepted."""

    def judge(rows, *keys, today=NOW):
        (tmp_path / "accepted.csv").unlink(missing_ok=True)
        add_accepted(tmp_path / "accepted.csv", rows)
        rule = ['accept = "accepted.csv"', "[[rule]]", 'check = "flagged_share"', *keys]
        (tmp_path / "RULES.toml").write_text("\n".join(rule))
        return run_gate(load_rules(tmp_path / "RULES.toml"), audited.folder, today)

    return judge


def test_a_gate_leaves_out_what_was_accepted_and_lists_it(audited, gate):
    rows = rows_of(audited.folder)
    verdict = gate(rows, "most_percent = 0", 'unchecked = "ignore"')
    assert verdict.passed
    assert {row["state"] for row in verdict.accepted} == {ACCEPTED}
    assert len(verdict.accepted) == len(rows)
    for corpus in ("early", "late"):
        assert gate(rows, "most_percent = 0", 'unchecked = "ignore"', f'corpus = "{corpus}"').passed
    one = [row for row in rows if row.item != rows[0].item]
    assert not gate(one, "most_percent = 0", 'unchecked = "ignore"').passed
    # The rows are about one policy's flags.
    assert not gate(rows, "most_percent = 0", 'policy = "lmeval-13"').passed
    assert not gate(rows, "most_percent = 0", today=LATER + dt.timedelta(days=1)).passed


def test_rows_of_the_past_and_of_other_evidence_accept_nothing_and_say_so(audited):
    folder = audited.folder
    row = rows_of(folder)[0]
    assert states([row], folder, LATER) == {ACCEPTED}
    assert states([row], folder, LATER + dt.timedelta(days=1)) == {EXPIRED}
    assert states([dataclasses.replace(row, evidence="0" * 64)], folder) == {CHANGED}
    assert states([dataclasses.replace(row, item="nobody")], folder) == {NOT_THERE}
    assert states([dataclasses.replace(row, benchmark="nobody")], folder) == {NOT_THERE}
    assert states([dataclasses.replace(row, policy="nobody")], folder) == {NOT_FLAGGED}
    assert states([dataclasses.replace(row, document="nowhere")], folder) == {NOT_THERE}
    other = next(one for one in rows_of(folder) if one.item != row.item)
    foreign = dataclasses.replace(other, evidence=row.evidence)
    assert not find_accepted([foreign], together(folder), NOW).flags


def test_an_item_is_accepted_when_all_its_documents_are(audited):
    report = together(audited.folder)
    found = rows_of(audited.folder)
    item = next(row.item for row in found if sum(one.item == row.item for one in found) > 1)
    rows = rows_of(audited.folder, item)
    assert not find_accepted(rows[1:], report, NOW).flags
    assert {flag[2:] for flag in find_accepted(rows, report, NOW).flags} == {(item, "contam")}
    pairs = find_accepted(rows[1:], report, NOW).documents
    assert {document for _, document in pairs} == {row.document for row in rows[1:]}
    # A document more is one that nobody has looked at.
    fewer = [name != rows[0].document for name in schemas.column(report.evidence, "document_id")]
    kept = schemas.take(report.evidence, [at for at, keep in enumerate(fewer) if keep])
    less = dataclasses.replace(report, evidence=kept)
    before = [row for row in rows if row.document != rows[0].document]
    assert find_accepted(before, report, NOW).flags == frozenset()
    assert {row["state"] for row in find_accepted(before, less, NOW).rows} == {ACCEPTED}


def test_a_whole_item_and_a_whole_document_can_be_accepted(audited):
    report = together(audited.folder)
    reading = session(audited.folder)
    item = reading.items[0]
    whole = AcceptedRow(
        *item, "", "contam", "why", "", LATER, reading.seen.digest([item], "", "contam")
    )
    assert find_accepted([whole], report, NOW).flags == {(*item, "contam")}
    document = reading.seen.documents(item)[0]
    everything = dataclasses.replace(whole, item="", document=document)
    items = reading.seen.items(everything)
    evidence = reading.seen.digest(items, document, "contam")
    found = find_accepted([dataclasses.replace(everything, evidence=evidence)], report, NOW)
    assert {row["state"] for row in found.rows} == {ACCEPTED}
    assert ((*item, "contam"), document) in found.documents


def test_the_report_lists_them_and_counts_as_before(audited, pack, tmp_path):
    rows = rows_of(pack)
    changed = dataclasses.replace(rows[0], evidence="0" * 64)
    add_accepted(tmp_path / "accepted.csv", [changed, *rows[1:]])
    spec = load_spec(write_spec(tmp_path, audit='accept = "accepted.csv"'))
    done = run_audit(spec, overwrite=True)
    assert done.facts.benchmarks == audited.facts.benchmarks
    assert done.facts.headline == audited.facts.headline
    found = [row["state"] for row in done.facts.accepted]
    assert (found.count(CHANGED), found.count(ACCEPTED)) == (1, len(rows) - 1)
    for name in ("report.html", "report.md"):
        assert CHANGED in (done.folder / name).read_text("utf-8"), name
    again = run_audit(dataclasses.replace(spec, no_text=True), overwrite=True)
    assert {row["reason"] for row in again.facts.accepted} == {""}


def test_equal_audits_are_equal_packs_on_any_day(pack, tmp_path):
    row = dataclasses.replace(rows_of(pack)[0], until=dt.date(2001, 1, 1))
    add_accepted(tmp_path / "accepted.csv", [row])
    spec = load_spec(write_spec(tmp_path, audit='accept = "accepted.csv"'))
    done = run_audit(spec, overwrite=True)
    assert [row["state"] for row in done.facts.accepted] == [ACCEPTED]
    first = {name: path.read_bytes() for name, path in files_of(done.folder) if name != TIMES}
    again = run_audit(spec, overwrite=True)
    assert again.digest == done.digest
    assert first.keys() == {name for name, _ in files_of(again.folder)} - {TIMES}


def accept(monkeypatch, folder, path, answers, *more):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
    words = ["--accept", str(path), "--reader", "Anna", "--until", "2999-12-31", *more]
    return main(["review", str(folder), *words])


def test_a_review_writes_rows_that_a_gate_takes(audited, tmp_path, monkeypatch, capsys):
    path = tmp_path / "accepted.csv"
    said = ["y", "y only, the numbers", "n", "what", "q"]
    assert accept(monkeypatch, audited.folder, path, said) == 0
    out = capsys.readouterr()
    assert "1 accepted in" in out.out
    first = read_accepted(path)
    assert {row.reason for row in first} == {"only, the numbers"}
    assert states(first, audited.folder) == {ACCEPTED}
    waiting = session(audited.folder, file=path)
    assert first[0].item not in {item.item_id for item in waiting.items}
    chosen = waiting.items[3].item_id
    assert accept(monkeypatch, audited.folder, path, ["y b"], "--item", chosen) == 0
    assert {row.item for row in read_accepted(path)} == {first[0].item, chosen}
    (tmp_path / "R.toml").write_text(
        'accept = "accepted.csv"\n[[rule]]\ncheck = "flagged_share"\nmost_percent = 1'
    )
    words = ["audit", "gate", str(tmp_path / "R.toml"), str(audited.folder)]
    assert main(words) == 3
    assert f"{chosen} in " in capsys.readouterr().out
    monkeypatch.setattr("contam.cli.commands.audit.today", lambda: dt.date(3000, 1, 1))
    assert main([*words, "--json"]) == 3
    tree = json.loads(capsys.readouterr().out)
    assert {row["state"] for row in tree["accepted"]} == {EXPIRED}


@pytest.mark.parametrize(
    "more",
    [
        ["--labels", "x.jsonl"],
        ["--item", "nobody"],
        ["--until", "2001-01-01"],
        ["--until", "soon"],
        ["--policy", "nobody"],
    ],
)
def test_a_wrong_call_writes_nothing(audited, tmp_path, monkeypatch, more):
    assert accept(monkeypatch, audited.folder, tmp_path / "a.csv", ["y a"], *more) == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_accepted_into_a_pack(pack, monkeypatch):
    assert accept(monkeypatch, pack, pack / "accepted.csv", ["y a"]) == 2
    assert not (pack / "accepted.csv").exists()


ROW = AcceptedRow("b", "", 'a,"\n\U0001f600', "d 1", "contam", "be,cause", "Anna", LATER, "0" * 64)


def test_any_text_survives_the_file_and_editors(tmp_path):
    path = tmp_path / "a.csv"
    add_accepted(path, [ROW])
    assert read_accepted(path) == (ROW,)
    plain = dataclasses.replace(ROW, item="a,1")
    add_accepted(path, [plain])
    assert read_accepted(path) == (ROW, plain)
    later = dataclasses.replace(plain, reason="again")
    add_accepted(path, [later])
    assert read_accepted(path) == (ROW, later)
    data = path.read_bytes().replace(b"\n\xf0", b"\xf0").replace(b"\n", b"\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + data + b"\r\n\r\n")
    assert [row.item for row in read_accepted(path)] == ['a,"\U0001f600', "a,1"]


HEAD = ",".join(COLUMNS)
GOOD = "b,,i,d,contam,why,Anna,2027-01-01,00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD,
        HEAD.replace("benchmark", "bench") + "\n" + GOOD,
        HEAD.replace("item", "items").replace("document", "documents") + "\n" + GOOD,
        HEAD.replace("reader", "reason") + "\n" + GOOD,
        f"{HEAD}\n{GOOD.replace('b,', ',', 1)}",
        f"{HEAD}\n{GOOD.replace('b,', '  ,', 1)}",
        f"{HEAD}\n{GOOD.replace(',i,d,', ',,,')}",
        f"{HEAD}\n{GOOD.replace('2027-01-01', 'soon')}",
        f"{HEAD}\n{GOOD.replace('2027-01-01', '')}",
        f"{HEAD}\n{GOOD.replace('why', ' ')}",
        f"{HEAD}\n{GOOD.removesuffix('00')}",
        f"{HEAD}\n{GOOD},more",
        f"{HEAD}\nb,,i",
        f"{HEAD}\n{GOOD}\n{GOOD}",
        f'{HEAD}\n{GOOD}\n"open',
    ],
)
def test_a_file_that_is_wrong_or_doubtful_accepts_nothing(tmp_path, text):
    path = tmp_path / "accepted.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_accepted(path)
    assert str(path) in caught.value.message
