"""Names and values of the user's table on the screen and in the report: as they are, and harmless."""

import json
import shlex
import unicodedata
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from cli_cases import QUICK, call
from modelfile_cases import with_header
from rankad import RankAD, TableDetector
from rankad.cli.explain import _moves
from rankad.explanations.explainer import Change, Move
from rankad.explanations.sentences import oddity
from rankad.tables import StrangeCell

# Words that rankad has words of its own for, separators of its own sentences, and signs that it rewrites.
POWER, COLON, MINUS = "nominal_power", "mode: nominal", "a\N{MINUS SIGN}b"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)

    def table(n):
        return pl.DataFrame(
            {
                "nominal: id": [f"nominal {at}" for at in range(n)],
                POWER: rng.normal(size=n),
                COLON: rng.choice([MINUS, "nominal"], size=n),
                "dropped: nominal": "x",
            }
        )

    detector = TableDetector(RankAD(0.05, **QUICK), ids=["nominal: id"], drop=["dropped: nominal"])
    detector.fit(table(200)).save(folder / "m.rankad")
    new = table(10)
    new[3, COLON], new[4, POWER] = "nominal_new", 99.0
    new.write_csv(folder / "new.csv")
    return folder


def test_what_is_strange_is_said_with_the_names_of_the_table():
    odd = StrangeCell(0, POWER, "not among the categories of nominal rows", "nominal")
    assert oddity(odd) == "nominal_power nominal: not among the categories of normal rows"


def test_no_command_rewrites_names_or_values(files, capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "300")
        said = call(capsys, "explain", files / "new.csv", "--model", files / "m.rankad", "--top", 2)
        assert "mode: nominal nominal_new: not among the categories of normal rows." in said.out
        assert "(nominal 3)" in said.out
        assert "nominal_power" in said.out
        assert "normal_" not in said.out
        said = call(capsys, "inspect", files / "m.rankad")
        table = [line.split("  ") for line in said.out.splitlines()]
        firsts = [next((part.strip() for part in line if part.strip()), "") for line in table]
        assert {POWER, COLON, "nominal: id", "dropped: nominal"} <= set(firsts)


def test_a_change_keeps_the_signs_of_categories():
    change = Change((Move("a", MINUS, "c"), Move("b", -1.25, 2)), 0.5, 0.0)
    assert _moves(change) == f"a {MINUS} -> c, b -1.25 -> 2"


def test_errors_keep_the_blanks_of_names(files, capsys, tmp_path):
    pl.DataFrame({"two  blanks": range(9), "p_value": range(9)}).write_csv(tmp_path / "t.csv")
    said = call(capsys, "fit", tmp_path / "t.csv", "--model", tmp_path / "m", "--id", "three   blanks")
    assert said.status != 0
    assert "three   blanks" in said.err
    assert "two  blanks" in said.err
    assert said.err.count("\n") == 1


# An override, an isolate that is never closed, an end without a beginning, text from right to left, escapes.
ODD_NAMES = ["a\u202eb", "c\u2067d", "e\u2069f", "\u05d0\u05d1\u05d2", "\x1b[31mred\x9b"]
DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067"


class Texts(HTMLParser):
    """Every text and every attribute of a page, but for its script and style."""

    def __init__(self):
        super().__init__()
        self.found, self._skip = [], False

    def handle_starttag(self, tag, attrs):
        self._skip = tag in ("script", "style")
        self.found += [value for _, value in attrs if value]

    def handle_endtag(self, tag):
        self._skip = False

    def handle_data(self, data):
        if not self._skip:
            self.found.append(data)


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("directions")
    rng = np.random.default_rng(1)
    number, *categories = ODD_NAMES

    def table(n):
        columns = {name: rng.choice(ODD_NAMES, size=n) for name in categories}
        return pl.DataFrame({"id": rng.choice(ODD_NAMES, size=n), number: rng.normal(size=n), **columns})

    TableDetector(RankAD(0.05, **QUICK), ids=["id"]).fit(table(200)).save(folder / "m.rankad")
    new = table(20)
    new[3, "c\u2067d"], new[4, number], new[5, "\u05d0\u05d1\u05d2"] = "\u05d3\u2069\u202e", 99.0, "\u202e"
    new.write_csv(folder / "n\u202e.csv")
    return folder


