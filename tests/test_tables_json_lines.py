"""JSON lines: what a row becomes is its own affair, whatever the other rows hold."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from rankad.columns.words import read_words
from rankad.io.table_files import TableError, open_table

# Polars cannot read it, so that the whole batch is parsed by Python's json.
ODD_ROW = b'{"odd": ' + b"9" * 400 + b"}\n"


def whole(path: Path, data: bytes) -> pl.DataFrame:
    path.write_bytes(data)
    with open_table(path) as table:
        return pl.concat(list(table))


REPEATED = {
    "plain": b'{"a": 1, "a": 2}',
    "far apart": b'{"a": 1, "b": "x", "a": 1}',
    "spaced": b'{"a" : 1, "a"\t: 2}',
    "with another key missing": b'{"a": 1, "a": 2, "c": 3}',
    "second is null": b'{"a": 1, "b": 2, "a": null}',
    "first is null": b'{"a": null, "b": 2, "a": 1}',
    "escaped": b'{"a": 1, "\\u0061": 2}',
    "in a nested object": b'{"a": {"x": 1, "x": 2}}',
    "empty name": b'{"a": 1, "": 1, "": 2}',
    "name with a quote": b'{"a\\"": 1, "a\\"": 2}',
}


@pytest.mark.parametrize("odd", [b"", ODD_ROW], ids=["alone", "beside an odd row"])
@pytest.mark.parametrize("what", REPEATED)
def test_a_key_that_comes_twice_is_an_error_in_every_batch(tmp_path: Path, what: str, odd: bytes) -> None:
    usual = b'{"a": 1, "b": 2, "c": 3}\n'
    with pytest.raises(TableError, match=r"t\.jsonl, line 3: the key '.*' comes twice in an object\. Corr"):
        whole(tmp_path / "t.jsonl", usual * 2 + REPEATED[what] + b"\n" + usual + odd)


def test_a_key_that_comes_twice_is_found_in_wide_rows(tmp_path: Path) -> None:
    row = json.dumps({f"c{at}": None if at % 3 else at for at in range(200)}).encode()
    assert whole(tmp_path / "t.jsonl", row + b"\n").width == 200
    with pytest.raises(TableError, match="line 2: the key 'c7' comes twice"):
        whole(tmp_path / "t.jsonl", row + b"\n" + row[:-1] + b', "c7": 7}\n')


def test_what_looks_like_a_key_twice_is_none(tmp_path: Path) -> None:
    rows = [
        {"a": '"a":', "b": "a"},
        {"a": "b", "b": None},
        {"a": '"b":"b":', "b": " : "},
        {"a": "\\", "b": "a"},
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert whole(tmp_path / "t.jsonl", data).to_dicts() == rows


def value(rng: random.Random) -> str:
    """A JSON value, as text."""
    number = rng.choice([rng.uniform(-9, 9), 10.0 ** rng.randint(-30, 30), rng.randint(-9, 9), rng.random()])
    return rng.choice(
        [
            json.dumps(number),
            f"{rng.randint(1, 9)}.{rng.randint(0, 99)}0",
            f"{rng.randint(1, 9)}e{rng.randint(-9, 30)}",
            str(rng.randrange(10 ** rng.randint(1, 15))),
            rng.choice(["true", "false", "null", "-0", "-0.0", "1E5", "1e400"]),
            json.dumps(
                rng.choice(["", "x", "12", "1.50", "true", "null", "[1]", "{", "é", "NaN", "inf", "-"])
            ),
            rng.choice(["[]", "{}", '["é", 1.50]', '{"a": [null, 1e5]}', '[true, "x"]']),
        ]
    )


def words(frame: pl.DataFrame) -> list[str | None]:
    """What a column of categories makes of the cells."""
    return read_words(frame["a"]).to_list()


@pytest.mark.parametrize("seed", range(60))
def test_a_row_is_the_same_whatever_stands_beside_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    values = [value(rng) for _ in range(rng.randint(1, 4))]
    rows = [f'{{"a": {each}, "b": 1}}\n'.encode() for each in values]
    alone = [words(whole(tmp_path / "t.jsonl", row))[0] for row in rows]
    assert words(whole(tmp_path / "t.jsonl", b"".join(rows))) == alone
    beside = whole(tmp_path / "t.jsonl", b"".join(rows) + b'{"a": "x"}\n{"a": 2.5}\n{"a": [true]}\n')
    assert words(beside) == [*alone, "x", "2.5", "[true]"]
    odd = whole(tmp_path / "t.jsonl", b"".join(rows) + ODD_ROW)
    assert words(odd) == [*alone, None]


def test_numbers_are_those_of_python_in_every_batch(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [
        f"{rng.randrange(10 ** rng.randint(1, 25))}.{rng.randrange(10 ** rng.randint(1, 25))}"
        + rng.choice(["", f"e{rng.randint(-330, 300)}"])
        for _ in range(3000)
    ]
    rows = "".join(f'{{"a": {text}}}\n' for text in texts).encode()
    expected = [json.loads(text) for text in texts]
    assert whole(tmp_path / "t.jsonl", rows)["a"].to_list() == expected
    assert whole(tmp_path / "t.jsonl", rows + ODD_ROW)["a"].to_list() == [*expected, None]


HALVES = {
    "high half": (rb'{"a": "x\ud800y", "b": "z"}', "ud800"),
    "low half": (rb'{"a": "\uDC01"}', "udc01"),
    "halves the wrong way about": (rb'{"a": "\ude00\ud83d"}', "ude00"),
    "high half before a pair": (rb'{"a": "\ud83d\ud83d\ude00"}', "ud83d"),
    "low half after an escaped backslash": (rb'{"a": "\\ud83d\ude00"}', "ude00"),
    "in a key": (rb'{"a": 1, "\ud800": 2}', "ud800"),
    "in a list": (rb'{"a": ["\ud800"]}', "ud800"),
    "in a nested key": (rb'{"a": {"\ud800": 2}}', "ud800"),
}


@pytest.mark.parametrize("odd", [b"", ODD_ROW], ids=["alone", "beside an odd row"])
@pytest.mark.parametrize("what", HALVES)
def test_half_of_a_surrogate_pair_is_an_error_in_every_batch(tmp_path: Path, what: str, odd: bytes) -> None:
    row, half = HALVES[what]
    message = rf"t\.jsonl, line 2: \\{half} is half of a surrogate pair, not a character\. Correct or remove"
    with pytest.raises(TableError, match=message):
        whole(tmp_path / "t.jsonl", b'{"a": "x"}\n' + row + b"\n" + odd)


@pytest.mark.parametrize("odd", [b"", ODD_ROW], ids=["alone", "beside an odd row"])
def test_pairs_and_escaped_backslashes_are_text(tmp_path: Path, odd: bytes) -> None:
    rows = [rb'"\ud83d\ude00"', rb'"\\ud800"', rb'"\\\uD83D\uDE00"', rb'"x\u00e9\ud83d\ude00y"']
    data = b"".join(b'{"a": ' + row + b"}\n" for row in rows)
    found = whole(tmp_path / "t.jsonl", data + odd)["a"].to_list()[: len(rows)]
    assert found == ["\U0001f600", "\\ud800", "\\\U0001f600", "xé\U0001f600y"]


@pytest.mark.parametrize("odd", [b"", ODD_ROW], ids=["alone", "beside an odd row"])
@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_rows_with_keys_of_their_own_do_not_fill_the_memory(tmp_path: Path, name: str, odd: bytes) -> None:
    rows = odd.splitlines() + [b'{"k%d": 1}' % at for at in range(9_000)]
    data = b"\n".join(rows) if name == "t.jsonl" else b"[" + b",".join(rows) + b"]"
    with pytest.raises(
        TableError, match=r"t\.json.*: 9,00\d rows have [49],00\d different keys or more, too m"
    ):
        whole(tmp_path / name, data)


def test_rows_with_keys_of_their_own_are_told_in_later_batches(tmp_path: Path) -> None:
    usual = b'{"a": 1}\n' * 10_000
    (tmp_path / "t.jsonl").write_bytes(usual + b"".join(b'{"k%d": 1}\n' % at for at in range(9_000)))
    with open_table(tmp_path / "t.jsonl", batch_bytes=len(usual)) as table:
        assert next(table).height == 10_000
        with pytest.raises(TableError, match=r"from line 10001 on: .* different keys"):
            list(table)


@pytest.mark.parametrize("seed", range(20))
def test_what_columns_are_does_not_depend_on_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    # Columns of few kinds of values, some of them missing here and there.
    kinds = {name: [value(rng) for _ in range(rng.randint(1, 3))] + ["null"] for name in "abcde"}
    rows = []
    for at in range(12):
        cells = [f'"{name}": {rng.choice(some)}' for name, some in kinds.items() if rng.random() < 0.8]
        rows.append("{" + ", ".join([*cells, f'"f": {at}']) + "}\n")
    data = "".join(rows).encode()
    expected = whole(tmp_path / "t.jsonl", data)
    monkeypatch.setattr("rankad.io.json_lines._PIECE_LINES", rng.randint(1, 5))
    found = whole(tmp_path / "t.jsonl", data)
    assert found.equals(expected)
    assert found.schema == expected.schema
