"""The page of the service in a real browser."""

import asyncio
import io
import re
import threading
import time

import numpy as np
import polars as pl
import pytest
import uvicorn

from rankad import RankAD, TableDetector, load
from rankad.service.app import make_app
from rankad.service.keys import KeyFile
from rankad.service.page.settings import PageSettings
from rankad.service.settings import Settings

# How many pixels of the plot are faintly green.
GREEN = """(() => {
    const plot = document.getElementById("scatter"), copy = new OffscreenCanvas(plot.width, plot.height);
    const pen = copy.getContext("2d");
    pen.drawImage(plot, 0, 0);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    const faint = (at) => data[at] > 0 && data[at] < 60;
    let n = 0;
    for (let at = 0; at < data.length; at += 4) n += data[at + 1] > data[at] && faint(at + 3);
    return n;
})()"""
EVIL = "<img src=x onerror=alert(1)>"


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({EVIL: rng.normal(50, 5, n).round(2), "flow": rng.normal(10, 1, n).round(2)})
    return frame.with_columns(pl.Series("grade", rng.integers(1, 5, n)), pl.Series("note", [EVIL] * n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    quick = RankAD(0.05, bandwidth="D_K", C=0.1, landmarks=40, near_field=False, n_components=0)
    TableDetector(quick).fit(table_of(300, 0)).save(folder / "mill.rankad")
    quick.fit(table_of(300, 0).select("flow", EVIL)).save(folder / "two.rankad")
    new = table_of(2_000, 1)
    new[70, "flow"], new[80, "note"] = 30.0, "=2+5"
    new.write_csv(folder / "new.csv")
    return folder


@pytest.fixture
def serve():
    """Serve an application on a free port, and return its address."""
    running = []

    def served(settings):
        server = uvicorn.Server(uvicorn.Config(make_app(settings), port=0, log_level="error"))
        thread = threading.Thread(target=asyncio.run, args=(server.serve(),))
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"

    yield served
    for server, thread in running:
        server.should_exit = True
        thread.join()


@pytest.fixture
def visit(browser):
    """Open a page; afterwards see that nothing else was loaded and nothing went wrong."""
    opened, wrong = [], []

    def visited(address, **context):
        page = browser.new_context(**context).new_page()
        opened.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))

        def check(made):
            if not made.url.startswith((address, "data:,", f"blob:{address}")):
                wrong.append(made.url)

        page.on("request", check)
        page.goto(address)
        return page

    yield visited
    for page in opened:
        page.context.close()
    # A browser notes every answer such as 401 by itself.
    assert [text for text in wrong if "Failed to load resource" not in text] == []


def n_alarms(page):
    return int(page.text_content("#n-alarms").replace(",", ""))


def slide_to(page, alpha):
    page.fill("#percent", f"{100 * alpha:g}")


def test_upload_correct_fit_move_alpha_read_a_reason_download(folder, serve, visit, tmp_path):
    page = visit(serve(Settings((folder / "mill.rankad",), page=PageSettings())))
    table = table_of(90, 2)
    table[40, "flow"] = 40.0
    body = table.write_csv().encode()
    page.set_input_files("#file", {"name": f"{EVIL}.csv", "mimeType": "text/csv", "buffer": body})
    page.locator("#said", has_text="90 rows, 4 columns").wait_for()
    page.check("#mode-find")
    page.click("#understood > summary")
    kind = page.get_by_label("grade is")
    assert kind.locator("option:checked").text_content() == "found: number"
    with page.expect_response(re.compile("/columns$")):
        kind.select_option("category")
    page.locator(".column-line", has_text="grade").get_by_text("a category").wait_for()
    page.click("#go")
    page.locator("#progress").wait_for()
    page.locator(".case .gist").first.wait_for(timeout=60_000)
    # As by hand, with the column as it was corrected.
    page.locator("#encoding li", has_text="grade: a category").wait_for(state="attached")
    slide_to(page, 0.1)
    assert n_alarms(page) == 9
    slider = page.locator("#alpha")
    slider.focus()
    slider.press("ArrowLeft")
    before = n_alarms(page)
    for _ in range(12):
        slider.press("PageDown")
    assert n_alarms(page) < before
    slide_to(page, 0.05)
    assert n_alarms(page) == 4
    page.get_by_role("heading", name="4 alarms").wait_for()
    first = page.locator(".case").first
    first.locator("summary").first.click()
    first.locator(".reasons li").first.wait_for()
    assert first.locator(".reasons .fact b").first.text_content() == "flow"
    with page.expect_download() as downloading:
        page.click("#download")
    frame = pl.read_csv(downloading.value.path())
    assert (frame.height, frame["row"][0]) == (4, 41)
    with page.expect_download() as downloading:
        page.click("#download-model")
    path = tmp_path / "got.rankad"
    downloading.value.save_as(path)
    assert "grade: a category" in "\n".join(load(path).encoder_.describe())


def test_the_first_model_that_fits_the_table_is_chosen(folder, serve, visit, tmp_path):
    """One without column names fits a table of as many columns, and no other."""
    numbers = np.random.default_rng(0).normal(size=(100, 3))
    RankAD(bandwidth="D_K", C=0.1).fit(numbers).save(tmp_path / "three.rankad")
    models = tmp_path / "three.rankad", folder / "mill.rankad"
    page = visit(serve(Settings(models, page=PageSettings(tables=(folder / "new.csv",)))))
    page.locator("#shown").wait_for(timeout=30_000)
    assert page.input_value("#with") == "mill"
    page.locator("#said:empty").wait_for(state="attached")
    assert page.locator("#with option").first.text_content() == "three (has other columns)"


