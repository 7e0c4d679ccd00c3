"""The page of the driver as a browser shows it: headless Chromium runs its script."""

import html
import re
import shutil
import subprocess

from spark_bridge.listener import Board
from spark_bridge.page import Page

OBSERVED = {
    "tuples_left": 1_200, "tuples_right": 1_300, "pairs": 4_567, "late_left": 2, "late_right": 1,
    "window_left": 900, "window_right": 450, "device_s": 0.125, "state_bytes": 7_000_000,
    "workers": 2,
}


def shown(url, place):
    """The words of the page, once its script has asked for the joins twice."""
    browser = shutil.which("chromium")
    assert browser, "this test needs a browser: apt-get install chromium"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync",
               f"--user-data-dir={place}", "--virtual-time-budget=1500", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    body = done.stdout[done.stdout.index("<body>") : done.stdout.index("<script>")]
    return body, " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_browser_shows_throughput_window_fill_and_health(tmp_path):
    board = Board()
    with Page(board) as page:
        _, words = shown(page.url, tmp_path / "empty")
        assert "No join has finished a micro-batch yet." in words
        board.started("7d1c", "trades & quotes")
        board.progressed("7d1c", 3, 0.5, {"watersmeet_abcd": {"total": OBSERVED}, "else": {"n": 1}})
        board.started("99ff", None)
        board.progressed("99ff", 0, 1.0, {"watersmeet_ef01": {"total": OBSERVED}})
        board.ended("99ff", "host.errors.StateError: the state file <b>x</b> is missing: put it")
        body, words = shown(page.url, tmp_path / "joins")
    for text in (
        "trades & quotes abcd running", "tuples a second 5,000", "pairs a second 9,134",
        "tuples in 2,500", "pairs out 4,567", "late 3", "micro-batch 3 (0.50 s)", "device 0.125 s",
        "state 7.0 MB", "workers that answered 2", "left window: 900 tuples",
        "right window: 450 tuples",
        "99ff ef01 failed: the state file <b>x</b> is missing: put it",
    ):
        assert text in words, (text, words)
    assert "<b>" not in body and body.count("<polyline") == 2
    assert re.search(r'id="lost"\s+hidden', body)
