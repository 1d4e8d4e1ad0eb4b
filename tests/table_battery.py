"""Small tables as people have them, made by code, with what each column is.

`TABLES` has a generator for each. A column's answer is its kind, and "!" after it where nobody could be sure,
so that a warning must name it. Where there is no "!", a warning is allowed too; silence is allowed only where
the column is taken for what it is.
"""

from __future__ import annotations

import datetime
import random
import string
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

N = 240


class Column(NamedTuple):
    """Cells, and what they are: "number", "category", "time", "id", "text" or "empty".

    Numbers and times may come with what the first cell stands for.
    """

    cells: Any
    kind: str
    first: Any = None


class Table(NamedTuple):
    """Columns by name, as of a file without types such as CSV, or of one with types."""

    columns: dict[str, Column]
    typed: bool = False

    def frame(self) -> pl.DataFrame:
        made = pl.DataFrame({name: pl.Series(name, column.cells) for name, column in self.columns.items()})
        return made if self.typed else made.cast(pl.String)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {}


def table(make: Callable[[np.random.Generator], Table]) -> Callable[[np.random.Generator], Table]:
    TABLES[make.__name__] = make
    return make


def tables(seed: int) -> list[tuple[str, Table]]:
    return [(name, make(np.random.default_rng([seed, at]))) for at, (name, make) in enumerate(TABLES.items())]


def moments(rng, days=400, n=N):
    """Draw times in order, over so many days."""
    seconds = np.sort(rng.choice(days * 86_400, size=n, replace=False))
    begin = datetime.datetime(2023, 2, 3)
    return [begin + datetime.timedelta(seconds=int(each)) for each in seconds]


def midnight(time):
    return time.replace(hour=0, minute=0, second=0)


def floats(rng, mean=70.0, spread=5.0, n=N):
    return np.round(rng.normal(mean, spread, size=n), 2).tolist()


def one(cells, kind, first=None, *, typed=False, **others):
    return Table({"c": Column(cells, kind, first), **others}, typed)


def letters(rng, n=N):
    return rng.choice(list(string.ascii_lowercase), size=(n, 2))


def comma(value, digits=1):
    return f"{value:.{digits}f}".replace(".", ",")


def thousands(value, mark, decimal="."):
    return f"{value:,.2f}".replace(",", "#").replace(".", decimal).replace("#", mark)


# ------------------------------------------------------------------------------ whole tables, as in the wild


@table
def sensor_log(rng):
    speed, vibration = floats(rng), np.abs(rng.normal(1.5, 0.4, size=N)).tolist()
    status = rng.choice(["ok", "warm"], p=[0.9, 0.1], size=N).tolist()
    times = moments(rng)
    return Table(
        {
            "zeit": Column([f"{t:%d.%m.%Y %H:%M}" for t in times], "time", times[0].replace(second=0)),
            "speed": Column([comma(v, 2) for v in speed], "number", speed[0]),
            "vibration": Column([comma(v, 3) for v in vibration], "number", round(vibration[0], 3)),
            "status": Column(status, "category"),
        }
    )


@table
def card_transactions(rng):
    amounts = np.round(np.exp(rng.normal(3, 1, size=N)), 2).tolist()
    return Table(
        {
            "tx_id": Column(list(range(100_000, 100_000 + N)), "id!"),
            "epoch": Column([int(t.timestamp()) for t in moments(rng)], "time!"),
            "amount": Column(amounts, "number", amounts[0]),
            "zip": Column(rng.choice(["01067", "80331", "10115", "20095"], size=N).tolist(), "category"),
            "mcc": Column(rng.choice([5411, 5812, 4111, 5999], size=N).tolist(), "category!"),
            "card": Column([f"{x:016x}" for x in rng.integers(0, 2**60, size=N)], "id!"),
        },
        typed=True,
    )


@table
def web_log(rng):
    times = moments(rng, days=30)
    ips = [".".join(map(str, rng.integers(1, 255, size=4))) for _ in range(N)]
    agents = [f"Agent {rng.integers(10**6)} like no other" for _ in range(N)]
    return Table(
        {
            "time": Column([f"{t:%d/%b/%Y:%H:%M:%S} +0000" for t in times], "time", times[0]),
            "ip": Column(ips, "id!"),
            "method": Column(rng.choice(["GET", "POST"], size=N).tolist(), "category"),
            "status": Column(rng.choice([200, 301, 404, 500], size=N).tolist(), "category!"),
            "bytes": Column(rng.integers(200, 90_000, size=N).tolist(), "number"),
            "agent": Column(agents, "text!"),
        },
        typed=True,
    )


