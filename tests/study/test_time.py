"""The study of dates: published problems, a leak that begins in a month, input it refuses."""

import csv
import datetime as dt
import json

import numpy as np
import pytest
from scipy import stats

import contam
from contam.errors import LogError, UsageError
from contam.study import dated, time, write_study
from contam.study.dates import TimeSettings
from tests.cli.processes import contam_here
from tests.rescore.panels import refused

#: Models whose data end before the problems that DeepSeek's may have seen.
OLD = (
    *("Claude-2", "Claude-Instant-1", "Cllama-13b-Ins", "Cllama-34b-Ins", "Cllama-7b-Ins"),
    *("GPT-3.5-Turbo-0301", "GPT-4-0613", "GPT-4-Turbo-1106", "Google-Gemini-Pro"),
    *("MagiCoderS-CL-7B", "Phind-34B-V2", "WCoder-34B-V1"),
)


@pytest.fixture(scope="module")
def problems(shared):
    path = shared / "published" / "livecodebench_2024_02_26_items.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def shares(problems, tmp_path_factory):
    """The published percents as shares."""
    path = tmp_path_factory.mktemp("livecodebench") / "shares.csv"
    texts = ("question_id", "date", "platform", "difficulty")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(problems[0])
        writer.writerows(
            [text if name in texts or not text else float(text) / 100 for name, text in row.items()]
            for row in problems
        )
    return path


def timed(*inputs, least=50, permutations=99, **options):
    settings = TimeSettings(least=least, permutations=permutations)
    return time(*inputs, settings=settings, **options)


@pytest.fixture(scope="module")
def found(shares, shared):
    return timed(
        shares,
        cutoffs=shared / "published" / "livecodebench_2024_02_26_models.csv",
        columns={"cutoffs.model": "model_repr", "cutoffs.cutoff": "cutoff_label"},
        references=OLD,
        permutations=299,
    )


@pytest.mark.slow
def test_livecodebench_deepseek_falls_after_its_cutoff(found):
    drops = {row["model"]: row for row in found.rows() if row["drop"] is not None}
    assert set(drops) == {
        "DSCoder-1.3b-Ins", "DSCoder-33b-Ins", "DSCoder-6.7b-Ins", "MagiCoderS-DS-6.7B",
    }  # fmt: skip
    best = drops["DSCoder-33b-Ins"]
    assert best["against_references_p_holm"] < 0.001
    assert best["against_references"] == max(row["against_references"] for row in drops.values())
    assert all(fact in found.finding.found for fact in ("DSCoder-33b-Ins", "21.9"))


@pytest.mark.slow
def test_livecodebench_models_of_older_data_do_not_fall_at_a_day_that_is_not_theirs(shares):
    cutoffs = dict.fromkeys(OLD[::3], "2023-07-30")
    others = [name for name in OLD if name not in cutoffs]
    rows = timed(shares, cutoffs=cutoffs, references=others).rows()
    tested = [row for row in rows if row["model"] in cutoffs]
    assert len(tested) == 4
    assert min(row["against_references_p_holm"] for row in tested) > 0.05


@pytest.mark.slow
def test_livecodebench_the_search_dates_the_fall_of_deepseek(found):
    rows = {row["model"]: row for row in found.rows("scan")}
    best = rows["DSCoder-33b-Ins"]
    # Its authors give the end of July 2023, LiveCodeBench sees the fall from September on.
    assert "2023-07-30" <= best["last_day_before"] <= "2023-09-01"
    assert best["p_holm"] < 0.05


def assert_windows_are_means(study, problems, one=1):
    """Each window's score is the mean of its problems from start to end, in parts of `one`."""
    for row in study.rows("windows"):
        inside = [
            float(problem[row["model"]])
            for problem in problems
            if row["start"] <= problem["date"] <= row["end"] and problem[row["model"]] != ""
        ]
        assert one * row["score"] == pytest.approx(np.mean(inside), abs=1e-9)
        assert row["n"] == len(inside)


@pytest.mark.slow
def test_livecodebench_windows_are_means_from_start_to_end(found, problems):
    assert_windows_are_means(found, problems, 100)
    known = {(row["model"], row["start"]): row["may_be_known"] for row in found.rows("windows")}
    assert known["DSCoder-33b-Ins", "2023-07-01"] == "yes"
    assert known["DSCoder-33b-Ins", "2023-10-01"] == "no"


def test_percents_are_refused(shared):
    with refused(LogError, "percent"):
        timed(shared / "published" / "livecodebench_2024_02_26_items.csv")


