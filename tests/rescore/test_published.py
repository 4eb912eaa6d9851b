"""Published tables and their reference answers: every figure that science.md says must come out."""

import json

import numpy as np
import pytest

import contam as library
from contam.rescore import field
from contam.rescore.stats import clusters, gain, permutation, ranking


@pytest.fixture(scope="module")
def published(shared):
    return shared / "published"


@pytest.fixture(scope="module")
def expected(published):
    return json.loads((published / "expected.json").read_text())


def table(path):
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def helm(published):
    rows = table(published / "helm_gsm8k_items.csv")
    return np.array([[int(bit) for bit in row["correct_bits"]] for row in rows], np.float64)


def test_limits_of_proportions(expected):
    for case in expected["proportion_ci_oracle"]:
        k, n = case["k"], case["n"]
        assert clusters.wilson(k, n) == pytest.approx(case["wilson"], abs=1e-9)
        assert clusters.clopper_pearson(k, n) == pytest.approx(case["clopper_pearson"], abs=1e-9)


def test_the_limits_of_imagenetv2_table_1(published, expected):
    counts = {row["model"]: row for row in table(published / "imagenetv2_counts.csv")}
    rows = expected["imagenetv2"]["published_table1_top1"]["rows"]
    assert len(rows) == 8
    for name, old, old_limits, new, new_limits, *_ in rows:
        for score, limits, hits, size in (
            (old, old_limits, "orig_top1", "orig_n"),
            (new, new_limits, "matched_top1", "matched_n"),
        ):
            k, n = int(counts[name][hits]), int(counts[name][size])
            found = [round(100 * value, 1) for value in (k / n, *clusters.clopper_pearson(k, n))]
            assert found == [score, *limits], name


def standard_error(scores):
    return np.std(scores, ddof=1) / np.sqrt(len(scores))


def clustered_error(scores, cluster):
    """Miller 2024, appendix A: (1/n) sqrt(sum over clusters of (sum of s - mean)**2)."""
    sums = np.bincount(cluster, weights=scores - scores.mean())
    return np.sqrt(np.sum(sums * sums)) / len(scores)


def test_clustered_and_paired_errors(helm, expected):
    case = expected["helm_gsm8k_items"]["paired_example"]
    a, b = helm[case["a"]], helm[case["b"]]
    cluster = np.arange(len(a)) // 10
    assert (a.mean(), b.mean()) == pytest.approx((case["acc_a"], case["acc_b"]), abs=1e-12)
    assert standard_error(a) == pytest.approx(case["naive_se_of_acc_a"], rel=1e-9)
    assert clustered_error(a, cluster) == pytest.approx(
        case["clustered_se_of_acc_a_clusters_of_10_consecutive_items"], rel=1e-9
    )
    plain = ranking.pairwise(np.stack([a, b]))
    difference, error = plain.difference[0, 1], plain.error[0, 1]
    assert difference == pytest.approx(case["diff"], abs=1e-12)
    assert error == pytest.approx(case["se_paired"], rel=1e-9)
    assert difference / error == pytest.approx(case["z"], rel=1e-9)
    errors = [standard_error(one) for one in (a, b)]
    assert np.hypot(*errors) == pytest.approx(case["se_unpaired"], rel=1e-9)
    clustered = ranking.pairwise(np.stack([a, b]), cluster)
    published = clustered_error(a - b, cluster)
    assert published == pytest.approx(case["clustered_se_of_diff"], rel=1e-9)
    # Miller's formula divides by the clusters, ours by one less, as a variance of 100 sums has it.
    assert clustered.error[0, 1] == pytest.approx(published * np.sqrt(100 / 99), rel=1e-9)


def test_detectable_effects_of_198_questions(expected):
    """Miller's example: a conditional variance of 1/6 and between-question variance of 1/9."""
    case = expected["helm_gsm8k_items"]["miller_published"]["mde_n198"]
    for repeats in (1, 10):
        found = ranking.detectable(198, 1 / 9 + 2 * (1 / 6) / repeats)
        assert found == pytest.approx(case[f"K{repeats}_exact"], rel=1e-9)


