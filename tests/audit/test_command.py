"""`contam audit` by a file, by options alone, and by a file that `contam audit init` wrote."""

import pytest

from contam.audit.manifest import TIMES, files_of, read_verified
from contam.audit.spec import load_spec
from contam.audit.verify import verify_pack
from contam.cli.main import main
from contam.detect.report import load_report
from tests.audit.conftest import FIXTURES
from tests.property.worlds import write_items, write_shard

PARTS = sorted((FIXTURES / "corpus").iterdir())
ITEMS = FIXTURES / "items" / "brook_math.jsonl"
LOGS = FIXTURES / "logs" / "brook_math.csv"


def contents(folder):
    return {name: path.read_bytes() for name, path in files_of(folder) if name != TIMES}


def test_options_alone_make_the_pack_that_a_file_makes(tmp_path):
    (tmp_path / "AUDIT.toml").write_text(
        f"""
        [audit]
        title = "Both"
        out = "by-file"
        least = 15
        decoys = 0
        seed = 3
        [[corpus]]
        name = "web"
        text = "text"
        paths = ["{PARTS[0]}", "{PARTS[1]}"]
        [[corpus]]
        name = "tuned"
        stage = "sft"
        text = "text"
        paths = "{PARTS[2]}"
        [[benchmark]]
        paths = ["{ITEMS}"]
        released = 2021-06-01
        split = "test"
        [logs]
        paths = ["{LOGS}"]
        ours = ["quokka-7b"]
        references = ["plover-3b"]
        [model."plover-3b"]
        cutoff = 2020-01-31
        corpora = "web"
        """
    )
    flags = f"--corpus web={PARTS[0]} --corpus web={PARTS[1]} --corpus tuned={PARTS[2]}"
    flags += f" --stage tuned=sft --text text --benchmark {ITEMS} --released 2021-06-01"
    flags += f" --logs {LOGS} --ours quokka-7b --references plover-3b"
    flags += """ --set audit.seed=3 --set benchmark.split="test" --set logs.allow_partial=false"""
    flags += (
        """ --set model."plover-3b".cutoff=2020-01-31 --set model."plover-3b".corpora=["web"] """
    )
    flags += f" --least 15 --decoys 0 --title Both --out {tmp_path / 'by-options'} --quiet"
    assert main(["audit", str(tmp_path / "AUDIT.toml"), "--quiet"]) == 0
    assert main(["audit", *flags.split()]) == 0
    by_file = contents(tmp_path / "by-file")
    assert contents(tmp_path / "by-options") == by_file
    assert b'"stage": "sft"' in by_file["report.json"]


def test_the_file_that_init_writes_can_be_run_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["--corpus", str(PARTS[0]), "--benchmark", str(ITEMS), "--logs", str(LOGS)]
    assert main(["audit", "init", "AUDIT.toml", *given]) == 0
    text = (tmp_path / "AUDIT.toml").read_text("utf-8")
    assert "of heron-8b, plover-3b, quokka-7b" in text
    assert "# 1 shard," in text
    assert main(["audit", "AUDIT.toml", "--decoys", "0", "--quiet"]) == 0
    assert (tmp_path / "AUDIT-pack" / "report.html").exists()
    assert read_verified(tmp_path / "AUDIT-pack" / TIMES)
    assert main(["audit", "init", "AUDIT.toml", *given]) == 1
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--corpus web=c --stage sft=web", "--stage names sft, which is no corpus here"),
        ("--corpus c --benchmark b --released x=2021-01-01", "--released names x"),
        ("--corpus c --benchmark b --released soon", "released: "),
        ("AUDIT.toml --stage sft", "stand in the file"),
        ("AUDIT.toml --allow-missing", "with each corpus"),
        ("--corpus c", "no benchmark"),
        ("--corpus c --benchmark b --set audit.seed", "not TOML"),
        ("--corpus c --benchmark b --set seed=3", "names no table and key"),
        ("--corpus c --benchmark b --set corpus.d.text='t'", "nothing here is called d"),
        ("--corpus c --benchmark b --set rules.a=1", "there is no table rules"),
        ("--corpus c --benchmark b --set model.cutoff=2020-01-01", "names no model and key"),
        ("--corpus c --benchmark b --set audit.sead=1", "[audit]: sead: there is no such key"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", *words.split(), "--out", "p"]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_set_outweighs_the_file_for_all_or_for_one(tmp_path):
    file = tmp_path / "AUDIT.toml"
    file.write_text(
        """
        audit = { out = "pack", seed = 1 }
        corpus = [{ name = "web", paths = ["a"], text = "x" }, { name = "sft", paths = ["b"] }]
        benchmark = [{ paths = ["c"], split = "dev" }, { paths = ["d"], name = "quiz" }]
        """
    )
    lines = ["audit.seed = 2", 'corpus.web.text = "y"', 'benchmark.map = {question = "q"}']
    spec = load_spec(file, lines=[*lines, 'benchmark.quiz.split = "test"'])
    assert spec.seed == 2
    assert [one.text for one in spec.corpora] == ["y", None]
    assert [benchmark.split for benchmark in spec.benchmarks] == ["dev", "test"]
    assert [benchmark.map for benchmark in spec.benchmarks] == [{"question": "q"}] * 2


def test_evidence_that_begins_within_a_word_or_lost_its_punctuation_is_vouched_for(tmp_path):
    question = (
        r"Find \frac{alpha}{beta}+\sqrt{gamma} of the lantern and the copper kettle by the sea."
    )
    items = write_items(tmp_path / "formula.jsonl", [{"id": "one", "question": question}])
    glued = question.translate(str.maketrans("", "", "\\{}"))
    write_shard(tmp_path / "web" / "part.parquet", [f"Homework. {glued} Show your work."])
    flags = f"--corpus {FIXTURES / 'corpus'} --corpus {tmp_path / 'web'} --benchmark {ITEMS}"
    flags += f" --benchmark {items} --policy contam,gpt4-50char --decoys 0 --quiet"
    pack = tmp_path / "pack"
    assert main(["audit", *flags.split(), "--out", str(pack)]) == 0
    evidence = load_report(pack / "checks" / "together").evidence.to_pylist()
    assert any(row["item_id"] == "one" for row in evidence)
    found = verify_pack(pack, sample=100_000)
    assert (found.problems, found.n_evidence) == ((), len(evidence))
    assert len(evidence) > 200