def leaked(path, *, seed=9):
    """Problems of a year; wren has seen those that came out before July, and finch none."""
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(1_200):
        day = dt.date(2024, 1, 1) + dt.timedelta(days=int(rng.integers(0, 366)))
        hard = rng.random() < 0.3 + 0.3 * (day.month > 6)
        base = 0.35 if hard else 0.65
        wren = 0.95 if day.month < 7 and rng.random() < 0.6 else base
        rows.append(
            {
                "item": f"p{at}",
                "date": day.isoformat(),
                "difficulty": "hard" if hard else "easy",
                "wren": int(rng.random() < wren),
                "finch": int(rng.random() < base),
                "robin": int(rng.random() < base),
                "heron": int(rng.random() < base),
            }
        )
    write(path, rows)
    return rows


def test_a_leak_that_ends_in_a_month_is_found_and_the_harder_items_are_not(tmp_path):
    path = tmp_path / "problems.csv"
    problems = leaked(path)
    cutoffs = {"wren": "2024-06-30", "robin": "2024-06-30"}
    study = timed(
        path, cutoffs=cutoffs, references=["finch", "heron"], window="month", permutations=199
    )
    assert study.rows("windows")
    assert_windows_are_means(study, problems)
    drops = {row["model"]: row for row in study.rows()}
    assert drops["wren"]["against_references_p_holm"] < 0.01
    assert drops["robin"]["against_references_p_holm"] > 0.05
    # Items became harder: the plain drop of the model that saw none is larger than the adjusted.
    assert drops["robin"]["drop"] > drops["robin"]["stratified"]
    scan = {row["model"]: row for row in study.rows("scan")}
    assert "2024-05" <= scan["wren"]["last_day_before"][:7] <= "2024-07"
    out = write_study(study, tmp_path / "out")
    assert {"drops.svg", "scan.parquet"} <= {one.name for one in out.iterdir()}
    done = contam_here(
        *("study", "time", "--logs", path, "--cutoff", "wren=2024-06-30", "robin=2024-06-30"),
        *("--reference", "finch,heron", "--permutations", "199", "--window", "month", "--out", "cli"),
        "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["finding"]["found"] == study.finding.found
    assert shown["tables"]["drops"][0]["drop"] == study.rows()[0]["drop"]


def test_labels_give_the_drop_on_clean_items(tmp_path):
    path = tmp_path / "problems.csv"
    rows = leaked(path)
    labels = [
        {"id": row["item"], "label": "dirty" if row["date"] < "2024-07-01" and at % 3 else "clean"}
        for at, row in enumerate(rows)
    ]
    study = timed(
        path, cutoffs={"wren": "2024-06-30"}, references=["finch"], verdicts=labels,
    )  # fmt: skip
    row = study.rows()[0]
    clean = [row for row, label in zip(rows, labels, strict=True) if label["label"] == "clean"]
    before = [one["wren"] for one in clean if one["date"] <= "2024-06-30"]
    after = [one["wren"] for one in clean if one["date"] > "2024-06-30"]
    assert row["drop_clean"] == pytest.approx(np.mean(before) - np.mean(after))
    assert row["drop_clean_error"] > row["drop_error"]
    # Labels have no documents whose dates could be judged.
    assert "sources" not in study.tables


def test_benchmarks_by_name_are_dated_by_their_release(tmp_path):
    """Items of two logs have the same ids, and are dated by what each log is of."""
    rng = np.random.default_rng(5)
    for name, share in (("aime_2024", 0.9), ("aime_2025", 0.3)):
        scores = [
            {
                "id": n,
                "question": f"Tide {n} of {name}?",
                "wren": float(x < share),
                "finch": float(y < 0.5),
            }
            for n, (x, y) in enumerate(rng.random((60, 2)))
        ]
        write(tmp_path / f"{name}.csv", scores)
    logs = [tmp_path / f"{name}.csv" for name in ("aime_2024", "aime_2025")]
    study = timed(logs, "released", cutoffs={"wren": "2024-06-30"}, references=["finch"])
    row = study.rows()[0]
    assert (row["n_before"], row["n_after"]) == (60, 60)
    assert row["drop"] == pytest.approx(0.6, abs=0.2)
    write(tmp_path / "tides.csv", scores)
    with pytest.raises(UsageError, match="tides"):
        timed([*logs, tmp_path / "tides.csv"], "released", cutoffs={"wren": "2024-06-30"})


def rows_of(*rows):
    header = ("item_id", "date", "wren", "finch")
    return [dict(zip(header, row, strict=True)) for row in rows]


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


GOOD = rows_of(*((f"i{at}", f"2024-0{1 + at % 6}-10", at % 2, at % 3 == 0) for at in range(60)))
GOOD = [{**row, "finch": int(row["finch"])} for row in GOOD]


def test_an_item_with_two_dates_came_out_between_them(tmp_path):
    """Five problems of LiveCodeBench carry two dates one day apart."""
    logs = write(
        tmp_path / "logs.csv", [{k: v for k, v in row.items() if k != "date"} for row in GOOD]
    )
    dates = [{"item_id": row["item_id"], "date": row["date"]} for row in GOOD]
    dates.append({"item_id": "i0", "date": "2024-01-11"})
    study = timed(logs, dates, cutoffs={"wren": "2024-01-10"}, least=5)
    (row,) = (row for row in study.rows() if row["model"] == "wren")
    assert (row["n_before"], row["n_after"], row["n_between"]) == (9, 50, 1)
    assert any("several dates" in note for note in study.run["notes"])
    month = timed(logs, dates[:-1], cutoffs={"wren": "2024-01"}, least=5)
    (row,) = (row for row in month.rows() if row["model"] == "wren")
    assert (row["n_before"], row["n_after"], row["n_between"]) == (0, 50, 10)
    assert row["note"]


@pytest.mark.parametrize(
    ("change", "options", "fact"),
    [
        ({"date": "soon"}, {}, "'soon'"),
        ({"date": "2024-02-31"}, {}, "'2024-02-31'"),
        ({"item_id": "i2"}, {}, "'i2'"),
        ({"wren": "7.5"}, {}, "wren"),
        ({"wren": "well"}, {}, "well"),
        ({}, {"references": ["gull"]}, "gull"),
        ({}, {"references": ["wren", "finch"]}, "references"),
        ({}, {"cutoffs": {"gull": "2024-03-01"}}, "gull"),
        ({}, {"cutoffs": {"wren": "spring"}}, "'spring'"),
        ({}, {"window": "week"}, "week"),
        ({}, {"strata": ["subject"]}, "subject"),
    ],
)
def test_bad_input_is_refused(tmp_path, change, options, fact):
    rows = [dict(row) for row in GOOD]
    rows[1] |= change
    path = write(tmp_path / "bad.csv", rows)
    with refused((LogError, UsageError), fact):
        timed(path, **options)


def test_items_without_a_date_are_left_out_and_counted(tmp_path):
    rows = [dict(row) for row in GOOD]
    rows[1]["date"] = rows[2]["date"] = ""
    path = write(tmp_path / "some.csv", rows)
    study = timed(path, cutoffs={"wren": "2024-03-31"}, least=5)
    assert any("2 of 60 items have no date" in note for note in study.run["notes"])
    for row in rows:
        row["date"] = ""
    with refused(LogError, path):
        timed(write(path, rows))


def test_gains_go_by_what_the_documents_are_to_the_item_and_the_model(bench_fixtures):
    scanned = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items" / "brook_math.jsonl")
    evidence = scanned.evidence.to_pylist()
    flagged = {
        row["item_id"]
        for row in scanned.verdicts.to_pylist()
        if row["label"] in ("contaminated", "suspect")
    }
    logs = bench_fixtures / "logs" / "brook_math.csv"
    released = "2020-06-01"
    with logs.open(newline="") as file:
        items = [row["item_id"] for row in csv.DictReader(file)]
    dates = [{"item": item, "date": released} for item in items]
    study = timed(
        logs, dates, verdicts=scanned, least=2,
        cutoffs={"heron-8b": "2021-12-31", "plover-3b": "2030-01-01", "quokka-7b": "2030-01-01"},
    )  # fmt: skip
    rows = {(row["model"], row["documents"]): row for row in study.rows("sources")}
    older = {row["item_id"] for row in evidence if row["date"] and row["date"] < released} & flagged
    younger = {
        row["item_id"] for row in evidence if row["date"] and row["date"] >= released
    } & flagged
    assert rows["quokka-7b", "leak"]["n_items"] == len(younger) > 0
    assert rows["quokka-7b", "shared_source"]["n_items"] == len(older - younger)
    total = sum(rows["quokka-7b", name]["n_items"] for name in ("leak", "shared_source", "unknown"))
    assert total == len(flagged)
    late = {
        row["item_id"]
        for row in evidence
        if row["date"] and released <= row["date"] <= "2021-12-31"
    } & flagged
    assert rows["heron-8b", "leak"]["n_items"] == len(late)
    assert rows["quokka-7b", "leak"]["epg"] > 0
    # All came out on one day: no cutoff can be searched for.
    assert study.rows("scan") == []
    assert study.run["coverage"]["complete"] is True


def column(rows, model):
    return np.array([float(row[model]) / 100 for row in rows])


def days(rows):
    return np.array([dt.date.fromisoformat(row["date"]).toordinal() for row in rows])


def within(expected, n):
    """What a share of n draws may be: three Monte Carlo errors around what it should be."""
    return pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / n))