def test_gain_and_both_z(expected):
    for case in expected["epg_oracle"]:
        n, k, d, right = (case[name] for name in ("n", "correct", "flagged", "flagged_correct"))
        flagged = np.arange(n) < d
        scores = np.concatenate([np.arange(d) < right, np.arange(n - d) < k - right]).astype(
            np.float64
        )
        found = gain.gain(scores, flagged, least=1)
        parts = (scores.mean(), scores[~flagged].mean(), scores[flagged].mean())
        printed = [case[f"score_{part}"] for part in ("all", "clean", "dirty")]
        assert parts == pytest.approx(printed, abs=1e-9)
        assert found.epg == pytest.approx(case["epg"], abs=1e-9)
        assert d / n * (parts[2] - parts[1]) == pytest.approx(
            case["identity_f_dirty_times_gap"], abs=1e-9
        )
        assert found.z == pytest.approx(case["z_contam"], rel=1e-9)
        assert found.z_nested == pytest.approx(case["z_two_sample_pooled"], rel=1e-9)
        assert found.z == pytest.approx(found.z_nested * np.sqrt(d / n), rel=1e-9)


def test_bounds_of_the_first_case(expected):
    case = expected["epg_oracle"][0]
    right = case["correct"] - case["flagged_correct"]
    scores = np.concatenate([np.zeros(40), np.arange(60) < right]).astype(np.float64)
    assert gain.bounds(scores, np.arange(100) >= 40) == pytest.approx((0.36, 0.76))


def test_llama_3_gaps_and_blanks(published, expected):
    reference = expected["llama3_table15"]
    rows = table(published / "llama3_table15.csv")
    columns = ("epg_8b", "epg_70b", "epg_405b")
    known = {row["benchmark"] for row in rows if row["contam_pct"]}
    assert known == set(reference["implied_gap"])
    assert (len(known), len(rows)) == (reference["n"], reference["n"] + 6)
    for row in rows:
        gaps = reference["implied_gap"].get(row["benchmark"])
        for column, gap in zip(columns, gaps or (), strict=False):
            if gap is None or not row[column]:
                continue
            share = float(row["contam_pct"]) / 100
            assert float(row[column]) / share == pytest.approx(gap, abs=0.0051)
    for column in columns:
        pairs = [
            (float(row["contam_pct"]), float(row[column])) for row in rows if row[column].strip()
        ]
        rho = ranking.agreement(*map(np.array, zip(*pairs, strict=True))).rho
        assert rho == pytest.approx(reference["spearman_contam_vs_epg"][column], abs=1e-9)


@pytest.mark.parametrize(("flagged", "n"), [(0, 100), (100, 100), (49, 500), (460, 500)])
def test_subsets_that_are_too_small_are_not_estimable(flagged, n):
    scores = (np.arange(n) % 2).astype(np.float64)
    found = gain.gain(scores, np.arange(n) < flagged)
    assert found.note.startswith("not estimable")
    assert np.isnan([found.z, found.z_nested, found.p]).all()


def numbers(row):
    return {
        key: float(value) if value not in ("", None) else np.nan
        for key, value in row.items()
        if key.startswith(("score_", "n_", "rel_"))
    }


def test_gpt_3_table(published, expected):
    reference = expected["gpt3_tableC1"]
    rows = table(published / "gpt3_tableC1.csv")
    assert len(rows) == 42
    exceptions = {name for name, *_ in reference["mixture_identity_exceptions"]}
    found_exceptions = set()
    for row in rows:
        v = numbers(row)
        assert v["n_dirty"] + v["n_clean"] == v["n_all"]
        f = v["n_dirty"] / v["n_all"]
        mixed = f * v["score_dirty"] + (1 - f) * v["score_clean"]
        if abs(mixed - v["score_all"]) > 0.1001:
            found_exceptions.add(row["name"])
        relative = 100 * gain.relative_difference(v["score_all"], v["score_clean"])
        # Scores are printed to a tenth, the difference to a whole point.
        slack = 0.5 + 100 * 2 * 0.1 / max(v["score_clean"] + v["score_all"], 0.1)
        assert abs(relative - v["rel_diff_pct_printed"]) <= slack, row["name"]
    assert found_exceptions == exceptions
    fits = reference["rel_diff_formula_fit"]
    assert fits["symmetric_2(clean-all)/(clean+all)"]["rows_inconsistent"] == 0
    plain = {
        row["name"]
        for row in rows
        if abs(
            100
            * gain.plain_relative_difference(*(float(row[k]) for k in ("score_all", "score_clean")))
            - float(row["rel_diff_pct_printed"])
        )
        > 1.2
    }
    assert set(fits["plain_(clean-all)/all"]["names"]) <= plain