@table
def german_invoice(rng):
    sums = rng.uniform(1, 9_000, size=N).round(2).tolist()
    whole = [f"{v // 1000}.{v % 1000:03d}" for v in rng.integers(1_000, 9_999, size=N)]
    return Table(
        {
            "betrag": Column([thousands(v, ".", ",") for v in sums], "number", sums[0]),
            "menge": Column(whole, "number!", float(whole[0].replace(".", ""))),
        }
    )


# ------------------------------------------------------------------------------ numbers


@table
def plain_floats(rng):
    return one(cells := floats(rng), "number", cells[0])


@table
def plain_integers(rng):
    return one(cells := rng.poisson(50, size=N).tolist(), "number", cells[0])


@table
def decimal_commas(rng):
    values = floats(rng)
    return one([comma(v) for v in values], "number", round(values[0], 1))


@table
def thousands_with_commas(rng):
    values = rng.uniform(10, 2e6, size=N).round(2).tolist()
    return one([f"{v:,.2f}" for v in values], "number", values[0])


@table
def commas_that_could_be_either(rng):
    return one([f"{v // 1000},{v % 1000:03d}" for v in rng.integers(10_000, 999_999, size=N)], "number!")


@table
def swiss_thousands(rng):
    values = rng.uniform(10, 2e6, size=N).round(2).tolist()
    return one([thousands(v, "'") for v in values], "number", values[0])


@table
def french_thousands(rng):
    values = rng.uniform(1e4, 2e6, size=N).round(2).tolist()
    return one([thousands(v, "\N{NARROW NO-BREAK SPACE}", ",") for v in values], "number", values[0])


@table
def per_cent(rng):
    values = floats(rng)
    return one([f"{v:.1f}%" for v in values], "number", round(values[0], 1))


@table
def millimetres_per_second(rng):
    values = floats(rng)
    return one([f"{v:.1f} mm/s" for v in values], "number", round(values[0], 1))


@table
def an_unknown_unit(rng):
    return one([f"{v:.1f} zorks" for v in floats(rng)], "number!")


@table
def a_unit_in_some_cells(rng):
    return one([f"{v:.1f} V" if at % 3 else f"{v:.1f}" for at, v in enumerate(floats(rng))], "number!")


@table
def two_units(rng):
    return one(
        [f"{v:.1f} kWh" if at % 5 else f"{v / 1e3:.4f} MWh" for at, v in enumerate(floats(rng))], "number!"
    )


@table
def euros(rng):
    values = floats(rng)
    return one([f"€ {abs(v):.2f}" for v in values], "number", abs(values[0]))


@table
def dollars_below_zero(rng):
    values = rng.normal(0, 50, size=N).round(2).tolist()
    return one([f"-${-v:.2f}" if v < 0 else f"${v:.2f}" for v in values], "number", values[0])


@table
def in_parentheses(rng):
    values = rng.normal(0, 50, size=N).round(2).tolist()
    return one([f"({-v:.2f})" if v < 0 else f"{v:.2f}" for v in values], "number!", values[0])


@table
def minus_at_the_end(rng):
    values = rng.normal(0, 50, size=N).round(2).tolist()
    return one([f"{-v:.2f}-" if v < 0 else f"{v:.2f}" for v in values], "number!", values[0])


@table
def unicode_minus(rng):
    values = rng.normal(0, 50, size=N).round(2).tolist()
    return one([f"{v:.2f}".replace("-", "\N{MINUS SIGN}") for v in values], "number", values[0])


@table
def scientific(rng):
    cells = [f"{v:.3e}" for v in np.exp(rng.normal(0, 9, size=N))]
    return one(cells, "number", float(cells[0]))


@table
def one_error(rng):
    cells = list(map(str, floats(rng)))
    cells[77] = "ERR"
    return one(cells, "number!", float(cells[0]))


@table
def a_few_words(rng):
    cells = [
        str(v) if rng.random() > 0.05 else str(rng.choice(["off", "n.a.", "-", "??"])) for v in floats(rng)
    ]
    return one(["70.5", *cells[1:]], "number!", 70.5)


@table
def error_among_decimal_commas(rng):
    cells = [comma(v) for v in floats(rng)]
    cells[3] = "#REF!"
    return one(cells, "number!")


@table
def commas_and_points_mixed(rng):
    return one([comma(v, 2) if at % 4 else f"{v:.2f}" for at, v in enumerate(floats(rng))], "number!")


@table
def points_between_thousands(rng):
    values = rng.integers(900, 1_100, size=N)
    cells = [f"{v:,}".replace(",", ".") for v in [1_050, *values[1:]]]
    return one(cells, "number!", 1050.0, other=Column(floats(rng), "number"))


