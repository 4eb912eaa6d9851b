"""Say the ways out of errors with the flags and commands of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.remedies import Remedy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.errors import ContamError

SENTENCES: Final[Mapping[Remedy, str]] = {
    Remedy.CHECK_BENCHMARK_PATH: "check the path",
    Remedy.CHECK_PATH_OR_QUOTE_GLOB: "check the path; globs need quotes in a shell",
    Remedy.NAME_BENCHMARK: "--benchmark PATH",
    Remedy.MAP_ID: "--map id=FIELD names another id field, --map id= makes ids from the content",
    Remedy.MAP_QUESTION: "--map question=FIELD",
    Remedy.MAP_QUESTION_ANSWER: "name it, for example --map question=FIELD,answer=FIELD",
    Remedy.MAP_QUESTION_OR_COLUMN: (
        "name it, for example --map question=FIELD; without a header --map question=0"
    ),
    Remedy.MAP_CHOICES: "a field per choice can be named: --map choices=A+B+C+D",
    Remedy.MAP_FIELDS: "look at the first of them, or map the fields with --map",
    Remedy.WRITE_MAPPING: (
        "write pairs: --map question=prompt,answer=solution, --columns model=name,score=acc"
    ),
    Remedy.NOTHING_QUOTED: "nothing is quoted under --no-text",
    Remedy.NAME_TEXT_COLUMN: "name the column that holds the text with --text",
    Remedy.NAME_A_TEXT_COLUMN: "name a text column with --text",
    Remedy.TEXT_COLUMN_AMONG: ("name one of them with --text, with dots for fields inside structs"),
    Remedy.FETCH_CONTENTS_BY_BLOB_ID: (
        "fetch the contents by blob_id first, then name their column with --text"
    ),
    Remedy.CHECK_SHARDS_OR_TEXT_COLUMN: (
        "check that the shards are complete, or name the text column with --text"
    ),
    Remedy.CHOOSE_FOLDER_OR_OVERWRITE: "choose another folder, or replace it with --overwrite",
    Remedy.CHOOSE_NAME_OR_OVERWRITE: "choose another name, or --overwrite",
    Remedy.ADD_SHARDS_OR_OVERWRITE: (
        "add shards to it with `contam index add`, or build it again with --overwrite"
    ),
    Remedy.FINISH_BUILD_OR_OVERWRITE: (
        "finish it with the call it was begun with, or begin afresh with --overwrite"
    ),
    Remedy.BEGIN_AFRESH: "begin afresh with --overwrite",
    Remedy.NONE_RETIRED_SEE_SHARDS: (
        "nothing was retired; `contam index show --json` lists the shards"
    ),
    Remedy.RETIRE_SHARD_FIRST: "retire it first: contam index retire --shard {shard}",
    Remedy.VERIFY_AND_RELOAD: (
        "run `contam index verify`; a service that has the index open has to reload it afterwards"
    ),
    Remedy.RESTORE_INDEX: (
        "restore the index from a copy, or build it again; `contam index verify` tells all"
    ),
    Remedy.NAME_INDEX_OR_FOLDER: "give --index NAME or --index DIR",
    Remedy.NAME_INDEX: "give --index DIR",
    Remedy.NAME_INDEX_HOME: "name one with --home or CONTAM_HOME",
    Remedy.MAKE_INDEX: "make one with `contam index build`",
    Remedy.LESS_MEMORY_FOR_BUILD: (
        "give the build less --memory, so that it writes smaller segments"
    ),
    Remedy.UPGRADE_INDEX: (
        "build it again from its corpus: contam index upgrade --index {folder} --out NEW"
    ),
    Remedy.NAME_TOKENIZER: "name its tokenizer.json: --tokenizer",
    Remedy.BUILD_INDEX_OF_CORPUS: "build an index of its corpus instead: contam index build",
    Remedy.NAME_SHARDS_OR_BUILD_INDEX: (
        "name where they lie now with --corpus, or build an index of the corpus as it is now: "
        "contam index build"
    ),
    Remedy.MAKE_HASHES: "make the hashes with `contam hash`",
    Remedy.MAKE_HASHES_BY_RECIPE: "make them with `contam hash` and the recipe of the index",
    Remedy.ASK_POLICIES_BY_HASHES: (
        "ask for one of these, or search with the text: `contam query` or `contam scan`"
    ),
    Remedy.LEAVE_BLOCKS_OUT: "leave out --block-items",
    Remedy.LEAVE_OUT_BLOCKS_OR_POLICIES: "leave out --block-items, or {policies}",
    Remedy.LIST_POLICIES: "`contam policies` lists them",
    Remedy.SHOW_POLICIES: "`contam policies` shows the known ones in full",
    Remedy.SCAN_CORPUS: "search the corpus itself with `contam scan`",
    Remedy.LEAVE_UNIT_OUT: "leave out --unit, or build an index in that unit",
    Remedy.SCAN_AGAIN_AND_OVERWRITE: "scan again with --overwrite",
    Remedy.GIVE_RESULT_FOLDER: (
        "give the folder that `contam scan --out` or `contam query --out` wrote"
    ),
    Remedy.BEGIN_WITHOUT_RESUME: "leave --resume out to begin anew",
    Remedy.RESUME_WITH_FEWER_WORKERS: (
        "often memory runs out: go on with fewer --workers and --resume"
    ),
    Remedy.WAIT_FOR_SEARCH: (
        "wait until `contam scan --plan` has done the other leases, and repeat the call"
    ),
    Remedy.PLAN_TO_CLEAN: "make it with `contam plan --to-clean`, and do its leases again",
    Remedy.GIVE_INDEX_PLAN: "give the folder that `contam index plan` wrote",
    Remedy.BUILD_MISSING_GROUP: ("build it with `contam index build --plan`, then merge again"),
    Remedy.GIVE_PLAN_FOLDER: "give with --plan the folder that `contam plan` wrote",
    Remedy.GIVE_PARTS_FOLDER: "give the folder that `contam scan --plan` wrote",
    Remedy.GIVE_RESULT_OR_LABELS: (
        "give the folder that `contam scan --out` or `contam query --out` wrote, or a file of "
        "labels (CSV, TSV, JSONL, JSON, Parquet)"
    ),
    Remedy.SAY_UNLISTED: (
        "is it the same version of the benchmark? Say what unlisted items are: --unlisted "
        "not_checkable, or clean where the file names every contaminated one"
    ),
    Remedy.SAY_UNLISTED_OR_ALLOW_UNMATCHED: (
        "does the file cover it? --unlisted not_checkable, or leave its logs out; "
        "--allow-unmatched if nothing of it is contaminated"
    ),
    Remedy.ALLOW_UNMATCHED: "is it the same version of the benchmark? --allow-unmatched goes on",
    Remedy.ALLOW_UNMATCHED_TO_SCORE: (
        "is it the same version of the benchmark? --allow-unmatched scores the rest"
    ),
    Remedy.NAME_LABEL_AND_QUESTION_COLUMNS: (
        "name the columns: --verdict-columns label=COLUMN,id=COLUMN,question=COLUMN"
    ),
    Remedy.NAME_LABEL_COLUMNS_OR_UNLISTED: (
        "name the columns: --verdict-columns label=COLUMN,id=COLUMN; if it lists contaminated "
        "items only, say what all others are: --unlisted clean or --unlisted not_checkable"
    ),
    Remedy.GIVE_THRESHOLD: "say from which score on an item is contaminated: --threshold 0.8",
    Remedy.NAME_LABEL_SCORES: (
        "leave out --threshold, or name the column of scores: --verdict-columns score=COLUMN"
    ),
    Remedy.LEAVE_OPTIONS_OF_LABELS: (
        "--threshold, --unlisted and --verdict-columns are for such a file; a scan's own verdicts "
        "have their thresholds"
    ),
    Remedy.SAY_LABEL_COLUMN: (
        "if it does: --verdict-columns label={column}; if all rows are contaminated items: "
        "--verdict-columns label="
    ),
    Remedy.SAY_DIRECTION_OR_ADD_COLUMN: (
        "--lower-is-better {metric}, --higher-is-better {metric}, or a column higher_is_better "
        "of true and false"
    ),
    Remedy.SAY_DIRECTION: "say it: --lower-is-better {metric}, or --higher-is-better",
    Remedy.SAY_ONE_DIRECTION: "name it under --lower-is-better or under --higher-is-better",
    Remedy.NAME_REFERENCE_BENCHMARK: (
        "--reference-benchmark takes BENCHMARK=REFERENCE, as contam logs names them"
    ),
    Remedy.NAME_QUESTION_COLUMN: (
        "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a column "
        "for the question (--columns question=COLUMN)"
    ),
    Remedy.NAME_SCORE_COLUMNS: (
        "name it: --columns score=COLUMN,id=COLUMN (or models=A+B for a column per model)"
    ),
    Remedy.NAME_ID_COLUMN: "name one: --columns id=COLUMN",
    Remedy.ADD_REPEAT_COLUMN: "repeats need a column that numbers them: --columns repeat=COLUMN",
    Remedy.TAKE_SCORES_AS_THEY_ARE: (
        "percentages want dividing by 100; other scores are taken as they are under --columns "
        "score={column}"
    ),
    Remedy.NAME_MAIN_METRIC: "--metric '{benchmark}={metric}'",
    Remedy.ALLOW_PARTIAL: (
        "is the log whole? it reports no number to check that by; --allow-partial scores what is "
        "there"
    ),
    Remedy.SEPARATE_RUNS: "give one of them, or keep the runs apart with --separate-runs",
    Remedy.SEE_LOGS: "`contam logs` lists them with the reasons",
    Remedy.SEE_TRACKING_URI: "see --tracking-uri",
    Remedy.GIVE_CORPUS_OR_INDEX: "give --corpus PATH..., or --index",
    Remedy.GIVE_BENCHMARK_OR_LOGS: "give --benchmark, or --logs",
    Remedy.GIVE_AUDIT_FOLDER: "give the folder that `contam audit` wrote",
    Remedy.WRITE_BY_REVIEW: "`contam review` writes it",
    Remedy.WRITE_BY_JUDGE: "`contam judge` writes it; it may be cut off, or of another version",
    Remedy.WRITE_BY_AUDIT_INIT: "`contam audit init` writes one",
    Remedy.WRITE_BY_AUDIT_WAIVE: "`contam audit waive` writes one",
    Remedy.GIVE_OUT: "give out, or --out",
    Remedy.SEE_SETTINGS: "`contam serve --help` lists the settings",
    Remedy.SKIP_DAMAGED: "--skip-damaged goes on without such logs",
    Remedy.SAY_WHICH_ITEM: "say which with --benchmark or --split",
    Remedy.ASK_KEPT_POLICIES: (
        "ask for --policy {policies} alone, or search the corpus itself with `contam scan`, or "
        "build an index that keeps it ({keeps})"
    ),
    Remedy.SCAN_OR_BUILD_INDEX: (
        "search the corpus itself with `contam scan`, or build an index that keeps it ({keeps})"
    ),
}
"""What a user of the command line can do, for every remedy whose sentence is not for all."""


def hint(error: ContamError) -> str:
    """The way out of an error, "" when there is none."""
    return error.hint_of(SENTENCES)
