"""An approval says who approved which digest, and leaves the pack as it is."""

import json

import pytest

from contam.audit.verify import MANIFEST, approve, files_of, read_approvals, read_verified
from contam.cli.main import main
from contam.errors import OutputError, UsageError
from tests.audit.conftest import relabel


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