@table
def points_between_thousands_and_an_error(rng):
    cells = [f"{v:,}".replace(",", ".") for v in [1_050, *rng.integers(2, 20_000, size=N - 2)]]
    return one([*cells, "ERR"], "number!", 1050.0)


@table
def a_few_commas_among_points(rng):
    cells = [f"{v:.4f}" if at % 10 else comma(v, 3) for at, v in enumerate(rng.normal(5, 0.3, size=N))]
    return one(["5.25", *cells[1:]], "number!", 5.25)


@table
def a_few_points_among_commas(rng):
    cells = [comma(v, 4) if at % 10 else f"{v:.3f}" for at, v in enumerate(rng.normal(5, 0.3, size=N))]
    return one(["5,25", *cells[1:]], "number!", 5.25)


@table
def some_points_among_many_commas(rng):
    cells = [f"{v:.4f}" if at % 10 == 0 else comma(v, 3) for at, v in enumerate(rng.normal(5, 0.3, size=N))]
    return one(["5,125", *cells[1:]], "number!", 5.125)


@table
def decimals_below_a_thousand_only(rng):
    values = np.abs(rng.normal(5_000, 3_000, size=N - 2))
    cells = [f"{v:.1f}" if v < 1000 else f"{v:,.0f}" for v in values]
    return one(["5,123", "812.5", *cells], "number!", 5123.0)


@table
def two_ways_to_write_thousands(rng):
    values = rng.uniform(5_000, 6_000, size=N)
    return one([f"{v:,.2f}" if at % 2 else thousands(v, ".", ",") for at, v in enumerate(values)], "number!")


@table
def missing_words(rng):
    cells = [str(v) if rng.random() > 0.3 else str(rng.choice(["NA", "", "null"])) for v in floats(rng)]
    return one(["71.25", *cells[1:]], "number", 71.25)


@table
def mostly_empty(rng):
    return one([v if at % 40 == 0 else None for at, v in enumerate(floats(rng))], "number")


@table
def nothing_at_all(rng):
    return one([None] * N, "empty", other=Column(floats(rng), "number"))


@table
def a_constant(rng):
    return one([7] * N, "number", 7.0)


@table
def zeros_and_ones(rng):
    return one(rng.integers(0, 2, size=N).tolist(), "number")


@table
def grades(rng):
    return one(rng.integers(1, 7, size=N).tolist(), "number")


@table
def decimals_typed_as_text(rng):
    return one([f"{v:.2f}" for v in floats(rng)], "number!", typed=True)


# ------------------------------------------------------------------------------ ids and counters


@table
def running_number(rng):
    return one(list(range(1, N + 1)), "id!", other=Column(floats(rng), "number"))


@table
def running_number_shuffled(rng):
    return one(rng.permutation(N).tolist(), "id!", other=Column(floats(rng), "number"))


@table
def order_numbers_that_repeat(rng):
    return one(
        np.sort(rng.integers(5_000, 5_000 + 2 * N, size=N)).tolist(),
        "id!",
        other=Column(floats(rng), "number"),
    )


@table
def seconds_since_the_start(rng):
    return one([round(0.1 * at, 1) for at in range(N)], "id!", other=Column(floats(rng), "number"))


@table
def odometer(rng):
    return one(np.cumsum(rng.integers(1, 90, size=N)).tolist(), "id!", other=Column(floats(rng), "number"))


@table
def sorted_by_a_measurement(rng):
    return one(np.sort(np.exp(rng.normal(0, 2, size=N))).tolist(), "number!")


@table
def account_numbers(rng):
    return one(rng.choice(9 * 10**9, size=N, replace=False) + 10**9, "number!")


@table
def invoice_names(rng):
    return one([f"INV-{at:06d}" for at in range(N)], "id!", other=Column(floats(rng), "number"))


@table
def uuids(rng):
    words = random.Random(int(rng.integers(2**31)))
    made = ["".join(words.choices("0123456789abcdef", k=32)) for _ in range(N)]
    return one(made, "id!", other=Column(floats(rng), "number"))


@table
def zero_padded_counter(rng):
    return one([f"{at:05d}" for at in range(N)], "id!", other=Column(floats(rng), "number"))


# ------------------------------------------------------------------------------ codes and categories


@table
def http_status(rng):
    return one(rng.choice([200, 201, 304, 404, 500], size=N).tolist(), "category!")


@table
def zip_codes(rng):
    return one(rng.choice(["01067", "04109", "80331"], size=N).tolist(), "category!")


@table
def zip_codes_typed(rng):
    return one(rng.choice(["10115", "20095", "80331"], size=N).tolist(), "category!", typed=True)


@table
def versions(rng):
    return one(rng.choice(["1.2.3", "1.10.0", "2.0.1"], size=N).tolist(), "category")


