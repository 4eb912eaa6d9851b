"""`contam audit` by a file, and the file that `contam audit init` writes."""

import json
import re
import shutil
import tomllib

import pytest

from contam.audit.spec import load_spec
from contam.audit.verify import (
    MANIFEST,
    approve,
    files_of,
    read_approvals,
    read_verified,
    verify_pack,
)
from contam.cli.main import main
from contam.detect.report import load_report
from contam.errors import ConfigError, OutputError, UsageError
from tests.audit.conftest import FIXTURES, relabel, write_spec
from tests.property.worlds import write_items, write_shard

ITEMS = FIXTURES / "items" / "brook_math.jsonl"


def audit(folder, corpora, items, *, policies=("contam",)):
    """Make `folder`/pack of these by the command."""
    listed = [f'[[corpus]]\nname = "c{n}"\npaths = "{path}"' for n, path in enumerate(corpora)]
    head = f'[audit]\nout = "pack"\ndecoys = 0\npolicies = {list(policies)}'
    benchmark = f"[[benchmark]]\npaths = {list(map(str, items))}"
    (folder / "AUDIT.toml").write_text("\n".join([head, *listed, benchmark]), "utf-8")
    assert main(["audit", "run", str(folder / "AUDIT.toml"), "--quiet"]) == 0
    return folder / "pack"


def test_the_file_that_init_writes_is_an_audit_of_what_lies_beside_it(tmp_path):
    target = tmp_path / "AUDIT.toml"
    assert main(["audit", "init", str(target)]) == 0
    spec = load_spec(target)
    assert spec.out == str(tmp_path / "pack")
    assert spec.corpora[0].paths == (str(tmp_path / "corpus"),)
    assert ".." not in target.read_text("utf-8")
    shutil.copytree(FIXTURES / "corpus", tmp_path / "corpus")
    (tmp_path / "items").mkdir()
    shutil.copy(ITEMS, tmp_path / "items")
    assert main(["audit", "run", str(target), "--quiet"]) == 0
    assert (tmp_path / "pack" / "report.html").exists()
    assert main(["audit", "init", str(target)]) == 1
    assert main(["audit", "init", str(tmp_path / "pack" / "A.toml")]) == 2