def test_the_drop_is_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(25) * 2
    found = dated.drop(a, b)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert found.limits() == pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9)
    with pytest.raises(ValueError):
        dated.drop(a, b[:1])


def test_deepseek_falls_after_its_cutoff_and_gpt_4_does_not_fall_more(problems):
    """The published reading of the set: DeepSeek's models fall after August 2023."""
    cutoff = dt.date(2023, 8, 31).toordinal()
    leetcode = [row for row in problems if row["platform"] == "leetcode"]
    before = days(leetcode) <= cutoff
    fallen, steady = column(leetcode, "DSCoder-33b-Ins"), column(leetcode, "GPT-4-Turbo-1106")
    own = dated.drop(fallen[before], fallen[~before])
    assert own.value == pytest.approx(fallen[before].mean() - fallen[~before].mean())
    assert own.p < 0.001
    less = fallen - steady
    both = dated.drop(less[before], less[~before])
    assert both.value == pytest.approx(
        own.value - (steady[before].mean() - steady[~before].mean()), abs=1e-12
    )


def test_strata_take_off_a_change_in_the_mix_of_problems():
    rng = np.random.default_rng(3)
    n, hit, plain = 600, 0, 0
    for _ in range(n):
        sides = []
        for share in (0.8, 0.3):
            easy = rng.random(80) < share
            sides.append(
                ((rng.random(80) < np.where(easy, 0.8, 0.3)).astype(float), easy.astype(int))
            )
        (a, first), (b, second) = sides
        found, share = dated.stratified_drop(a, b, (first, second))
        low, high = found.limits()
        hit += low <= 0 <= high
        plain += dated.drop(a, b).p <= 0.05
        assert share == 1.0
    assert hit / n == within(0.95, n)
    assert plain / n > 0.5
    nowhere, share = dated.stratified_drop(a, b, (np.zeros(80, int), np.ones(80, int)))
    assert np.isnan(nowhere.value)
    assert share == 0.0