def test_gpt_3_gains_and_the_family_of_tests(published, expected):
    reference = expected["gpt3_tableC1"]
    rows = {row["name"]: numbers(row) for row in table(published / "gpt3_tableC1.csv")}
    p = {}
    for case in reference["acc_rows"]:
        v = rows[case["name"]]
        n, n_clean, n_dirty = (int(v[k]) for k in ("n_all", "n_clean", "n_dirty"))
        full, clean, dirty = (v[k] / 100 for k in ("score_all", "score_clean", "score_dirty"))
        assert 100 * (full - clean) == pytest.approx(case["epg_points"], abs=1e-6)
        z, _ = gain.gain_z(full - clean, np.sqrt(full * (1 - full)), n, n_clean)
        # No spread at all (a score of 0 everywhere): the reference writes 0, we say not a number.
        assert np.nan_to_num(-z) == pytest.approx(case["z_clean_vs_all"], abs=1e-3)
        if n_dirty == 0:
            continue
        z2, one_sided = gain.two_proportions((dirty * n_dirty, n_dirty), (clean * n_clean, n_clean))
        # The reference pools by the printed overall score, which is rounded to a tenth of a point.
        pooled = (dirty - clean) / np.sqrt(full * (1 - full) * (1 / n_dirty + 1 / n_clean))
        assert pooled == pytest.approx(case["z_dirty_vs_clean_pooled"], abs=1e-3)
        assert z2 == pytest.approx(pooled, rel=0.03, abs=0.01)
        p[case["name"]] = one_sided
    tests = reference["multiple_testing_one_sided_dirty_gt_clean"]
    names, values = list(p), np.array(list(p.values()))
    assert len(names) == tests["n_tests"]
    for adjusted, key in (
        (values, "raw_p_lt_.05"),
        (permutation.benjamini_hochberg(values), "bh_reject_5pct"),
        (permutation.holm(values), "holm_reject_5pct"),
    ):
        assert {name for name, q in zip(names, adjusted, strict=True) if q < 0.05} == set(
            tests[key]
        )


def test_models_that_cannot_have_seen_flagged_items_gain_nothing_on_them(helm):
    flagged = np.arange(helm.shape[1]) < 200
    found = field.beyond_field(helm[:10], flagged)
    assert min(permutation.holm(np.array([one.p for one in found]))) > 0.05


def test_ranks_of_full_and_masked(helm, expected):
    case = expected["helm_gsm8k_items"]["rank_full_vs_masked"]
    found = ranking.agreement(helm.mean(axis=1), helm[:, 200:].mean(axis=1))
    assert found.tau == pytest.approx(case["kendall_tau_b"], abs=1e-9)
    assert found.rho == pytest.approx(case["spearman"], abs=1e-9)
    for key, value in case.items():
        if key.startswith("rank_diff_benchbench_style"):
            assert found.distance == pytest.approx(value, abs=1e-9)


def test_rank_intervals_of_the_leaders(helm, expected):
    case = expected["helm_gsm8k_items"]
    leaders = np.argsort(-helm.mean(axis=1), kind="stable")[:20]
    assert leaders[:10].tolist() == case["top10_model_index"]
    found = ranking.rank_intervals(ranking.pairwise(helm[leaders]), joint=True)
    assert found.tolist() == case["rank_intervals_top20_holm"]


def test_contam_metrics_of_spans_come_out_of_a_scan(expected, tmp_path):
    """Token, n-gram and longest match, as policies give them for spans planted in a corpus."""
    names = ("llama3-8gram", "palm-70", "openr1-8")
    for number, case in enumerate(expected["contam_metric_oracle"]["cases"]):
        words = [f"zu{chr(97 + at // 26)}{chr(97 + at % 26)}k" for at in range(case["L"])]
        corpus, items = tmp_path / f"corpus-{number}.jsonl", tmp_path / f"items-{number}.jsonl"
        texts = [
            f"Filler before {' '.join(words[begin:end])} and filler after."
            for begin, end in case["spans"]
        ]
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        items.write_text(json.dumps({"id": "one", "question": " ".join(words)}) + "\n")
        result = library.scan(corpus, items, policies=names, workers=1)
        scores = {one.policy: one.score for one in result}
        assert scores["llama3-8gram"] == pytest.approx(case["token_match"], abs=1e-9)
        assert scores["palm-70"] == pytest.approx(case["ngram_match"], abs=1e-9)
        # The policy's score is the longest run itself; the metric is its share of the item.
        assert scores["openr1-8"] / case["L"] == pytest.approx(case["longest_match"], abs=1e-9)


def benchbench(path, columns):
    rows = table(path)
    tasks = columns["task_columns"]
    return np.array(
        [[float(row[t]) if row[t] not in ("", "nan") else np.nan for t in tasks] for row in rows]
    )