def test_every_key_that_init_explains_is_one_that_an_audit_takes(tmp_path):
    target = tmp_path / "AUDIT.toml"
    assert main(["audit", "init", str(target)]) == 0
    text = re.sub(r"^# (\[|[a-z_]+ =)", r"\1", target.read_text("utf-8"), flags=re.MULTILINE)
    assert tomllib.loads(text)["logs"]["mixed_setups"]
    target.write_text(text.replace("decoys = true", "decoys = false"), "utf-8")
    spec = load_spec(target)
    assert spec.logs.skip_damaged
    assert spec.models["model-a"].corpora == ("web",)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("seed = 1", "sead = 1", "sead"),
        ("seed = 1", 'seed = "many"', "seed"),
        ("seed = 1", 'written = { "/a" = "b" }', "written"),
        ("seed = 1", 'waivers = "w.toml"', "waivers"),
        ("seed = 1", "corpora = []", "corpora"),
        ("[[corpus]]", "[[corpuses]]", "corpuses"),
        ("[[corpus]]", "[corpus]", "[[corpus]]"),
        ("[[corpus]]", "[[corpus", ""),
        ('name = "web"', 'name = "../web"', "../web"),
        ('name = "web"', 'name = "together"', "together"),
        ('name = "web"', 'name = "web"\nnam = "c"', "[[corpus]] number 1: nam"),
        ('name = "web"', 'name = "web"\nallow_missing = "so"', "allow_missing"),
        ('out = "pack"', "", ""),
        ("paths = 'c'", "", "web"),
        ("paths = 'c'", "paths = 'c'\nindex = 'i'", "web"),
        ("paths = 'c'", "paths = 'c'\n[[corpus]]\nname = 'web'\npaths = 'd'", ""),
        ("paths = 'b'", "paths = 'b'\nfrom_logs = true", "from_logs"),
        ("paths = 'b'", "paths = 'b'\nreleased = 'soon'", "[[benchmark]] number 1: released"),
        ("paths = 'b'", "paths = 'b'\n[logs]\nours = 7", "[logs]: ours"),
    ],
)
def test_a_wrong_key_is_refused_by_its_name(tmp_path, old, new, named):
    text = """
        [audit]
        out = "pack"
        seed = 1
        [[corpus]]
        name = "web"
        paths = 'c'
        [[benchmark]]
        paths = 'b'
        """
    (tmp_path / "AUDIT.toml").write_text(text)
    assert load_spec(tmp_path / "AUDIT.toml").seed == 1
    assert old in text
    (tmp_path / "AUDIT.toml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_spec(tmp_path / "AUDIT.toml")
    assert str(tmp_path / "AUDIT.toml") in caught.value.message
    assert named in caught.value.message


def test_an_empty_path_says_what_no_key_says(tmp_path):
    path = write_spec(tmp_path)
    plain = load_spec(path)
    text = path.read_text().replace("[audit]\n", '[audit]\naccept = ""\n')
    path.write_text(text.replace("[[corpus]]\n", '[[corpus]]\ncleaned = ""\ntokenizer = ""\n'))
    assert load_spec(path) == plain


def test_evidence_that_begins_within_a_word_or_lost_its_punctuation_is_vouched_for(tmp_path):
    question = (
        r"Find \frac{alpha}{beta}+\sqrt{gamma} of the lantern and the copper kettle by the sea."
    )
    items = write_items(tmp_path / "formula.jsonl", [{"id": "one", "question": question}])
    glued = question.translate(str.maketrans("", "", "\\{}"))
    write_shard(tmp_path / "web" / "part.parquet", [f"Homework. {glued} Show your work."])
    corpora = (FIXTURES / "corpus", tmp_path / "web")
    pack = audit(tmp_path, corpora, (ITEMS, items), policies=("contam", "gpt4-50char"))
    evidence = load_report(pack / "checks" / "together").evidence.to_pylist()
    assert any(row["item_id"] == "one" for row in evidence)
    found = verify_pack(pack, sample=100_000)
    assert (found.problems, found.n_evidence) == ((), len(evidence))
    assert len(evidence) > 200


def test_a_whole_pack_holds_without_its_corpora_when_only_the_pack_is_asked_for(tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(FIXTURES / "corpus", corpus)
    pack = audit(tmp_path, [corpus], [ITEMS])
    shutil.rmtree(corpus)
    assert main(["audit", "verify", str(pack)]) == 4
    assert main(["audit", "verify", str(pack), "--sample", "0"]) == 0
    report = pack / "report.md"
    assert "| metric |" not in report.read_text(), "without logs there are no scores"
    report.write_bytes(report.read_bytes() + b" ")
    assert main(["audit", "verify", str(pack), "--sample", "0"]) == 1


# ---------------------------------------------------------------------------------------- approvals


def verified(pack, capsys):
    """Exit code and output of `contam audit verify`, without the corpora."""
    capsys.readouterr()
    code = main(["audit", "verify", str(pack), "--sample", "0"])
    return code, capsys.readouterr().out


def test_an_approved_pack_is_as_before_and_verify_names_who_signed(pack, capsys, monkeypatch):
    before = {name: path.read_bytes() for name, path in files_of(pack)}
    monkeypatch.chdir(pack)
    assert main(["audit", "approve", ".", "--name", "Anna Ruiz"]) == 0
    assert main(["audit", "approve", str(pack), "--name", "李雷"]) == 0
    assert {name: path.read_bytes() for name, path in files_of(pack)} == before
    code, said = verified(pack, capsys)
    assert code == 0
    assert "signed by Anna Ruiz on 2" in said
    assert "signed by 李雷" in said
    assert {each.digest for each in read_approvals(pack).values()} == {
        read_verified(pack / MANIFEST)["digest"]
    }
    with pytest.raises(OutputError, match="exists"):
        approve(pack, "anna  ruiz")


def test_an_approval_of_another_digest_fails_until_it_is_given_anew(pack, capsys):
    approve(pack, "Anna Ruiz")
    assert relabel(pack, {"brook-001": "suspect"})
    code, said = verified(pack, capsys)
    assert code == 1
    assert "another digest" in said
    assert "FAILED" in said
    assert main(["audit", "verify", str(pack), "--sample", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["approvals_of_others"] == [
        "pack.approved-anna-ruiz.json"
    ]
    approve(pack, "Anna Ruiz", overwrite=True)
    assert verified(pack, capsys)[0] == 0


@pytest.mark.parametrize("harm", [b"", b"[]", b'{"name": "Anna"}', b"\xff", b'{"pack": 1}'])
def test_what_is_no_approval_is_not_passed_over(pack, harm, capsys):
    pack.with_name("pack.approved-anna.json").write_bytes(harm)
    assert verified(pack, capsys)[0] == 1


@pytest.mark.parametrize("name", ["", "  ", "---", "Anna\nRuiz", "Anna\u202e"])
def test_a_name_that_cannot_be_read_is_refused(pack, name):
    with pytest.raises(UsageError):
        approve(pack, name)


def test_an_altered_pack_is_not_approved(pack):
    (pack / "report.md").write_text("all is well")
    with pytest.raises(OutputError, match=r"report\.md"):
        approve(pack, "Anna")
    assert read_approvals(pack) == {}
