"""A headless Chromium that is driven over two pipes, with nothing but the standard library.

It speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol): messages are JSON, each ended by
a zero byte. One browser serves many pages, and keys, themes and small screens are those of the browser itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds, for any one answer
# the browser reads from file 3 and writes to file 4; what has these numbers in a child is only known there
AS_3_AND_4 = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def installed() -> str | None:
    """The path of a browser that can be driven: pipes can be waited for, and be files 3 and 4, where there is POSIX."""
    return next(filter(None, map(shutil.which, NAMES)), None) if os.name == "posix" else None


class Browser:
    """A browser with a new and empty profile; it is gone, with all its processes, after the `with` block."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._rest = b""
        self._calls = 0

    def __enter__(self) -> Browser:
        self._profile = tempfile.mkdtemp(prefix="browser-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        shim = [sys.executable, "-c", AS_3_AND_4, str(theirs_in), str(theirs_out)]
        self._process = subprocess.Popen(
            [*shim, str(installed()), *FLAGS, f"--user-data-dir={self._profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a process group of its own, which can be ended as a whole
        )
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError, TimeoutError, subprocess.TimeoutExpired):
            self.call("Browser.close")
            self._process.wait(timeout=5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Have something done, and return its result; what happens meanwhile is added to `events`."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self.receive()).get("id") != self._calls:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def receive(self) -> dict[str, Any]:
        """The next message."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            read = os.read(self._in, 1 << 20) if ready else b""
            if not read:
                raise TimeoutError("the browser does not answer" if not ready else "the browser has ended")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> Tab:
        """A file in a tab of its own, loaded."""
        return Tab(self, path, width, dark, scripts)


class Tab:
    """A page, `width` pixels wide; up to 600 it is a phone's."""

    def __init__(self, browser: Browser, path: Path, width: int, dark: bool, scripts: bool) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        phone = width <= 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self.media("screen", dark=dark)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=path.as_uri())
        while not self.happened("Page.loadEventFired"):
            browser.events.append(browser.receive())

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def happened(self, *methods: str) -> list[dict[str, Any]]:
        """The events of these names so far."""
        mine = [event for event in self._browser.events if event.get("sessionId") == self._session]
        return [event["params"] for event in mine if event["method"] in methods]

    def complaints(self) -> list[dict[str, Any]]:
        """All that was written to the console, and exceptions."""
        return self.happened("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        return [event["request"]["url"] for event in self.happened("Network.requestWillBeSent")]

    def media(self, kind: str, *, dark: bool = False) -> None:
        """What it is shown on, a screen or print, in a light or a dark theme."""
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[theme])

    def evaluate(self, script: str) -> Any:
        """The value of an expression, which must be one of JSON."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Enter, a space or Tab, as if it was typed."""
        code, text = {"Enter": (13, "\r"), " ": (32, " "), "Tab": (9, "")}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    def click(self, selector: str) -> None:
        """The middle of an element, by the mouse."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"{element}.getBoundingClientRect().toJSON()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """A picture of the page from its top: the whole of it, or as much as `height` says."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