def test_the_scan_pays_for_its_search():
    """Under no effect the smallest p of all cutoffs is small too often; the permuted one is not."""
    rng = np.random.default_rng(4)
    n, hits = 300, 0
    for seed in range(n):
        day = np.sort(rng.integers(0, 200, 120))
        strata = rng.integers(0, 3, 120)
        scores = rng.random(120) < 0.2 + 0.3 * strata
        found = dated.scan(scores.astype(float), day, strata=strata, permutations=99, seed=seed)
        hits += found.p <= 0.05
    assert hits / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


def test_the_scan_finds_a_planted_cutoff_and_its_sign():
    rng = np.random.default_rng(6)
    day = np.sort(rng.integers(0, 365, 600))
    scores = (rng.random(600) < np.where(day <= 140, 0.7, 0.4)).astype(float)
    found = dated.scan(scores, day, permutations=199)
    assert abs(found.day - 140) <= 12
    assert found.z > 0
    assert found.p == pytest.approx(1 / 200)
    risen = dated.scan(1 - scores, day, permutations=199)
    assert (risen.day, risen.z) == (found.day, pytest.approx(-found.z))
    assert dated.scan(scores[:30], day[:30]) is None
    assert dated.scan(np.ones(600), day) is None


def test_a_drop_without_a_common_stratum_says_so(tmp_path):
    rows = ["item,date,difficulty,heron"]
    rows += [f"a{at},2024-01-10,easy,{int(at % 5 > 0)}" for at in range(30)]
    rows += [f"b{at},2024-05-10,hard,{int(at % 5 == 0)}" for at in range(30)]
    (tmp_path / "scores.csv").write_text("\n".join(rows))
    study = timed(tmp_path / "scores.csv", cutoffs={"heron": "2024-03-01"}, least=10)
    (row,) = study.rows()
    assert row["drop_p_holm"] < 0.05
    assert row["stratified_p"] is None
    assert "difficulty" in study.finding.sure