@table
def versions_of_two_parts(rng):
    return one(rng.choice(["1.2", "1.10", "2.0"], size=N).tolist(), "category!", typed=True)


@table
def versions_that_are_one_number(rng):
    return one(rng.choice(["1.1", "1.10", "1.9", "2.0"], size=N).tolist(), "category!")


@table
def versions_and_a_word(rng):
    return one([*rng.choice(["1.1", "1.10", "1.9", "2.0"], size=N - 1).tolist(), "beta"], "category!")


@table
def whole_numbers_with_and_without_a_point(rng):
    return one(rng.choice(["1", "1.0", "2", "3"], size=N).tolist(), "number!")


@table
def hexadecimal_and_decimal(rng):
    return one(rng.choice(["0x1F", "12", "0xFF"], size=N).tolist(), "category!")


@table
def hexadecimal(rng):
    return one(rng.choice(["0x1F", "0x2A", "0xFF"], size=N).tolist(), "category")


@table
def phone_numbers(rng):
    return one([f"+49 {rng.integers(150, 180)} {rng.integers(10**6, 10**7)}" for _ in range(N)], "text!")


@table
def ip_addresses(rng):
    return one(rng.choice(["10.0.0.1", "10.0.0.2", "192.168.1.7"], size=N).tolist(), "category")


@table
def yes_and_no(rng):
    return one(rng.choice(["yes", "no"], size=N).tolist(), "category")


@table
def true_and_false(rng):
    return one(rng.choice(["TRUE", "false"], size=N).tolist(), "category")


@table
def numbers_and_words(rng):
    words = rng.choice(["low", "high", "3", "7"], p=[0.4, 0.3, 0.2, 0.1], size=N)
    return one(words.tolist(), "category!")


@table
def letters_with_numbers(rng):
    return one([f"{rng.choice(list('ABC'))}{rng.integers(1, 4)}" for _ in range(N)], "category")


@table
def sizes(rng):
    return one(rng.choice(["S", "M", "L", "XL"], size=N).tolist(), "category")


@table
def free_text(rng):
    words = ["pump", "was", "loud", "today", "and", "hot", "again", "checked"]
    return one(
        [" ".join(rng.choice(words, size=6)) for _ in range(N)], "text!", other=Column(floats(rng), "number")
    )


@table
def many_names(rng):
    made = ["".join(rng.choice(list(string.ascii_lowercase), size=2)) for _ in range(N)]
    return one(made, "text!", other=Column(floats(rng), "number"))


@table
def setpoints(rng):
    return one(rng.choice([870, 1450, 2900], size=N).tolist(), "number")


@table
def customer_ids_that_repeat(rng):
    ids = rng.integers(4_000, 4_010, size=N).tolist()
    return one(floats(rng), "number", customer_id=Column(ids, "category!"))


@table
def many_customer_ids_that_repeat(rng):
    return one(floats(rng), "number", customerId=Column(rng.integers(4_000, 4_900, size=N).tolist(), "id!"))


@table
def years_in_order(rng):
    return one(np.sort(rng.integers(2019, 2024, size=N)).tolist(), "number!")


@table
def years_in_no_order(rng):
    return one(rng.integers(2019, 2024, size=N).tolist(), "number!")


@table
def batches_in_order(rng):
    return one([f"batch {chr(65 + at // 30)}" for at in range(N)], "category!")


@table
def quarters(rng):
    return one(rng.choice(["2023-Q1", "2023-Q2", "2023-Q3"], size=N).tolist(), "category!")


@table
def years_and_months(rng):
    return one([f"{t:%Y-%m}" for t in moments(rng)], "time", other=Column(floats(rng), "number"))


@table
def typed_thousands(rng):
    return one([f"{v:,}" for v in rng.integers(10**3, 10**7, size=N)], "number", typed=True)


@table
def ports(rng):
    made = rng.choice([80, 443, 8080, 22], size=N).tolist()
    return one(floats(rng), "number", port=Column(made, "category!"))


@table
def whole_floats_with_gaps(rng):
    values = [float(v) if at % 9 else None for at, v in enumerate(rng.poisson(300, size=N))]
    return one(values, "number", typed=True)


@table
def blood_pressure(rng):
    made = zip(rng.normal(120, 3, size=N), rng.normal(72, 2, size=N), strict=True)
    return one([f"{high:.0f}/{low:.0f}" for high, low in made], "category!")


@table
def hexadecimal_without_a_mark(rng):
    return one([f"{0xBB80 + v:X}" for v in rng.poisson(20, size=N)], "category!")


