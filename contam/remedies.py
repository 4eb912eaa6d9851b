"""Name every way out of an error, and give its sentence.

A sentence that names a flag, a command or a field of a request is `Own`: here it is for callers of
the package, `contam.cli.remedies` and `contam.server.problems.remedies` have one each.
"""

from __future__ import annotations

from enum import Enum, unique

from contam.advice import Advice, Own

__all__ = ["Advice", "Own", "Remedy"]


@unique
class Remedy(Enum):
    """What helps. Facts of a sentence stand in braces; calling a remedy gives them."""

    # Files.
    CHECK_OWNER_AND_MODE = "check its owner and mode"
    CHECK_PATH_AND_RIGHTS = "check the path and its rights"
    CHECK_PATTERN = "check the pattern"
    CHECK_VARIABLE = "check the variable it came from"
    CHECK_FILE_READABLE = "check that the file is there and may be read"
    CHECK_FILES_COMPLETE = "check that the files are complete"
    CHECK_DISK_OR_COPY_AGAIN = "check the disk or the network it lies on, or copy it again"
    CHECK_INDEX_FOLDER = "check the free space and the permissions of the index's folder"
    COPY_AGAIN = "copy the file again"
    COPY_AGAIN_OR_LEAVE_OUT = "copy the file again, or leave it out"
    COPY_AGAIN_OR_END_LINE = "copy the file again; if it is whole, add a line break at its end"
    COPY_RESULTS_FILE = "copy the results file of the same time beside it"
    COPY_MAYBE_CORRUPT = "the file may be truncated or corrupt: copy it again, or leave it out"
    COPY_WITH_HEADER = "the first line names the columns: copy the file again, or leave it out"
    COPY_CUT_OR_CHANGED = "the file is not whole, or was changed: copy it again"
    COPY_FILES_OF_ONE_RUN = "the files are not whole, or of two runs: copy them again"
    COPY_LOG_OF_THIS_RUN = "the log is not whole, or belongs to another run: copy it again"
    LOG_EDITED_OR_OF_ANOTHER_RUN = "the log is not whole, was edited, or belongs to another run"
    MAKE_REPORT_AGAIN = "the report is not whole, or was edited: make it again"
    RUN_EVALUATION_AGAIN = "the file is not complete: run the evaluation again"
    NOT_WHOLE_OR_CELL_UNQUOTED = "the file is not whole, or a cell lacks its quotes"
    IS_FILE_WHOLE = "is the file whole?"
    IS_IT_THE_RIGHT_FILE = "is it the right file, and whole?"
    RUN_GIT_LFS_PULL = "fetch the file: run `git lfs pull` in its repository"
    WRITE_TO_FILE_FIRST = "files are read more than once: write it to a file first, and name that"
    CONVERT_FILE = "convert the file"
    CONVERT_TO_UTF8 = "convert the file to UTF-8"
    WRITE_AGAIN = "write it again"
    WRITE_STREAMS_APART = "write it again to its end, each stream into a file of its own"
    RECOMPRESS = "recompress it as .gz, .zst, .bz2 or .xz"
    WRITE_UNENCRYPTED = "no keys are taken: write it again without encryption, or leave it out"
    LET_DOWNLOAD_FINISH = "let it finish; if it is not wanted, remove the file"
    LET_NOBODY_WRITE_TO_IT = "let nobody write to it meanwhile"
    LET_NOBODY_WRITE_TO_CORPUS = "let nobody write to the corpus while it is read"
    NAME_STORE_ADDRESS = "objects are named as s3://, gs://, az://, https:// or hf://datasets/"
    NAME_LOCAL_PATH = "copy it to this machine, and name the copy"
    NAME_LOCAL_FOLDER = "name a folder of this machine, and copy what is written there to the store"
    NAME_WRITABLE_PLACE = "name a folder of this machine, or one in s3://, gs://, az:// or hf://"
    GIVE_CREDENTIALS_OTHERWISE = "leave them out, and give them as the store's own tools take them"
    RENEW_CREDENTIALS = "renew the credentials and repeat the call: what is done is kept"
    GIVE_CREDENTIALS = "check the credentials, and what they allow"
    CHECK_HUB_ACCESS = "check HF_TOKEN, or make the data set: `hf repos create datasets/OWNER/NAME`"
    NAME_BRANCH = "name one as OWNER/NAME@BRANCH, or none for `main`"
    ASK_STORE_LATER = "repeat the call when the store answers, with credentials that it takes"
    FILE_EXISTED_WHEN_LISTED = "it existed when the shards were listed"
    FILE_REPLACED_BEGIN_AGAIN = "the file was replaced: begin again"
    FILE_MAY_HAVE_CHANGED = "the file may have changed since it was scanned"
    COPY_WITH_TIMES = "copy the corpus with its times (rsync -a, cp -p), or make the plan again"
    COPY_PLAN_OR_PLAN_AGAIN = "copy the whole plan folder again, or make the plan again"
    PLAN_AGAIN_HERE = "install the same on every machine, or make the plan again with what is here"
    DO_LEASE_AGAIN = "remove the file, and do its lease again"
    REPEAT_CALL_OF_WORKER = "repeat the call of its worker, which does such a lease again"
    GIVE_PARTS_OF_PLAN = "give the folders that workers on this plan wrote"
    INSTALL_ON_NODES = "every node needs contam, the same packages, and a folder to clean into"
    START_CLUSTER = "start one with `ray start`, or check its address"
    RUN_ON_NODE = "run it on a node, for example with `ray job submit`"
    BEGIN_WITHOUT_RESUME = Own("resume=False begins anew")
    RESUME_WITH_FEWER_WORKERS = Own("often memory runs out: go on with fewer workers, resume=True")
    PLAN_TO_CLEAN = Own("make it with `every_hit`, and do its leases again")
    GIVE_INDEX_PLAN = Own("give the folder that `plan_index` wrote")
    BUILD_MISSING_GROUP = Own("build it with `build_groups`, then merge again")
    REMOVE_ONE_GROUP = "remove the folder of the group, and build the group again"
    CHOOSE_LEASE = "plan.json lists the leases"
    RENAME_BY_FORMAT = "rename it to .jsonl, .json, .csv, .tsv, .parquet or .arrow"
    QUOTE_CELL = "a cell with a delimiter or line break must be quoted"
    QUOTE_CELL_OR_LEAVE_OUT = (
        "a cell with a delimiter, a quotation mark or a line break must be quoted: repair the "
        "line, or leave the file out"
    )
    LOOK_FOR_STRAY_QUOTE = "look for a stray quotation mark"
    REPAIR_JSON_LINE = "JSONL has one JSON object a line: repair the line, or leave the file out"
    DROP_DOCUMENT = "drop the document as a whole, or leave the file out"
    WAIT_FOR_SEARCH = Own("wait until `work_on` has done the other leases, and repeat the call")
    WAIT_FOR_RUN = "wait until it has ended, or choose another folder"
    GIVE_SAME_OPTIONS_OR_REMOVE = "give all calls the same plan and options, or remove the folder"
    SHARE_FOLDER_OF_RESULT = "put the result, and parts, on storage that all nodes see"
    EXCLUDE_SHARDS = "repair them, or exclude them: what is excluded is not in the result either"
    REPAIR_OR_PLAN_AGAIN = "repair them and do their leases again, or make a new plan"
    REPAIR_ROW_OR_LEAVE_OUT = "repair the row, or leave the file out"
    ONE_ITEM_A_LINE = "in JSON lines every line is one item"
    ONE_OBJECT_A_LINE = "in JSON lines every line is one whole object; is the file complete?"
    REMOVE_ONE_OR_NAME_APART = "remove one of the two, or name them apart"
    REMOVE_ONE_OF_TWO_FIELDS = "no evaluation tool writes that: remove one of the two"
    RENAME_ONE_COLUMN = "rename one"
    LEAVE_FILE_OUT = "leave the file out"
    GIVE_WET_FILES = (
        "text is read from `conversion` records: give the WET files of the crawl, or extract the "
        "text first, and leave this file out"
    )
    RETIRE_AND_ADD_SHARD = "the shard changed after it was indexed: retire it and add it again"

    # Corpora and benchmarks.
    GIVE_FILES_OF_FORMAT = "give {formats} files"
    GIVE_BENCHMARK_FILES = "formats: JSONL, JSON, CSV, TSV, Parquet, Arrow, saved datasets folders"
    PUT_LIST_UNDER = "the list is looked for under {known}"
    MAP_TO_KNOWN_PART = "targets of a mapping: {known}"
    QUESTION_WAS_MAPPED_TO_IT = "the question was mapped to it"
    CHOOSE_AMONG_FIELDS = "fields there: {fields}"

    # Folders of results.
    CHOOSE_OWN_FOLDER = "choose a folder of its own"
    CHOOSE_WRITABLE_FOLDER = "choose a folder you may write to"
    CHOOSE_EMPTY_FOLDER = "choose a new or empty folder"
    CHOOSE_ANOTHER_FOLDER = "choose another folder"
    CHOOSE_PLACE_OUTSIDE = "choose a place outside of it"
    FREE_SPACE = "free some space or choose another disk"
    CHOOSE_FOLDER_OUTSIDE_CORPUS = "its files would be taken for corpus: choose a folder outside"

    # Tokens, queries and memory.
    GIVE_UNIT_OR_TOKENIZER = "give word, char or the path of a Hugging Face tokenizer.json"
    GIVE_HUGGING_FACE_TOKENIZER = (
        "give the tokenizer.json of a Hugging Face model, as `Tokenizer.save` writes it"
    )
    TOKENIZER_LACKS_TEXT = "the tokenizer has no token for it, and none for unknown text"
    REINSTALL = "the installation is damaged: reinstall contam"
    ASK_KNOWN_VIEWS = (
        "views: verdicts, evidence, items, documents; `describe verdicts` lists the columns of one"
    )
    ASK_AS_TEXT = "ask for such columns as text: `x::varchar`"
    NAME_COLUMNS_APART = "give each a name of its own: `x as name`"
    ASK_TIME_AS_TEXT = "ask for it as text: `x::varchar`"
    PUT_SHARD_BACK = "put the shard back, or ask verdicts, evidence and items alone"
    CHOOSE_KNOWN = "known: {known}"
    CHOOSE_KNOWN_RECIPE_OR_FILE = "known: {known}; or give the path of a TOML file"
    INSTALL_KNOWN_DATASKETCH = "install datasketch 2.0.0, which draws those"
    LEAVE_OUT_FOR_ONE_PER_CORE = "leave it out for one per core"
    GIVE_MORE_MEMORY = "give {megabytes}MB or more"

    # Indexes.
    NONE_RETIRED_SEE_DOCUMENT_ID = (
        "nothing was retired; document_id in evidence.parquet is what it is called"
    )
    FINISH_BUILD_FIRST = "finish the build first"
    RESUME_BUILD = "run the same build again: it goes on where it stopped"
    REPAIR_AND_ADD_AGAIN = "repair the shard and add it again"
    ADD_AGAIN_WHEN_UNCHANGED = "add it again when nobody writes to it"
    USE_VERSION_THAT_BUILT = "use the version of contam that built the index, or build it again"
    WAIT_FOR_WRITER = "wait for it to end; readers are not held up"
    COMPARE_WITH_RECIPES = "compare with the recipes that ship"
    START_FROM_SHIPPED_RECIPE = "compare with the recipes that ship, and start from one"
    USE_KEYS_OF_RECIPE = "the keys of a recipe: {keys}"
    LEAVE_TOKENIZER_OUT = 'only unit = "tokenizer" has, as in the recipe bpe'
    PUT_TOKENIZER_BACK = "put the old file back, or build the index again"
    BUILD_WITH_MINHASH_RECIPE = (
        "build the index with a recipe that has a [minhash] table, such as standard"
    )
    USE_AS_IT_IS = "use it as it is"

    # Searches and policies.
    KEEP_BENCHMARKS_OUT_OF_CORPUS = "keep benchmarks out of the corpus folder, or name every shard"
    NAME_INDEX_ONCE = "name each index once"
    ASK_ONE_AFTER_THE_OTHER = "ask them one after the other"
    ASK_APART_OR_BUILD_ALIKE = "ask them one after the other, or build them with one recipe"
    LEAVE_POLICIES_OUT = "leave out {policies}, or bring the shard back"
    MAKE_PARTS_ALIKE = "make all parts with the same files, options and version of contam"
    MERGE_EVERY_PART_ONCE = "merge the answer of every part once"
    LEAVE_BLOCKS_OUT = Own("leave out `block_items`")
    LEAVE_OUT_BLOCKS_OR_POLICIES = Own("leave out `block_items`, or {policies}")
    LEAVE_BOTH_OUT_OR_JUDGE_WORDS = "leave both out, or judge by words"
    NAME_POLICY_ONCE = "name each policy once"
    DEFAULTS_OF_SEED_AND_MIN_RUN = "the defaults are 5 and 8"
    DEFAULT_OF_MAX_EVIDENCE = "the default is 20"
    SPLIT_BENCHMARK_OR_GIVE_MEMORY = (
        "split the benchmark and scan for each part by itself, or give the process more memory: "
        "about 4 GB for a million short questions"
    )
    USE_RUNS_THE_SCAN_SEES = "the scan sees runs from {words} words"
    SCAN_WITH_MIN_RUN = "scan with min_run {min_run}, or leave this policy out"
    SCAN_WITH_SHORTER_SEED = "scan with a seed of at most {seed}"
    NAME_BASE_POLICY = 'for example: base = "llama3-8gram"'
    CHOOSE_WHAT_IT_HAS = "it has: {known}"
    USE_ONE_IT_HAS = "it has {known}"
    GIVE_OWN_ID = "give it an id of its own"
    WRITE_AS_TOML_OR_JSON = "write it as TOML or JSON"
    GIVE_THRESHOLDS = "thresholds = {{contaminated = 0.5}}"
    CHANGE_ONLY_PARAMETERS = "n, parts, thresholds, comparison and parameters can be"
    DEFAULT_IS = "the default is {default}"
    ADD_QUESTION_TO_PARTS = 'add "question" to its parts'
    SCAN_AGAIN = "scan again"
    SCAN_AGAIN_WITH_THIS_VERSION = "scan again with this version of contam"
    USE_VERSION_OF_RESULT = "use the contam version named in its run.json, or scan again"
    CHOOSE_CLOSE_ITEM = "did you mean {close}?"
    SEE_ITEMS_TABLE = "items.parquet lists every item"

    # Labels, logs and scores.
    JOIN_BY_QUESTIONS = "are its ids those of the logs? questions join better than ids"
    ADD_BENCHMARK_COLUMN_OR_QUESTIONS = "add a column `benchmark`, or the questions"
    GIVE_THRESHOLD_AS_NUMBER = "give a number, such as 0.8"
    GIVE_ALL_QUESTIONS_OR_NONE = "give all of them the question, or leave the column out"
    USE_KNOWN_LABELS = (
        "known are contaminated, dirty, leaked, true, yes and 1; clean, false, no and 0; "
        "suspect, suspicious; not_checkable, unknown and an empty cell"
    )
    SCORES_ARE_NUMBERS = "scores are numbers"
    GIVE_SHARES = "give shares from 0 to 1, or counts; a percent is a hundredth"
    USE_KNOWN_SCORES = "scores are numbers, TRUE and FALSE, yes and no, or C and I"
    CHOOSE_AMONG_COLUMNS = "columns there: {columns}"
    TWO_VERSIONS_OR_BENCHMARKS = (
        "two versions of a benchmark, or two benchmarks without a column for it"
    )
    KEEP_ONE_LABEL = "keep one label of each item"
    USE_ONE_OF = "{known}"
    SKIP_DAMAGED_IN_AUDIT = "skip_damaged = true under [logs] goes on without such logs"
    CHOOSE_METRIC = "metrics: {known}"
    RUN_TASK_AGAIN = "run the task anew"
    NAME_ONE_POLICY_OF_VERDICTS = "name one: they hold: {known}"
    CHOOSE_POLICY_OF_VERDICTS = "they hold: {known}"
    NAME_OTHER_LOGS = "name other logs"
    LEAVE_TASK_OUT = (
        "lm-eval runs a task whole when it is given no samples of it: leave its logs out here, "
        "and the task out there"
    )
    EXPORT_ONE_VERSION = "two versions of the task: export one at a time"
    GIVE_ITEM_ONCE = "give each item once"
    ADD_QUESTION_TO_LOG = "numbers of two tools may be one off: add the question to the log"
    IDS_DIFFER = "it has ids only, and they are not the benchmark's: add the questions to it"
    LOG_OF_ANOTHER_BENCHMARK = "the log is of another benchmark, or of another version of it"
    ADD_QUESTIONS_OR_SPLIT = "add the questions to the log, or rescore one benchmark at a time"
    SCAN_THIS_VERSION = "the verdicts are of another version of the benchmark: scan this one"
    GIVE_ITS_FOLDER = "give its folder: {folder}"
    WAS_RUN_STOPPED = "was the run stopped?"
    USE_KNOWN_STATUS = "known are pass, fail and timeout, success and failed"
    TWO_DATA_SETS = "two data sets under one name"
    FILES_OF_TWO_RUNS = "the files are of two runs"
    RUN_FUNCTIONAL_CORRECTNESS = "evaluate_functional_correctness writes such rows"
    FINISH_INSPECT_RUN = "finish it with `inspect eval-retry`, or leave the log out"
    LOG_INSPECT_SAMPLES = "run without --no-log-samples; was it limited to 0?"
    FILE_FROM_TWO = "the file was put together from two"
    TAKE_ONE_AT_A_TIME = "two versions, or two tools that count differently: take one at a time"
    IS_ROW_OF_ANOTHER_FILE = "a row of another file?"
    TWO_RUNS_OR_PARTS_TWICE = "two runs in one file, or parts of one run put together twice"
    WRITE_SIMPLE_EVALS_RESULTS = (
        "let the eval write its SingleEvalResults as a table: a CSV, JSON lines or Parquet file "
        "with a row per item and the columns model, id, question, score"
    )
    WRITE_SIMPLE_EVALS_SCORES = (
        "write each SingleEvalResult's score beside its question: a CSV, JSON lines or Parquet "
        "file with a row per item and the columns model, id, question, score"
    )
    EXPORT_DEEPEVAL_CASES = (
        "export its test cases as a table: a CSV, JSON lines or Parquet file with a row per item "
        "and the columns model, id (name), question (input) and score (metricsData); a DeepEval "
        "benchmark has `benchmark.predictions.to_csv(...)`"
    )
    SEE_ROW_OF_LOG = "see which row of the log it is"
    RUN_AGAIN = "run it again"
    LOG_MATCH_OR_METRICS = "events of type match or metrics are read"
    SPLIT_FILE = "split the file"
    RUNS_OR_SCORES_TWICE = "two runs in one file, or an eval that scores a sample more than once"
    DUMP_EVAL_DETAILS = "run the evaluation again with --dump-eval-details"
    NAME_LOGS = "name files or folders of logs"
    RUN_WITH_SCORER = "run it with a scorer"
    NAME_LOG_ONCE = "name it once"
    NAME_ROWS_OF_RUN = (
        "name the rows: lm-eval writes them under --log_samples, lighteval under --save-details"
    )
    GIVE_SCORES_PER_ITEM = "rows of scores per item are needed, not only their means"
    WRITE_FILE_PER_METRIC = "write a file per metric"
    ROWS_STAND_TWICE = "the file holds rows twice"
    WRITE_TRUE_OR_FALSE = "write true or false"
    SCORES_COUNT_ONE_WAY = "scores of one metric count one way"
    GIVE_FOLDER_AS_WRITTEN = "give the folder as contam wrote it"
    CHOOSE_MODEL = "models: {known}"
    RUN_TASK_WHOLE_OR_SORTED = (
        "lm-eval numbers the documents of an unsorted --samples wrongly: run the task whole, or "
        "sorted"
    )

    # Audits.
    NAME_BENCHMARKS_APART = "name each benchmark once, or tell them apart by name or split"
    SEE_AUDIT_REPORT = "see report.md"
    CHOOSE_POLICY_OF_AUDIT = "policies: {known}"
    INSTALL_MLFLOW = "pip install 'contam[mlflow]'"
    GIVE_FOLDER_OF_AUDIT = "give the folder of an audit"
    RUN_AUDIT_AGAIN = "run the audit again"
    RESTORE_OR_REMOVE_PACK = "restore the folder, or remove it: the run is then compared with none"
    RESTORE_HISTORY = "restore both from one copy, or begin a history in another folder"
    GIVE_CLEANED_CORPUS = "name the corpus/ beside that record, whole and as it was written"
    GIVE_FILE = "give a file"
    USE_KEYS_OF_RULES = "keys: pack, [[rule]]"
    ADD_RULE = "add a [[rule]]"
    CHOOSE_CHECK = "checks: {known}"
    SEE_AUDIT_GUIDE = "docs/guides/audit.md names every key"
    CHOOSE_MODEL_OF_LOGS = "models of the logs: {known}"
    GIVE_PLAIN_NAME = "give a plain name, like Anna"
    MEND_LINE = "mend that line"
    MEND_FIRST = "mend it first"
    TAKE_PUBLISHED_PACK = "take the pack that was published, or run the audit again"
    ADD_CORPUS_TABLE = "add a [[corpus]] with paths or an index"
    ADD_BENCHMARK_TABLE = "add a [[benchmark]] with paths, or from_logs = true"
    ADD_LOGS_TABLE = "add [logs]"
    NAME_EACH_ONCE = "name each once"
    USE_KNOWN_TABLES = "tables: {known}"
    IT_IS_A_TABLE = "it is a table"
    USE_PLAIN_CORPUS_NAME = "letters, digits, dots, dashes and underscores, and not `together`"
    GIVE_PATHS_OR_INDEX = "paths are scanned, an index is asked"
    CHOOSE_CORPUS = "corpora: {known}"
    GIVE_IN_UTF8 = "give it in UTF-8"
    REVIEW_AND_WAIVE_AGAIN = "review the evidence again, and waive it anew or take the waiver out"
    WRITE_WAIVER_TABLE = "write [[waiver]]"
    RUN_AUDIT_WITHOUT_WAIVERS = "run the audit without them, read the evidence, and waive it anew"
    USE_KEYS_OF_WAIVER = "keys: {known}"
    KEEP_ONE_WAIVER = "keep one of them"
    GIVE_DAY_TO_COME = "give a day that is still to come"
    CHOOSE_DOCUMENT = "documents: {known}"
    ITEM_IS_ELSEWHERE = "an item of that id is in {places}"
    ITEM_IS_FLAGGED_BY = "it is flagged by {policies}"
    ONLY_FLAGGED_ARE_WAIVED = "only flagged items are waived"
    SEE_ITEMS_OF_AUDIT = "ids of items stand in report.html and in {verdicts}/items.parquet"
    SET_TABLE_AND_KEY = (
        'TABLE.KEY = VALUE as TOML has it: audit.seed = 7, corpus.web.text = "body", '
        'benchmark.map = {{question = "prompt"}}, model."m-1".cutoff = 2023-09-30'
    )
    # Settings.
    SEE_REFERENCE = "see docs/reference.md"
    WRITE_TABLE_ABOVE_SETTINGS = "write [{table}] above its settings"
    GIVE_AS_VARIABLE = "give it as {variable} or by {variable}_FILE"
    INSTALL_EXTRA = "pip install 'contam[{extra}]' brings them"
    NAME_MODEL_FOLDER = "pip install 'contam[meaning]', or CONTAM_MEANING_MODEL=DIR: {sha256}"
    MEASURE_THRESHOLDS = "measure them with that model on labelled pairs, and write them there"
    INSTALL_PACKAGE = "pip install {package}"
    GIVE_ROWS = "a row is a dictionary: the key `text` for a document, `question` for an item"
    COLLECT_TABLE = "give the table that its .collect() returns"
    GIVE_LIST_OF_ROWS = "give a list of the rows you mean"
    GIVE_PATHS_OR_TABLES = (
        "give paths, a list of dictionaries, or a table: Arrow, pandas, Polars, datasets"
    )
    NAME_TABLES = "give a dictionary of tables by name"

    # In the words of each interface.
    CHECK_BENCHMARK_PATH = Own("check the path; give texts as dictionaries with the key `question`")
    CHECK_PATH_OR_QUOTE_GLOB = Own("check the path; give texts as dictionaries with the key `text`")
    NAME_BENCHMARK = Own("name the file or folder of a benchmark")
    MAP_ID = Own(
        'mapping={{"id": FIELD}} names another id field, {{"id": ""}} makes ids from the content'
    )
    MAP_QUESTION = Own('mapping={{"question": FIELD}}')
    MAP_QUESTION_ANSWER = Own('name it, for example mapping={{"question": FIELD, "answer": FIELD}}')
    MAP_QUESTION_OR_COLUMN = Own(
        'name it, for example mapping={{"question": FIELD}}; without a header {{"question": "0"}}'
    )
    MAP_CHOICES = Own('a field per choice can be named: mapping={{"choices": "A+B+C+D"}}')
    MAP_FIELDS = Own("look at the first of them, or map the fields with `mapping`")
    WRITE_MAPPING = Own("write part=field, for example question=prompt,answer=solution")
    NOTHING_QUOTED = Own("nothing of the items is quoted with keep_text=False")
    NAME_TEXT_COLUMN = Own("name the column that holds the text with `text`")
    NAME_A_TEXT_COLUMN = Own("name a text column with `text`")
    NAME_COLUMN_AMONG = "name one of them, with dots for fields inside structs"
    CHECK_EXCLUDED = "a pattern is compared with names of shards, of files and of folders"
    TEXT_COLUMN_AMONG = Own("name one of them with `text`, with dots for fields inside structs")
    FETCH_CONTENTS_BY_BLOB_ID = Own(
        "fetch the contents by blob_id first, then name their column with `text`"
    )
    CHECK_SHARDS_OR_TEXT_COLUMN = Own(
        "check that the shards are complete, or name the text column with `text`"
    )
    CHOOSE_FOLDER_OR_OVERWRITE = Own("choose another folder, or replace it with overwrite=True")
    CHOOSE_NAME_OR_OVERWRITE = Own("choose another name, or overwrite=True")
    ADD_SHARDS_OR_OVERWRITE = Own(
        "add shards to it with add_shards, or build it again with overwrite=True"
    )
    FINISH_BUILD_OR_OVERWRITE = Own(
        "finish it with the call it was begun with, or begin afresh with overwrite=True"
    )
    BEGIN_AFRESH = Own("begin afresh with overwrite=True")
    NONE_RETIRED_SEE_SHARDS = Own("nothing was retired; the manifest of the index lists the shards")
    RETIRE_SHARD_FIRST = Own("retire the shard {shard} first")
    VERIFY_AND_RELOAD = Own(
        "verify the index; a service that has it open has to reload it afterwards"
    )
    RESTORE_INDEX = Own("restore the index from a copy, or build it again; verifying it tells all")
    NAME_INDEX_OR_FOLDER = Own("give its name or its folder")
    NAME_INDEX = Own("give the folder of an index")
    NAME_INDEX_HOME = Own("name one with `home` or CONTAM_HOME")
    MAKE_INDEX = Own("make one with build_index")
    LESS_MEMORY_FOR_BUILD = Own("give the build less `memory`, so that it writes smaller segments")
    UPGRADE_INDEX = Own("build it again from its corpus: upgrade_index makes a new one of {folder}")
    NAME_TOKENIZER = Own("name its tokenizer.json as `tokenizer`")
    BUILD_INDEX_OF_CORPUS = Own("build an index of its corpus instead")
    NAME_SHARDS_OR_BUILD_INDEX = Own(
        "name where they lie now with `corpus`, or build an index of the corpus as it is now"
    )
    MAKE_HASHES = Own("make the hashes with `contam hash`")
    MAKE_HASHES_BY_RECIPE = Own("make them with `contam hash` and the recipe of the index")
    ASK_POLICIES_BY_HASHES = Own("ask for one of these, or search with the text")
    LIST_POLICIES = Own("list_policies gives them")
    SHOW_POLICIES = Own("get_policy gives the known ones in full")
    SCAN_CORPUS = Own("search the corpus itself with a scan")
    LEAVE_UNIT_OUT = Own("leave out `unit`, or build an index in that unit")
    SCAN_AGAIN_AND_OVERWRITE = Own("scan again with overwrite=True")
    GIVE_RESULT_FOLDER = Own("give the folder that a scan or a query wrote")
    GIVE_RESULT_OR_LABELS = Own(
        "give the folder that a scan or a query wrote, or a file of labels (CSV, TSV, JSONL, "
        "JSON, Parquet)"
    )
    SAY_UNLISTED = Own(
        "is it the same version of the benchmark? Say what unlisted items are: "
        'unlisted="not_checkable", or "clean" where the file names every contaminated one'
    )
    SAY_UNLISTED_OR_ALLOW_UNMATCHED = Own(
        'does the file cover it? unlisted="not_checkable", or leave its logs out; '
        "allow_unmatched=True if nothing of it is contaminated"
    )
    ALLOW_UNMATCHED = Own("is it the same version of the benchmark? allow_unmatched=True goes on")
    ALLOW_UNMATCHED_TO_SCORE = Own(
        "is it the same version of the benchmark? allow_unmatched=True scores the rest"
    )
    NAME_LABEL_AND_QUESTION_COLUMNS = Own(
        'name the columns: verdict_columns={{"label": COLUMN, "id": COLUMN, "question": COLUMN}}'
    )
    NAME_LABEL_COLUMNS_OR_UNLISTED = Own(
        'name the columns: verdict_columns={{"label": COLUMN, "id": COLUMN}}; if it lists '
        'contaminated items only, say what all others are: unlisted="clean" or "not_checkable"'
    )
    GIVE_THRESHOLD = Own("say from which score on an item is contaminated: threshold=0.8")
    NAME_LABEL_SCORES = Own(
        'leave out `threshold`, or name the column of scores: verdict_columns={{"score": COLUMN}}'
    )
    LEAVE_OPTIONS_OF_LABELS = Own(
        "`threshold`, `unlisted` and `verdict_columns` are for such a file; a scan's own verdicts "
        "have their thresholds"
    )
    SAY_LABEL_COLUMN = Own(
        'if it does: verdict_columns={{"label": "{column}"}}; if all rows are contaminated '
        'items: {{"label": ""}}'
    )
    SAY_DIRECTION_OR_ADD_COLUMN = Own(
        "lower_is_better or higher_is_better with {metric}, or a column higher_is_better of true "
        "and false"
    )
    SAY_DIRECTION = Own("say it: lower_is_better or higher_is_better with {metric}")
    SAY_ONE_DIRECTION = Own("name it in lower_is_better or in higher_is_better")
    NAME_REFERENCE_BENCHMARK = Own("references are {{BENCHMARK: REFERENCE}}, as the logs name them")
    NAME_QUESTION_COLUMN = Own(
        "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a column "
        'for the question (columns={{"question": COLUMN}})'
    )
    NAME_SCORE_COLUMNS = Own(
        'name it: columns={{"score": COLUMN, "id": COLUMN}} (or "models": "A+B" for a column per '
        "model)"
    )
    NAME_ID_COLUMN = Own('name one: columns={{"id": COLUMN}}')
    ADD_REPEAT_COLUMN = Own('repeats need a column that numbers them: columns={{"repeat": COLUMN}}')
    TAKE_SCORES_AS_THEY_ARE = Own(
        "percentages want dividing by 100; other scores are taken as they are under "
        'columns={{"score": "{column}"}}'
    )
    NAME_MAIN_METRIC = Own("metrics: '{benchmark}={metric}'")
    ALLOW_PARTIAL = Own(
        "is the log whole? it reports no number to check that by; allow_partial=True scores what "
        "is there"
    )
    SEPARATE_RUNS = Own("give one of them, or keep the runs apart with separate_runs=True")
    SEE_LOGS = Own("read_logs says why")
    SEE_TRACKING_URI = Own("see `tracking_uri`")
    GIVE_CORPUS_OR_INDEX = Own("give a corpus, or an index")
    GIVE_BENCHMARK_OR_LOGS = Own("give a benchmark, or logs")
    GIVE_PLAN_FOLDER = Own("give the folder that `write_plan` wrote")
    GIVE_PARTS_FOLDER = Own("give the folder that `work_on` wrote")
    GIVE_AUDIT_FOLDER = Own("give the folder that an audit wrote")
    WRITE_BY_REVIEW = Own("a review writes it")
    WRITE_BY_JUDGE = Own("asking a judge writes it")
    NAME_PLACES_OF_PROMPT = "a prompt has {{question}} and {{document}} where the texts go"
    WRITE_BY_AUDIT_INIT = Own("contam.audit.init writes one")
    WRITE_BY_AUDIT_WAIVE = Own("waiving an item writes one")
    GIVE_OUT = Own("give `out`")
    SEE_SETTINGS = Own("docs/reference.md lists the settings")
    SKIP_DAMAGED = Own("skip_damaged=True goes on without such logs")
    SAY_WHICH_ITEM = Own("say which with `benchmark` or `split`")
    ASK_KEPT_POLICIES = Own(
        "ask for {policies} alone, or search the corpus itself with a scan, or build an index "
        "that keeps it ({keeps})"
    )
    SCAN_OR_BUILD_INDEX = Own(
        "search the corpus itself with a scan, or build an index that keeps it ({keeps})"
    )

    def __call__(self, **facts: object) -> Advice:
        """The remedy with the facts that its sentence names."""
        return Advice(self, facts)
