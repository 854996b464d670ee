"""A real Chromium for tests, driven over its debugging pipe: exact widths, schemes, keys, and all its requests."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-extensions",
    "--host-resolver-rules=MAP * 127.0.0.1",
)
_PATIENCE = 60.0
_PLACE = "import os, sys; a, b, *p = sys.argv[1:]; os.dup2(int(a), 3); os.dup2(int(b), 4); os.execv(p[0], p)"


class Tab:
    """One page of the browser.

    Attributes:
        requests: Addresses of everything that was loaded since ``go``, the page itself first.
        complaints: What the browser's console says, violations of the content security policy among it.
    """

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._left = b""
        self._last = 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Gives the browser a command and waits for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._receive, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._left += data
        raw, self._left = self._left.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        told = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"].get("exception", {}).get("description", "exception")))
        return message

    def go(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a page at an exact width and in one colour scheme, and waits until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        self.js("1")
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=address)
        while self.js("document.readyState + location.protocol") != "completefile:":
            time.sleep(0.02)

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; what it promises is waited for. No policy of the page stops it."""
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def key(self, key: str, code: int, text: str = "") -> None:
        """Presses a key, as a person does."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Starts a browser with a fresh profile."""
    assert CHROMIUM
    commands, send = os.pipe()
    receive, answers = os.pipe()
    # The browser reads commands from descriptor 3 and answers on 4: ours must stand out of the way of both.
    ours = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20) for descriptor in (commands, answers)]
    for descriptor in (commands, answers):
        os.close(descriptor)
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    program = [CHROMIUM, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _PLACE, *map(str, ours), *program],
        pass_fds=ours,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for descriptor in ours:
        os.close(descriptor)
    try:
        yield Tab(send, receive)
    finally:
        os.close(send)  # it ends when nobody can command it any more
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        process.kill()
        process.wait()
        os.close(receive)