def test_the_report_lets_no_text_turn_the_direction_of_others(odd_files, capsys, tmp_path):
    arguments = ["report", odd_files / "n\u202e.csv", "--model", odd_files / "m.rankad"]
    assert call(capsys, *arguments, "--out", tmp_path / "r.html").status == 0
    page = Texts()
    page.feed((tmp_path / "r.html").read_text("utf-8"))
    assert any("\u05d0" in text for text in page.found)
    assert any("a\ufffdb" in text for text in page.found)
    for text in page.found:
        assert not set(text) & set(DIRECTIONS), text
        depth = 0
        for character in text:
            depth += (character == "\u2068") - (character == "\u2069")
            assert depth in (0, 1), text
            if unicodedata.bidirectional(character) in ("R", "AL", "AN"):
                assert depth == 1 or ": a category" in text, text
        assert depth == 0, text


@pytest.mark.parametrize("command", ["inspect", "explain", "score", "fit"])
@pytest.mark.parametrize("as_json", [False, True])
def test_the_screen_shows_no_character_that_a_terminal_obeys(
    odd_files, capsys, tmp_path, monkeypatch, command, as_json
):
    import rankad

    monkeypatch.setattr(rankad, "RankAD", lambda alpha=0.05, **_: RankAD(alpha, **QUICK))
    table, model = odd_files / "n\u202e.csv", odd_files / "m.rankad"
    arguments = {
        "inspect": [model],
        "explain": [table, "--model", model],
        "score": [table, "--model", model, "--out", tmp_path / "o\u202e.csv"],
        "fit": [table, "--model", tmp_path / "o\u202e", "--id", "id"],
    }[command]
    said = call(capsys, command, *arguments, *["--json"] * as_json)
    assert said.status == 0, said.err
    assert (said.out + said.err).replace("\n", "").isprintable()
    if as_json and command == "explain":
        assert "\u05d3\u2069\u202e" in [
            one["value"] for each in json.loads(said.out) for one in each["strange"]
        ]


def test_a_forged_model_cannot_send_escapes_to_the_terminal(odd_files, capsys, tmp_path):
    def edit(header):
        header["origin"]["versions"]["rankad"] = "\x1b[2J\u202e"
        header["notes"] = ["\x1b]0;title\x07"]

    forged = tmp_path / "m.rankad"
    forged.write_bytes(with_header((odd_files / "m.rankad").read_bytes(), edit))
    said = call(capsys, "inspect", forged)
    assert said.status == 0
    assert said.out.replace("\n", "").isprintable()


def test_the_commands_proposed_next_can_be_pasted(capsys, tmp_path):
    rng = np.random.default_rng(0)
    table, model = tmp_path / "Mai 2024.csv", tmp_path / "my model.rankad"
    cells = {"kühl": rng.normal(size=60), "ort": rng.choice(["Süd", "Nord"], size=60)}
    table.write_bytes(pl.DataFrame(cells).write_csv(separator=";").encode("latin-1"))
    read = ["--encoding", "latin-1"]
    learned = call(capsys, "fit", table, "--model", model, *read)
    assert learned.out.strip().endswith(f"--model {shlex.quote(str(model))} --encoding latin-1")
    options = ["--out", tmp_path / "scored.csv", "--alpha", "0.2"]
    scored = call(capsys, "score", table, "--model", model, *read, *options)
    command = scored.out.rpartition("Next: rankad ")[2]
    assert call(capsys, *shlex.split(command)).status == 0
    assert "--alpha 0.2" in command