@table
def hours_and_minutes(rng):
    return one([f"{v // 60}h {v % 60}m" for v in 300 + rng.poisson(30, size=N)], "category!")


@table
def feet_and_inches(rng):
    return one([f"{v // 12}'{v % 12}\"" for v in 55 + rng.poisson(12, size=N)], "category!")


@table
def about(rng):
    return one([f"~{v}" for v in rng.poisson(50, size=N)], "category!")


@table
def plus_or_minus(rng):
    return one([f"{v:.1f}±0.1" for v in rng.normal(5, 0.5, size=N)], "category!")


@table
def latitudes(rng):
    return one([f"51°{v}'N" for v in rng.poisson(30, size=N)], "category!")


@table
def so_many_of_ten(rng):
    return one([f"{v}/10" for v in rng.binomial(10, 0.3, size=N - 1)] + ["10/10"], "category!")


@table
def ip_addresses_of_which_many_are_rare(rng):
    return one([f"10.0.0.{v}" for v in rng.poisson(20, size=N)], "category!")


@table
def words_with_a_number(rng):
    return one([f"retry {v}" for v in rng.poisson(209, size=N)], "category!")


@table
def surnames_of_which_many_are_rare(rng):
    made = [str(rng.choice(["Lee", "Kim"])) if rng.random() < 0.7 else f"{a}{b}" for a, b in letters(rng)]
    return one(made, "category!")


# ------------------------------------------------------------------------------ numbers that grow, or name


@table
def epochs_out_of_order(rng):
    return one([1.7e9 + at * 7.31 + rng.random() * 20 for at in range(N)], "number!")


@table
def epochs_in_no_order(rng):
    return one(rng.permutation([1.7e9 + at * 7.31 for at in range(N)]).tolist(), "number!")


@table
def days_as_excel_counts_them(rng):
    return one([45123.5 + at * 0.0007 + rng.normal() * 0.002 for at in range(N)], "number!")


@table
def a_meter_that_jitters(rng):
    return one([10_000 + at * 2.5 + rng.random() * 4 for at in range(N)], "number!")


