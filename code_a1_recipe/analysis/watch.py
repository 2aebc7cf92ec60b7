"""The terminal of ``code-a1 watch``: keys in, one screen out; it is left as it was found."""

import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from ..errors import InputError
from ..jobs.terminal import printable
from ..runs.live_run import LiveRun
from .watch_pages import HELP, PAGES, View, header

_SECONDS_BETWEEN_READS = 1.0
_SECONDS_BETWEEN_LOOKS = 0.25
"""At the size of the terminal, while no key comes."""
_WIDTH_FOR_NAMES = 90
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|[^\x1b]")
_UP, _DOWN, _RIGHT, _LEFT = (f"\x1b[{letter}" for letter in "ABCD")
_PAGE_UP, _PAGE_DOWN = "\x1b[5~", "\x1b[6~"


def watch(folder: Path, *, once: bool = False) -> None:
    """Show a run until q is pressed; once, as plain text, where there is no terminal or ``once`` is set.

    Raises:
        InputError: the folder holds no run, or one that ended before its first step.
        KeyboardInterrupt: Ctrl-C or SIGTERM came.
    """
    live, console = LiveRun(folder), Console(highlight=False)
    if once or not (console.is_interactive and sys.stdin.isatty()):
        live.refresh()
        console.print(Group(header(live), PAGES["curves"](live, View())))
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # a stopped process would leave the terminal in its mode
    Thread(target=live.read_questions, daemon=True).start()
    shown = Screen(live)
    with _single_keys(), console.screen() as screen:
        goes_on = True
        while goes_on:
            shown.refresh(console.width)
            screen.update(shown)
            goes_on = all(shown.press(key) for key in _next_keys(console))


class Screen:
    """The whole screen: header, those lines of a page that there is room for, and the keys."""

    def __init__(self, live: LiveRun) -> None:
        self._live, self._view, self._shows_help, self._room = live, View(), False, 1
        self._head: RenderableType = ""
        self._body: RenderableType = ""
        self._laid_out: object = None
        """What the body was made for."""

    def refresh(self, width: int) -> None:
        """Read what is new and lay out the page; what cannot be read is named in its place."""
        view = self._view
        view.width = width
        try:
            self._live.refresh()
            self._head = header(self._live)
            wanted = (replace(view, scroll=min(view.scroll, 1)), self._shows_help, self._live.version)
            if wanted != self._laid_out:
                page = list(PAGES.values())[view.page]
                self._body = Text(HELP) if self._shows_help else page(self._live, view)
                self._laid_out = wanted
        except (InputError, OSError) as error:
            self._body, self._laid_out = Text(printable(str(error)), "red"), None

    def press(self, key: str) -> bool:
        """Act on a key; False: quit."""
        view = self._view
        self._shows_help = key == "?" and not self._shows_help
        if lines := {_UP: -1, _DOWN: 1, _PAGE_UP: -self._room, _PAGE_DOWN: self._room}.get(key):
            view.scroll += lines
        elif key in ("n", "p"):
            view.episode, view.scroll = max(0, view.episode + (1 if key == "n" else -1)), 0
        elif key in (_LEFT, _RIGHT):
            self._view = View(page=(view.page + (1 if key == _RIGHT else -1)) % len(PAGES))
        elif key in ("1", "2", "3", "4"):
            self._view = View(page=int(key) - 1)
        return key != "q"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free, view = options.update(height=None), self._view
        head, body = (console.render_lines(part, free) for part in (self._head, self._body))
        self._room = room = max(1, options.max_height - len(head) - 1)
        view.scroll = max(0, min(view.scroll, len(body) - room))
        foot = Text(style="dim")
        for number, name in enumerate(PAGES):
            words = f"{number + 1} {name}" if options.max_width >= _WIDTH_FOR_NAMES else str(number + 1)
            foot.append(f" {words} ", "reverse" if number == view.page else "")
        foot.append("  ? help  q quit" + (f"  line {view.scroll + 1}/{len(body)}" if len(body) > room else ""))
        blank: list[list[Segment]] = [[]] * room
        shown = [*body[view.scroll :], *blank][:room]
        for line in (*head, *shown, *console.render_lines(foot, free)[:1]):
            yield from (*line, Segment.line())


def _next_keys(console: Console) -> list[str]:
    """Keys that were pressed; none when it is time to read again, or when the terminal has another size."""
    size, until = console.size, time.monotonic() + _SECONDS_BETWEEN_READS
    while time.monotonic() < until and console.size == size:
        if select.select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
            pressed = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
            return _KEY.findall(pressed) if pressed else ["q"]  # nothing: the terminal is gone
    return []


@contextmanager
def _single_keys() -> Iterator[None]:
    """Keys come one by one and are not shown."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)
