"""A page in headless Chromium, driven over the pipe that Chromium itself offers: no other package is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import unittest

CHROMIUM = shutil.which("chromium")
PATIENCE = 60  # seconds, for any single answer


class Browser:
    def __init__(self):
        self.home = tempfile.mkdtemp()
        ours, theirs = os.pipe(), os.pipe()  # what it reads, what it writes

        def connect():  # it reads from descriptor 3 and writes to 4
            ends = [os.dup2(os.dup(fd), 60 + i) for i, fd in enumerate((ours[0], theirs[1]))]
            for i, fd in enumerate(ends):
                os.dup2(fd, 3 + i, inheritable=True)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
             "--disable-dev-shm-usage", "--enable-precise-memory-info", f"--user-data-dir={self.home}", "about:blank"],
            preexec_fn=connect, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.home})
        os.close(ours[0])
        os.close(theirs[1])
        self.input, self.output = ours[1], theirs[0]
        self.number = 0
        self.buffer = b""
        self.listeners = []

    def close(self):
        os.close(self.input)  # it ends with its pipe
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.output)
        shutil.rmtree(self.home, ignore_errors=True)

    def _message(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            if not select.select([self.output], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.output, 1 << 20)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        number = self.number
        request = {"id": number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        data = memoryview(json.dumps(request).encode() + b"\0")
        while data:
            data = data[os.write(self.input, data):]
        while True:
            message = self._message()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            for listener in self.listeners:
                listener(message)


KEYS = {"Tab": 9, "Escape": 27, "Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}


class Page:
    """A tab. Keeps what it asked the network for and what it complained about."""

    def __init__(self, browser, width=1400, height=900):
        self.browser = browser
        self.requests, self.complaints = [], []
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.listeners.append(self._hear)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def _hear(self, message):
        if message.get("sessionId") != self.session:
            return
        method, parameters = message["method"], message["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:1000])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:1000])

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path, hash=""):
        """Waits until the report is painted."""
        self.call("Page.navigate", url="about:blank")
        self.requests.clear()
        self.call("Page.navigate", url=(str(path) if "://" in str(path) else f"file://{path}") + hash)
        self.wait("document.getElementById('app')?.getAttribute('aria-busy') === 'false'")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
        return True

    def painted(self):
        """Waits for the next picture."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, key):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        common = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.painted()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.painted()

    def click(self, x, y, button="left"):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)
        self.painted()

    def drag(self, begin, end):
        for kind, (x, y) in (("mousePressed", begin), ("mouseMoved", end), ("mouseReleased", end)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.painted()

    def download_to(self, directory):
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(directory))

    def downloaded(self, directory):
        """The one file that comes there."""
        end = time.monotonic() + PATIENCE
        while True:
            files = [file for file in directory.iterdir() if not file.name.endswith(".crdownload")]
            if files and files[0].stat().st_size > 0:
                return files[0]
            if time.monotonic() > end:
                raise TimeoutError(f"no file in {directory}")
            self.painted()

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.listeners.remove(self._hear)
        self.browser.call("Target.closeTarget", targetId=self.target)


class WithPage(unittest.TestCase):
    """A page for each test, in one browser for all of a class."""

    @classmethod
    def setUpClass(cls):
        if os.environ.get("SANITIZE"):
            raise unittest.SkipTest("what runs in a browser is no work of the sanitizers'")
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.page = Page(self.browser)
        self.addCleanup(self.page.close)
