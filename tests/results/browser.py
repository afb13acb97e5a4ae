"""A headless Chromium, driven over its DevTools protocol through a pipe."""

import base64
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextmanager
def browser(folder):
    """A browser with its profile in a folder; skips the test where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    # The browser reads requests from its descriptor 3 and writes answers to its 4, each ended by a zero byte.
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}/profile",
        "about:blank",
    ]
    launcher = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command]
    with (Path(folder) / "browser.log").open("wb") as log:
        process = subprocess.Popen(launcher, pass_fds=(theirs_in, theirs_out), stdout=log, stderr=log)
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with os.fdopen(ours_in, "rb", 0) as answers, os.fdopen(ours_out, "wb", 0) as requests:
            yield Page(answers, requests)
    finally:
        process.terminate()
        process.wait(timeout=20)


class Page:
    """The one page of the browser."""

    def __init__(self, answers, requests):
        self._answers, self._requests = answers, requests
        self._rest, self._number, self._session = b"", 0, None
        self.events = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """The answer to a request; what else the browser says is kept in `events`."""
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        self._requests.write(json.dumps(request).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def open(self, path):
        """Load a file."""
        self.events.clear()
        self.call("Page.navigate", url=Path(path).as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def evaluate(self, script):
        """The value of a script, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, width, dark=False):
        """Give the page a width and a colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path):
        """All of the page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def print(self, path):
        """The page as PDF."""
        made = self.call("Page.printToPDF", preferCSSPageSize=True)
        Path(path).write_bytes(base64.b64decode(made["data"]))

    def _read(self):
        while b"\0" not in self._rest:
            part = self._answers.read(1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)
