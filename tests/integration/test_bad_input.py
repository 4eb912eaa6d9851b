"""Bad input, through the real command: one clear line and nothing left, or a correct answer."""

import bz2
import gzip
import json
import subprocess
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.report import load_report
from contam.detect.scan import scan
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    assert_refused,
    compiled_only,
    contam_here,
    corpus_of,
    labels,
    quoted,
    run_scan,
    search,
    verdict,
    write_items,
    write_jsonl,
    write_parquet,
)


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path / "corpus", [FILLER, FILLER + QUESTION], [FILLER])


# ------------------------------------------------------------------------------ nothing to read


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ("empty", 1, ["empty"]),
        ("readme", 1, ["README.md"]),
        ("missing", 2, ["missing"]),
        ("corpus/*.arrow", 2, ["corpus/*.arrow"]),
    ],
)
def test_no_shard(tmp_path, items, given, code, words):
    corpus_of(tmp_path / "corpus", [FILLER])
    (tmp_path / "empty").mkdir()
    (tmp_path / "readme").mkdir()
    (tmp_path / "readme" / "README.md").write_text("hello")
    process = run_scan(tmp_path / given, items, tmp_path / "out", cwd=tmp_path)
    assert_refused(process, tmp_path / "out", *words, code=code)


@pytest.mark.parametrize("name", ["none.jsonl", "none.jsonl.gz", "none.parquet"])
def test_a_corpus_without_a_document_makes_nothing_clean(tmp_path, items, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        write_parquet(path, [])
    else:
        path.write_bytes(gzip.compress(b"", mtime=0) if name.endswith(".gz") else b"")
    process = run_scan(path, items, tmp_path / "out")
    assert_refused(process, tmp_path / "out", "0 documents")


@pytest.mark.parametrize("texts", [[None, None], ["", ""], [None, ""]])
def test_a_corpus_of_documents_without_text_makes_nothing_clean(tmp_path, items, texts):
    path = write_parquet(tmp_path / "hollow.parquet", texts)
    process = run_scan(path, items, tmp_path / "out")
    assert_refused(process, tmp_path / "out", "2 documents", "--text")


def test_a_corpus_of_which_nothing_could_be_read_makes_nothing_clean(tmp_path, items):
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1 and then the disk was full")
    process = run_scan(path, items, tmp_path / "out", "--allow-missing")
    assert_refused(process, tmp_path / "out", "cut.parquet")


@pytest.mark.parametrize("option", ["--corpus", "--benchmark", "--out"])
def test_an_empty_path_is_not_the_current_folder(tmp_path, corpus, items, option):
    # What an unset shell variable gives; it must not mean every file that lies here.
    given = {"--corpus": corpus, "--benchmark": items, "--out": "out", option: ""}
    process = contam_here("scan", *[word for pair in given.items() for word in pair], cwd=tmp_path)
    assert_refused(process, tmp_path / "out", option.strip("-"), code=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "nope"], ["nope", "contam"]),
        (["--unit", "nope"], ["nope"]),
        (["--unit", "/missing/tokenizer.json"], ["/missing/tokenizer.json"]),
        (["--workers", "0"], ["workers"]),
        (["--workers", "9999"], ["workers", "64"]),
        (["--seed", "1"], ["seed"]),
        (["--seed", "9"], ["--seed 9", "--min-run 8"]),
        (["--map", "question"], ["mapping", "question=prompt"]),
    ],
)
def test_a_wrong_call(tmp_path, corpus, items, options, words):
    process = run_scan(corpus, items, tmp_path / "out", *options)
    assert process.returncode in {1, 2}
    assert_refused(process, tmp_path / "out", *words, code=process.returncode)


# ---------------------------------------------------------------------- odd texts, right answers