def test_what_is_no_rate_gives_way_to_the_rate_that_is_shown(folder, serve, visit):
    models = (folder / "mill.rankad",)
    page = visit(serve(Settings(models, page=PageSettings(tables=(folder / "new.csv",)))))
    page.locator("#shown").wait_for(timeout=30_000)
    slide_to(page, 0.02)
    alarms = n_alarms(page)
    for text in ("0", "-5", "200", ""):
        page.fill("#percent", text)
        assert n_alarms(page) == alarms
        page.press("#percent", "Tab")
        assert page.input_value("#percent") == "2"


def test_alpha_decides_thousands_of_rows_without_the_server(folder, serve, visit):
    settings = Settings((folder / "mill.rankad",), page=PageSettings(tables=(folder / "new.csv",)))
    page = visit(serve(settings))
    page.locator(".case .reasons, .case .strange").first.wait_for(state="attached")
    frame = pl.read_csv(folder / "new.csv", infer_schema=False)
    p_values = load(folder / "mill.rankad").p_values(frame)
    page.route("**/*", lambda route: route.abort())
    for alpha in (0.4, 0.1, 0.0333, 0.01):
        slide_to(page, alpha)
        assert n_alarms(page) == (p_values <= alpha).sum()
        bars = page.locator("#histogram title").all_text_contents()
        assert sum(int(re.search(r": ([\d,]+) row", bar)[1].replace(",", "")) for bar in bars) == 2_000


def test_the_level_set_follows_alpha(folder, serve, visit):
    settings = Settings((folder / "two.rankad",), page=PageSettings(tables=(folder / "new.csv",)))
    page = visit(serve(settings))
    page.locator("#region-words", has_text="the level set").wait_for()
    areas = []
    for alpha in (0.4, 0.1, 0.01):
        slide_to(page, alpha)
        page.wait_for_timeout(150)
        areas.append(page.evaluate(GREEN))
    assert areas == sorted(areas)
    assert areas[0] < areas[-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_the_screen(folder, serve, visit, width, scheme):
    settings = Settings((folder / "mill.rankad",), page=PageSettings(tables=(folder / "new.csv",)))
    page = visit(serve(settings), viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.locator(".case .reasons, .case .strange").first.wait_for(state="attached")
    page.check("#mode-find")
    page.locator(".column-line").first.wait_for(state="attached")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128) == (scheme == "light")
    # The slider stays in sight.
    page.evaluate("document.getElementById('rates').scrollIntoView({behavior: 'instant'})")
    assert 0 <= page.locator("#alpha").bounding_box()["y"] < 160


def test_a_key_is_asked_for_and_forgotten(folder, serve, visit, tmp_path):
    secret = KeyFile.add(tmp_path / "keys.txt", "me", "read")
    page = PageSettings(tables=(folder / "new.csv",))
    shown = visit(serve(Settings((folder / "mill.rankad",), keys=tmp_path / "keys.txt", page=page)))
    shown.get_by_label("Key", exact=True).fill("wrong")
    shown.get_by_role("button", name="Use it").click()
    shown.get_by_text("send an API key").first.wait_for()
    shown.get_by_label("Key", exact=True).fill(secret)
    shown.get_by_role("button", name="Use it").click()
    shown.locator(".case").first.wait_for()
    shown.get_by_role("button", name="Forget the key").click()
    shown.get_by_label("Key", exact=True).wait_for()


def test_the_download_is_harmless(folder, serve, visit):
    settings = Settings((folder / "mill.rankad",), page=PageSettings(tables=(folder / "new.csv",)))
    page = visit(serve(settings))
    page.locator(".case .strange").first.wait_for(state="attached")
    assert EVIL in page.locator("#list").text_content()
    with page.expect_download() as downloading:
        page.click("#download")
    cells = pl.read_csv(io.BytesIO(downloading.value.path().read_bytes()), infer_schema=False)
    assert "'=2+5" in cells["note"].to_list()


def test_any_pair_can_be_plotted_and_the_arrow_keys_pick_rows(folder, serve, visit):
    settings = Settings((folder / "mill.rankad",), page=PageSettings(tables=(folder / "new.csv",)))
    page = visit(serve(settings))
    page.locator("#region-words", has_text="would be normal").wait_for()
    for label in ("the number of the row", "a projection of all columns", EVIL):
        with page.expect_response(re.compile("/places")):
            page.select_option("#x", label=label)
    with page.expect_response(re.compile("/places")):
        page.select_option("#y", label="the p-value")
    page.locator("#scatter").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#picked .reasons, #picked .strange").first.wait_for()
    first = page.text_content("#chosen")
    page.keyboard.press("ArrowRight")
    page.locator("#chosen").filter(has_not_text=first).wait_for()


def test_the_history_holds_what_came_against_what_was_promised(folder, serve, visit, tmp_path):
    settings = Settings(
        (folder / "mill.rankad",),
        history=tmp_path / "history.sqlite",
        page=PageSettings(tables=(folder / "new.csv",)),
    )
    page = visit(serve(settings))
    page.locator("#history-chart .alarm").first.wait_for()
    frame = pl.read_csv(folder / "new.csv", infer_schema=False)
    n = int((load(folder / "mill.rankad").p_values(frame) <= 0.05).sum())
    tiles = page.locator("#history-tiles .tile").all_text_contents()
    assert f"{n} alarms so far" in tiles[0]
    assert "5\u00a0%" in tiles[1]
    assert "2,000" in tiles[2]
    title = page.locator("#history-chart title").first.text_content()
    assert f"{n} alarms among 2,000 rows" in title
    assert page.locator("#latest tbody tr").count() == 20
