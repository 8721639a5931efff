"""A page in headless Chromium, spoken to over its debugging pipe: the standard library is enough."""

import base64
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


class Page:
    """An open page; `problems` are its exceptions and errors on the console."""

    def __init__(self, file: Path, profile: Path, width: int = 1000, height: int = 2000):
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()

        def wire() -> None:  # the browser reads from 3 and writes to 4; copies first: either may be in the way
            inbound, outbound = os.dup(to_browser), os.dup(from_browser)
            high_in, high_out = os.dup2(inbound, 60), os.dup2(outbound, 61)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        arguments = [PROGRAM, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            arguments, preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._watchdog = threading.Timer(120, self._process.kill)  # then reading fails instead of waiting for ever
        self._watchdog.start()
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session, self.problems = b"", 0, None, []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._send(f"{domain}.enable")
        self._send("Page.navigate", url=file.as_uri())
        self._wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page, awaited if it is a promise."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write a picture of the page."""
        file.write_bytes(base64.b64decode(self._send("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def close(self) -> None:
        """End the browser."""
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def _send(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _wait_for(self, event: str) -> None:
        while self._read().get("method") != event:
            pass

    def _read(self) -> dict:
        while b"\0" not in self._buffer:
            received = os.read(self._answers, 1 << 16)
            if not received:
                raise EOFError("the browser ended")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer = json.loads(message)
        method, details = answer.get("method"), answer.get("params", {})
        if method == "Runtime.exceptionThrown" or details.get("type") in ("error", "warning"):
            self.problems.append(details)
        if method == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"])
        return answer