def test_bytes_that_are_not_utf8_hide_nothing_and_are_counted(tmp_path, items):
    raw = QUESTION.encode().replace(b": how", b"\xff\xfe how")
    array = pa.array([raw, b"\xc3", FILLER.encode()], pa.binary())
    folder = tmp_path / "corpus"
    folder.mkdir()
    pq.write_table(pa.table({"text": array}), folder / "a.parquet")
    (folder / "b.jsonl").write_bytes(b'{"text": "' + raw + b'"}\n')
    process = run_scan(folder, items, tmp_path / "out")
    assert process.returncode == 0, process.stderr
    report = load_report(tmp_path / "out")
    assert labels(report) == {"q0": "contaminated", "q1": "clean"}
    assert verdict(report).n_documents == 2
    assert report.run["coverage"]["n_undecodable"] == 3
    assert "3 with bytes that are not UTF-8" in process.stdout
    assert contam_here("show", tmp_path / "out").returncode == 0


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_null_text_keeps_the_rows_in_step(tmp_path, items, kind):
    texts = [None, FILLER, None, "", QUESTION, None]
    if kind == "parquet":
        path = write_parquet(tmp_path / "nulls.parquet", texts)
    else:
        rows = [{"id": f"n{n}", "text": text} for n, text in enumerate(texts)]
        path = write_jsonl(tmp_path / "nulls.jsonl", rows)
    result = scan(path, items)
    found = verdict(result)
    assert (found.label, found.best_row) == ("contaminated", 4)
    assert found.best_document_id.endswith("4")
    coverage = result.coverage
    assert (coverage["rows"], coverage["n_null"], coverage["n_empty"]) == (6, 3, 1)
    assert [(said, text) for _, said, text in quoted(result, texts)] == [(QUESTION[:-1],) * 2]


