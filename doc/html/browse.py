#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""browse.py FOLDER: browses the HTML manual in FOLDER with a headless Chromium, as a reader would.

The folder is served on loopback. The browser opens the index of versions and clicks links of each kind. Each page must
show the expected text, and each request for a page, style sheet or picture must succeed and stay on this server.
"""

import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_S = 30  # for the browser's start and for each page, on a busy machine
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,900",
         "--remote-debugging-pipe")


class Browser:
    """One page of a Chromium, controlled by the DevTools protocol over two pipes. A zero byte ends each message."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.come, to_write = os.pipe()
        # The browser expects the pipes at descriptors 3 and 4. A pipe may already have one of
        # these numbers, so both are copied to 8 and 9 first.
        script = f"exec 8<&{to_read} 9>&{to_write}; exec 3<&8 4>&9 8<&- 9>&-; exec \"$@\""
        self.process = subprocess.Popen(["bash", "-c", script, "bash", program, *FLAGS, f"--user-data-dir={profile}"],
                                        pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.count, self.pending, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _message(self, until):
        while b"\0" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.come], [], [], left)[0]:
                raise TimeoutError(f"the browser says nothing within {LIMIT_S} s")
            piece = os.read(self.come, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self.pending += piece
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + LIMIT_S
        while True:
            message = self._message(until)
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, what, script):
        """
        Waits until an expression of the page is true. The expression is evaluated repeatedly, because the protocol
        does not report the end of a click's effect.
        """
        end = time.monotonic() + LIMIT_S
        while not self.value(script):
            if time.monotonic() > end:
                raise AssertionError(f"{self.value('location.href')}: {what} is not there: "
                                     f"{self.value('document.body.innerText')[:300]!r}")
            time.sleep(0.05)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(LIMIT_S)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def loaded(browser, what, path, text):
    """Waits until the page of this path is shown and contains this text."""
    browser.until(what, f"document.readyState == 'complete' && location.pathname.endsWith({json.dumps(path)})")
    browser.until(f"'{text}'", f"document.body.innerText.includes({json.dumps(text)})")
    print(f"{what}: {browser.value('location.pathname + location.hash')}")


def click(browser, words):
    """Clicks the link with these words, which has to be visible."""
    found = browser.value(f"""(() => {{
        const link = [...document.querySelectorAll('a')].find(a => a.textContent.trim() == {json.dumps(words)});
        if (!link || !link.getClientRects().length) return false;
        link.click(); return true; }})()""")
    if not found:
        raise AssertionError(f"{browser.value('location.href')} has no link '{words}'")


def walk(browser, base, version):
    """Follows links of each kind: versions, manual pages, documents, anchors, sources, pictures, and back."""
    browser.call("Page.navigate", url=f"{base}/index.html")
    loaded(browser, "all versions", "/index.html", "rpma: manuals")
    click(browser, f"rpma {version}")
    loaded(browser, "the index", f"/{version}/index.html", "librpmirror and rpmirrord")
    click(browser, "rpma-serve(1)")
    loaded(browser, "a manual page", "/man/rpma-serve.1.html", "SYNOPSIS")
    click(browser, "rpma-put(1)")
    loaded(browser, "from page to page", "/man/rpma-put.1.html", "rpma put")
    click(browser, f"rpma {version}")
    loaded(browser, "back to the index", f"/{version}/index.html", "Files")
    click(browser, "rpmirrord.conf(5)")
    loaded(browser, "a file's format", "/man/rpmirrord.conf.5.html", "secret-file")
    browser.call("Page.navigate", url=f"{base}/{version}/README.html")
    loaded(browser, "the README", "/README.html", "When not")
    browser.until("each picture", "document.images.length > 0 && [...document.images].every(i => i.naturalWidth > 0)")
    click(browser, "librpma(7)")
    loaded(browser, "from a document to a manual page", "/man/librpma.7.html", "rpma_conn_req_connect")
    click(browser, "doc/tutorial.md")
    loaded(browser, "from a manual page to a document", "/doc/tutorial.html", "one-sided")
    click(browser, "common.c")
    loaded(browser, "a source file", "/examples/common.c.html", "#include")
    browser.call("Page.navigate", url=f"{base}/{version}/tests/README.html")
    loaded(browser, "a document with anchors", "/tests/README.html", "Rows and phases")
    click(browser, "doc/mirror.md")
    loaded(browser, "an anchor", "/doc/mirror.html", "The failure matrix")
    browser.until("the anchor's place", "location.hash == '#the-failure-matrix' && window.scrollY > 200")


def judge(browser, base):
    """Checks that every request of the browser was answered, by this server."""
    asked, faults = {}, []
    browser.call("Runtime.evaluate", expression="0")  # its answer comes after all earlier events
    for event in browser.events:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            asked[params["requestId"]] = params["request"]["url"]
            if not params["request"]["url"].startswith((base, "data:", "about:")):
                faults.append(f"{params['request']['url']} is elsewhere")
        elif event.get("method") == "Network.responseReceived" and params["response"]["status"] >= 400:
            faults.append(f"{params['response']['url']}: status {params['response']['status']}")
        elif event.get("method") == "Network.loadingFailed":
            faults.append(f"{asked.get(params['requestId'])}: {params['errorText']}")
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            faults.append(f"the browser's log: {params['entry']['text']}")
    return len(asked), faults


def newest(folder):
    return max((name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))),
               key=lambda name: os.path.getmtime(os.path.join(folder, name)))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = shutil.which("chromium")
    if not program:
        sys.exit("there is no chromium")
    folder = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            walk(browser, base, newest(folder))
            count, faults = judge(browser, base)
        finally:
            browser.close()
    print("\n".join(faults) or f"{count} requests, all answered")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
