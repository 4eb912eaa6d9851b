"""Whatever comes in, a parser of ours gives a value or its own refusal, and what it gives is true."""

from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st

from contam.config import read_settings
from contam.errors import ConfigError
from contam.server.auth import KeyStore, refuse_other_sites, refuse_others
from contam.server.jobs.upload import safe_name
from contam.server.page import check_of
from contam.server.problems import RequestError
from tests.server.test_page import sent


def attempt(refusal, call):
    """What a call gives, and the refusal that it raises instead: one of the two is None."""
    try:
        return call(), None
    except refusal as error:
        return None, error


def one_of_these(*pieces, most=12):
    """Texts put together of what a parser looks for."""
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


@given(one_of_these("/", ".", "..", "a", "-", "\\", "\0", "ä", " ", "~", "a.json"))
def test_a_name_stays_below_its_folder_or_is_refused(given_name):
    name, refusal = attempt(RequestError, lambda: safe_name(given_name))
    if refusal:
        assert refusal.status == 422
        return
    steps = name.split("/")
    assert not {"", ".", ".."} & set(steps)
    assert not any(step.startswith(".") for step in steps)
    assert name.isascii()


authority = one_of_these(
    "http://", "[", "]", "::1", "127.0.0.1", ":", "/", "@", "%", "ÿ", "localhost", "0", "?"
)


@given(authority, authority)
def test_who_is_local_and_which_page_sent_a_form_can_always_be_told(host, origin):
    headers = [(b"host", host.encode("latin-1")), (b"origin", origin.encode("latin-1"))]
    scope = {"method": "POST", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1)}
    scope["headers"] = headers
    for refuse in (refuse_others, refuse_other_sites):
        _, refusal = attempt(RequestError, lambda refuse=refuse: refuse(scope))
        if refusal:
            assert refusal.status == 403
        else:
            assert host in origin or not origin


# -- forms ----------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(words, words, st.lists(words, min_size=1, max_size=3))
def test_what_was_typed_into_the_form_is_what_is_asked(question, passage, indexes):
    fields = [("index", index) for index in indexes] + [
        ("policy", "contam"),
        ("question", question),
    ]
    body = "&".join(f"{name}={quote_plus(one)}" for name, one in [*fields, ("passage", passage)])
    asked = check_of(sent(body.encode()), context=0)
    typed = [one.replace("\r\n", "\n").replace("\r", "\n") for one in (question, passage)]
    assert [asked.items[0].question, asked.items[0].passage] == typed
    assert asked.index == [index.replace("\r\n", "\n").replace("\r", "\n") for index in indexes]


# -- files ---------------------------------------------------------------------------------------


@given(
    one_of_these(
        "[serve]", "\n", "port", "index", "host", " = ", "1", '"a"', "[", "]", "{", "}", "true", "nan", "inf",
        "1e400", "\0", "serve", ",", "deadline_s", "9" * 30,
    )
)  # fmt: skip
def test_any_settings_file_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "settings.toml"
    path.write_text(text, "utf-8")
    _, refusal = attempt(ConfigError, lambda: read_settings(path))
    assert refusal is None or refusal.message


@given(st.integers(0, 2000), st.binary(max_size=3))
def test_any_file_of_keys_is_read_or_refused_and_never_makes_a_key_wider(tmp_path_factory, at, new):
    store = KeyStore(tmp_path_factory.mktemp("keys"))
    made = [store.add(f"key {number}", ["check"])[0] for number in range(3)]
    whole = store.path.read_bytes()
    at %= len(whole)
    store.path.write_bytes(whole[:at] + new + whole[at + len(new) :] if new else whole[:at])
    found, refusal = attempt(ConfigError, store.all)
    assert refusal is not None or all(key.scopes == {"check"} for key in found.values())
    assert refusal is not None or len(found) == len(made)