BZ2 = pytest.param("jsonl.bz2", marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", ["parquet", "jsonl", BZ2])
def test_a_line_of_five_megabytes(tmp_path, items, kind):
    half = (FILLER.replace("\n", " ") * 17_000)[:2_500_000] + " "
    text = half + QUESTION + " " + half
    path = tmp_path / f"long.{kind}"
    if kind == "parquet":
        write_parquet(path, [FILLER, text])
    else:
        raw = json.dumps({"text": FILLER}) + "\n" + json.dumps({"text": text}) + "\n"
        path.write_bytes(bz2.compress(raw.encode()) if kind.endswith("bz2") else raw.encode())
    result = scan(path, items)
    assert labels(result) == {"q0": "contaminated", "q1": "clean"}
    assert [said for _, _, said in quoted(result, [FILLER, text])] == [QUESTION[:-1]]


@compiled_only
def test_one_word_a_million_times(tmp_path):
    documents = ["spam " * 1_000_000, FILLER + QUESTION]
    result = search(tmp_path, documents, QUESTION, "spam " * 12, ABSENT)
    assert labels(result) == {"q0": "contaminated", "q1": "contaminated", "q2": "clean"}
    assert verdict(result, "q1").best_row == 0
    for _, item, document in quoted(result, documents):
        assert item.split() == document.split()


@compiled_only
def test_a_long_item_of_one_word_does_not_stall_the_scan(tmp_path):
    corpus = write_parquet(tmp_path / "corpus.parquet", ["spam " * 300_000])
    items = write_items(tmp_path / "items.jsonl", "spam " * 500)
    # It takes two seconds; pair by pair it would take minutes.
    assert labels(scan(corpus, items)) == {"q0": "contaminated"}


SCRIPTS = {
    "arabic": "كم عدد الأرغفة التي يبيعها الخباز كل صباح في السوق القديم قرب النهر الكبير يا ترى؟",
    "hebrew": "כמה לחמים מוכר האופה בכל בוקר בשוק הישן ליד הנהר הגדול שבקצה העיר הרחוקה?",
    "persian": "نانوا هر روز صبح چند نان در بازار قدیمی کنار رودخانهٔ بزرگ می‌فروشد و چند تا نگه می‌دارد؟",
    "russian": "Сколько буханок ржаного хлеба продаёт пекарь каждое утро на старом рынке у большой реки?",
    "chinese": "面包师每天早上在大河边的旧市场卖出多少个黑麦面包，又给邻居留下几个？",
    "japanese": "パン屋は毎朝、大きな川のそばの古い市場でライ麦パンをいくつ売りますか？",
    "korean": "빵집 주인은 매일 아침 큰 강 옆 오래된 시장에서 호밀빵을 몇 개 팔고 몇 개를 남겨 둡니까?",
    "thai": "คนทำขนมปังขายขนมปังไรย์กี่ก้อนทุกเช้าที่ตลาดเก่าริมแม่น้ำใหญ่ของเมือง",
    "hindi": "नानबाई हर सुबह बड़ी नदी के पास पुराने बाज़ार में कितनी रोटियाँ बेचता है और कितनी बचाता है?",
    "mixed": "Der Bäcker sagt שלום and sells 17 ржаных loaves, 毎朝 four κομμάτια for the neighbours в субботу.",
    "emoji": "Which 🦊 of the three foxes 🦊🦊 carries the red umbrella ☂️ past the 👩‍👩‍👧‍👦 family of bakers on 🗓️ Friday?",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_found_and_quoted_exactly(tmp_path, script):
    item = SCRIPTS[script]
    others = " ".join(text for name, text in SCRIPTS.items() if name != script)
    documents = ["😀 ﷺ ß " + item + " 😀 " + FILLER, FILLER, others]
    result = search(tmp_path, documents, item)
    found = verdict(result)
    assert (found.label, found.kind, found.best_row) == ("contaminated", "exact", 0)
    inner = item.rstrip("?؟？.。")
    ((_, said, text),) = {found for found in quoted(result, documents) if found[1] in inner}
    # A mark after the last letter belongs to it and has no letter of its own.
    assert said == text == inner[: len(said)]
    assert all(unicodedata.category(mark).startswith("M") for mark in inner[len(said) :])


def test_an_item_longer_than_any_document(tmp_path):
    long = " ".join(f"word{n} means thing{n * 7}" for n in range(5000))
    documents = [long[:3000], FILLER, "tiny"]
    result = search(tmp_path, documents, long, ABSENT)
    assert labels(result)["q1"] == "clean"
    found = verdict(result)
    assert found.label == "clean"
    assert found.score < 0.05
    (_, said, text) = quoted(result, documents)[0]
    assert said == text == long[: len(text)]


# ------------------------------------------------------------------------------ outputs


@pytest.fixture
def disk(tmp_path):
    """A file system of 128 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_nothing_and_keeps_the_result_that_was_there(
    tmp_path, disk, corpus, items
):
    many = write_items(tmp_path / "many.jsonl", *[f"{ABSENT} number {n}" for n in range(3000)])

    def files():
        return {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}

    for out in (disk / "out", disk):
        process = run_scan(corpus, many, out, "-q")
        assert process.returncode == 1, process.stdout
        assert [line.split(":")[0] for line in process.stderr.splitlines()] == ["error", "hint"]
        assert "No space left" in process.stderr
        assert list(disk.iterdir()) == []
    assert run_scan(corpus, items, disk / "out", "-q").returncode == 0
    before = files()
    process = run_scan(corpus, many, disk / "out", "-q", "--overwrite")
    assert process.returncode == 1
    assert "No space left" in process.stderr
    assert files() == before
    assert [path.name for path in disk.iterdir()] == ["out"]


@pytest.mark.slow
def test_closed_folders_are_named(tmp_path, corpus, items):
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "deep" / "closed").mkdir(parents=True)
    write_items(tmp_path / "deep" / "more.jsonl", QUESTION)
    for folder in (closed, tmp_path / "deep" / "closed"):
        folder.chmod(0)
    try:
        for arguments in ((closed, items), (corpus, closed), (corpus, tmp_path / "deep")):
            process = run_scan(*arguments, tmp_path / "out", unprivileged=True)
            assert_refused(process, tmp_path / "out", "closed", "Permission denied")
            assert "defect" not in process.stderr
    finally:
        for folder in (closed, tmp_path / "deep" / "closed"):
            folder.chmod(0o755)