@table
def a_meter_that_jitters_in_whole_numbers(rng):
    return one([at // 3 + int(rng.integers(3)) for at in range(N)], "number!")


@table
def a_meter_with_a_decimal_comma(rng):
    return one([comma(at * 2.5 + rng.random() * 4) for at in range(N)], "number!")


@table
def a_tank_that_is_emptied(rng):
    return one([round(900 - at * 2.5 + rng.random() * 9, 1) for at in range(N)], "number!")


@table
def random_ids_of_63_bits(rng):
    return one(rng.integers(0, 2**63, size=N).tolist(), "number!")


@table
def random_ids_of_32_bits(rng):
    return one(rng.integers(0, 2**32, size=N).tolist(), "number!")


@table
def measurements_named_after_what_has_ids(rng):
    names = (
        "account_balance phone_price zip_size serialResistance no_items rpm_no key_length code_rate id_count"
    )
    return Table({name: Column(rng.poisson(70, size=N).tolist(), "number") for name in names.split()})


@table
def ids_by_their_last_word(rng):
    names = "zip customer_no item_code accountNumber price_id id_client"
    codes = 4_000 + rng.integers(0, 10, size=(N, 6))
    return Table({name: Column(codes[:, at].tolist(), "category!") for at, name in enumerate(names.split())})


# ------------------------------------------------------------------------------ values for missing ones


def with_some(rng, cells, word, share=0.05):
    """Put a word into some cells, the first excepted."""
    return [word if at and rng.random() < share else cell for at, cell in enumerate(cells)]


@table
def placeholders_of_sensors(rng):
    """One column for every usual way to write that nothing was measured."""
    words = "-999 -9999.0 9999 999.9 65535 -200 1e30"
    temperatures = [f"{v:.1f}" for v in rng.normal(20, 2, size=N)]
    return Table(
        {
            f"t{at}": Column(with_some(rng, temperatures, word), "number!")
            for at, word in enumerate(words.split())
        }
    )


@table
def minus_one_for_none(rng):
    counts = rng.integers(0, 400, size=N).tolist()
    return one(with_some(rng, counts, -1), "number!", typed=True)


@table
def ages_with_99(rng):
    return one(with_some(rng, rng.integers(18, 66, size=N).tolist(), 99), "number!", typed=True)


@table
def one_placeholder(rng):
    cells = floats(rng)
    cells[7] = -9999.0
    return one(cells, "number!", typed=True)


@table
def placeholders_among_odd_cells(rng):
    return one(with_some(rng, with_some(rng, [str(v) for v in floats(rng)], "-999"), "ERR"), "number!")


@table
def idle_and_signed(rng):
    """Values that come again and are measured all the same."""
    power = np.round(rng.normal(1_500, 20, size=N), 1)
    idle = rng.random(N) < 0.3
    return Table(
        {
            "off": Column(np.where(idle, 0.0, power).tolist(), "number"),
            "standby": Column(np.where(idle, 5.0, power).tolist(), "number"),
            "direction": Column(rng.integers(-1, 2, size=N).tolist(), "number"),
            "celsius": Column(floats(rng, 0.0, 8.0), "number"),
            "score": Column(np.clip(rng.normal(80, 15, size=N).round(), 0, 99).tolist(), "number"),
            "tail": Column(rng.standard_cauchy(size=N).round(2).tolist(), "number"),
        },
        typed=True,
    )


@table
def zeros_for_none(rng):
    """What is far from zero wherever it is measured."""
    return Table(
        {
            "pressure": Column(with_some(rng, rng.integers(60, 180, size=N).tolist(), 0), "number!"),
            "signal": Column(with_some(rng, rng.normal(-80, 8, size=N).round().tolist(), 0.0), "number!"),
            "mass": Column(with_some(rng, floats(rng), 0.0, share=0.15), "number!"),
        },
        typed=True,
    )


@table
def zeros_for_none_with_decimal_commas(rng):
    return one(with_some(rng, [comma(v, 2) for v in floats(rng)], "0,00"), "number!")


@table
def zeros_that_are_measured(rng):
    """Idle things whose values come near zero, and things that are often idle."""
    some = rng.random((N, 4)) < [0.05, 0.1, 0.5, 0.25]
    made = {
        "load": rng.gamma(2, 10, size=N),
        "delay": rng.exponential(3, size=N),
        "rain": rng.gamma(1, 5, size=N),
        "power": rng.normal(1_500, 20, size=N),
    }
    cells = {name: np.where(some[:, at], 0, made[name]).round(1).tolist() for at, name in enumerate(made)}
    return Table({name: Column(values, "number") for name, values in cells.items()}, typed=True)


@table
def placeholder_dates(rng):
    times = [f"{t:%Y-%m-%d}" for t in moments(rng, days=60)]
    return Table(
        {
            "ended": Column(with_some(rng, times, "9999-12-31", 0.3), "time!"),
            "left": Column(with_some(rng, times, "1900-01-01"), "time!"),
        }
    )


@table
def typed_placeholder_dates(rng):
    times = [t.date() for t in moments(rng, days=60)]
    return one(with_some(rng, times, datetime.date(1970, 1, 1)), "time!", typed=True)


@table
def counters_of_three_devices(rng):
    return one([10_000 * (1 + at % 3) + at // 3 for at in range(N)], "id!", x=Column(floats(rng), "number"))


def meters(rng, steps):
    """Meters of four devices, read in no order."""
    read = np.cumsum(steps, axis=0) + rng.integers(0, 10**5, size=4)
    which, at = rng.integers(0, 4, size=N), np.zeros(4, dtype=int)
    cells = []
    for device in which:
        cells.append(round(read[at[device], device].item(), 1))
        at[device] += 1
    return cells


@table
def meters_of_four_devices(rng):
    cells = meters(rng, rng.integers(1, 90, size=(N, 4)))
    return one(cells, "id!", x=Column(floats(rng), "number"))


@table
def meters_of_four_devices_with_decimals(rng):
    return one(meters(rng, rng.exponential(9, size=(N, 4))), "number!")


@table
def what_comes_and_goes(rng):
    """Values that depend on those before, and are no counters."""
    at = np.arange(N)
    return Table(
        {
            "cycle": Column((at % 24 + rng.random(N)).round(3).tolist(), "number"),
            "long_cycle": Column((at % 80 + rng.random(N)).round(3).tolist(), "number"),
            "wave": Column((np.sin(at / 30) * 50 + rng.normal(size=N)).round(2).tolist(), "number"),
            "levels": Column(np.where(at % 2, 100, 200) + rng.normal(size=N).round(3), "number"),
        },
        typed=True,
    )


@table
def epochs_with_zeros(rng):
    cells = [0 if at % 20 == 7 else 1_700_000_000 + 60 * at for at in range(N)]
    return one(cells, "number!", typed=True, x=Column(floats(rng), "number"))


@table
def random_ids_with_plain_names(rng):
    return Table(
        {
            "ref": Column(rng.integers(0, 10**6, size=N).tolist(), "number!"),
            "ticket": Column(rng.choice(np.arange(10**4, 10**5), size=N, replace=False), "number!"),
        }
    )


@table
def large_whole_measurements(rng):
    """As large as ids and dates are, but of another shape, or with other ends."""
    return Table(
        {
            "bytes": Column(rng.integers(200, 90_000, size=N).tolist(), "number"),
            "volume": Column(np.exp(rng.normal(11, 1, size=N)).astype(int).tolist(), "number"),
            "salary": Column(rng.normal(45_000, 6_000, size=N).astype(int).tolist(), "number"),
            "pressure": Column(rng.normal(41_000, 300, size=N).astype(int).tolist(), "number"),
            "counts": Column(rng.integers(0, 700_000, size=N).tolist(), "number"),
        },
        typed=True,
    )


@table
def days_as_excel_counts_them_in_no_order(rng):
    days = rng.integers(43_800, 45_500, size=N).tolist()
    return one(days, "number!", typed=True)


@table
def days_as_excel_counts_them_by_name(rng):
    days = [45_292.5, *rng.uniform(44_000, 46_000, size=N - 1).round(2).tolist()]
    first = datetime.datetime(2024, 1, 1, 12)
    return Table({"order_date": Column(days, "time!", first), "x": Column(floats(rng), "number")})


# ------------------------------------------------------------------------------ dates as numbers


@table
def dates_in_digits(rng):
    times = [moments(rng, days=1500)[at] for at in rng.permutation(N)]
    written = {
        "month": [int(f"{t:%Y%m}") for t in times],
        "week": [int(f"{t:%G%V}") for t in times],
        "ordinal": [int(f"{t:%Y%j}") for t in times],
        "short": [int(f"{t:%y%m%d}") for t in times],
        "clock": [int(f"{t:%H%M}") for t in times],
    }
    return Table({name: Column(cells, "number!") for name, cells in written.items()}, typed=True)


@table
def days_and_years_that_are_counted(rng):
    return Table(
        {
            "jd": Column(rng.uniform(2_459_000, 2_460_500, size=N).round(4).tolist(), "number!"),
            "decimal": Column(rng.uniform(2_018, 2_024, size=N).round(4).tolist(), "number!"),
        },
        typed=True,
    )


@table
def numbers_as_large_as_dates(rng):
    return Table(
        {
            "rpm": Column(rng.normal(2_010, 4, size=N).round(2).tolist(), "number"),
            "watts": Column(rng.integers(0, 2_300, size=N).tolist(), "number"),
            "step": Column((rng.integers(0, 47, size=N) * 50).tolist(), "number"),
        },
        typed=True,
    )


@table
def quarters_of_short_years(rng):
    return one(rng.choice(["Q1-23", "Q2-23", "Q3-23", "Q4-23"], size=N).tolist(), "category!")


@table
def quarters_without_a_mark(rng):
    return one(rng.choice(["2023Q1", "2023Q2", "2023Q3", "2023Q4"], size=N).tolist(), "category!")


@table
def objects_in_cells(rng):
    return one(rng.choice(['{"a": 1}', '{"a": 2}'], size=N).tolist(), "category!")


@table
def names_of_twenty_digits(rng):
    cells = [f"{10**19 + v}" for v in rng.choice(900, size=N, replace=False).tolist()]
    return one(cells, "id!", other=Column(floats(rng), "number"))


@table
def numbers_typed_as_categories(rng):
    return one(pl.Series([f"{v:.1f}" for v in floats(rng)], dtype=pl.Categorical), "category!", typed=True)


@table
def a_minus_before_zero(rng):
    cells = [f"{v:.1f}" for v in rng.normal(0, 0.3, size=N)]
    return one(["-0.0", *cells[1:]], "number", 0.0)


@table
def dashes_for_minus(rng):
    values = rng.normal(0, 50, size=N).round(2).tolist()
    marks = "\N{EN DASH}\N{NON-BREAKING HYPHEN}\N{FULLWIDTH HYPHEN-MINUS}"
    cells = [f"{v:.2f}".replace("-", marks[at % 3]) for at, v in enumerate(values)]
    return one(cells, "number", values[0], money=Column([f"$ {cell}" for cell in cells], "number", values[0]))


@table
def with_and_without_factor(rng):
    values, shares = rng.normal(4_700, 500, size=N), rng.normal(0.45, 0.05, size=N)
    short = rng.random(N) < 0.3
    return Table(
        {
            "users": Column(
                [f"{v / 1e3:.1f}k" if s else f"{v:.0f}" for v, s in zip(values, short, strict=True)],
                "number!",
            ),
            "share": Column(
                [f"{v:.0%}" if s else f"{v:.2f}" for v, s in zip(shares, short, strict=True)], "number!"
            ),
        }
    )


@table
def columns_named_as_polars_names_its_own(rng):
    words = rng.choice(["eco", "boost"], size=N).tolist()
    return Table({name: Column(words, "category") for name in ("count", "rows", "word", "words", "unit")})


# ------------------------------------------------------------------------------ times


@table
def minutes_and_seconds(rng):
    return one([f"{v // 60:02d}:{v % 60:02d}" for v in rng.integers(100, 1_100, size=N)], "time!")


@table
def months_in_words(rng):
    times = [moments(rng)[at] for at in rng.permutation(N)]
    first = midnight(times[0]).replace(day=1)
    return one([f"{t:%b-%y}" for t in times], "time!", first)


@table
def dates_in_other_languages(rng):
    times = [moments(rng)[at] for at in rng.permutation(N)]
    german = ["Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."]
    french = [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ]
    spanish = [
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ]
    first = midnight(times[0])
    return Table(
        {
            "datum": Column([f"{t.day}. {german[t.month - 1]} {t.year}" for t in times], "time", first),
            "jour": Column([f"{t.day} {french[t.month - 1]} {t.year}" for t in times], "time", first),
            "dia": Column([f"{t.day} de {spanish[t.month - 1]} de {t.year}" for t in times], "time", first),
            "day": Column([f"{t:%A, %B %d, %Y}" for t in times], "time", first),
            "zone": Column([f"{t:%Y-%m-%d %H:%M} CET" for t in times], "time", times[0].replace(second=0)),
        }
    )


@table
def months_in_words_and_years(rng):
    return one([f"{t:%B %Y}" for t in moments(rng)], "time", datetime.datetime(2023, 2, 1))


@table
def iso_dates(rng):
    times = moments(rng)
    return one([f"{t:%Y-%m-%d}" for t in times], "time", midnight(times[0]))


@table
def iso_times_with_zone(rng):
    times = moments(rng)
    return one([f"{t:%Y-%m-%dT%H:%M:%S}+02:00" for t in times], "time", times[0])


@table
def german_dates(rng):
    times = moments(rng)
    return one([f"{t:%d.%m.%Y}" for t in times], "time", midnight(times[0]))


@table
def american_dates(rng):
    times = moments(rng)
    return one([f"{t:%m/%d/%Y %I:%M %p}" for t in times], "time", times[0].replace(second=0))


@table
def dates_that_could_be_either(rng):
    return one([f"{rng.integers(1, 13):02d}/{rng.integers(1, 13):02d}/2024" for _ in range(N)], "time!")


@table
def dates_of_two_formats(rng):
    times = moments(rng)
    return one([f"{t:%Y-%m-%d}" if at % 3 else f"{t:%d.%m.%Y}" for at, t in enumerate(times)], "time!")


@table
def dates_and_a_word(rng):
    cells = [f"{t:%Y-%m-%d %H:%M}" for t in moments(rng)]
    cells[5] = "unknown"
    return one(cells, "time!")


@table
def short_years(rng):
    return one([f"{t:%d.%m.%y}" for t in moments(rng)], "time!")


@table
def american_short_years(rng):
    times = moments(rng)
    return one([f"{t.month}/{t.day}/{t:%y}" for t in times], "time!", midnight(times[0]))


@table
def months_in_words_and_short_years(rng):
    times = moments(rng)
    return one([f"{t:%d-%b-%y}" for t in times], "time!", midnight(times[0]))


@table
def days_as_numbers(rng):
    return one([int(f"{t:%Y%m%d}") for t in moments(rng)], "time!")


@table
def epoch_milliseconds(rng):
    return one([int(t.timestamp() * 1000) for t in moments(rng)], "time!")


@table
def clock_times(rng):
    return one([f"{t:%H:%M}" for t in moments(rng)], "time")


@table
def lap_times(rng):
    return one([f"{rng.integers(1, 4)}:{rng.integers(0, 60):02d}" for _ in range(N)], "time!")


@table
def typed_times(rng):
    return one(times := moments(rng), "time", times[0], typed=True)


@table
def typed_dates(rng):
    return one([t.date() for t in moments(rng)], "time", typed=True)


@table
def words_in_several_spellings(rng):
    return one(rng.choice(["Eco", "eco", "ECO", "full"], size=N).tolist(), "category!")


@table
def words_with_spaces_after_them(rng):
    return one(rng.choice(["red", "red ", "dark blue", "dark  blue"], size=N).tolist(), "category!")


@table
def versions_by_name(rng):
    versions = rng.choice(["1.2", "1.3", "2.0", "2.1", "3.4"], size=N).tolist()
    return Table({"firmware": Column(versions, "category!"), "x": Column(floats(rng), "number")})


@table
def references_in_six_digits(rng):
    numbers = rng.integers(100_000, 200_000, size=N).tolist()
    return Table({"ref": Column(numbers, "id!"), "x": Column(floats(rng), "number")})
