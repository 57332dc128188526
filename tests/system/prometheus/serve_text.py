#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""serve_text.py PORT FILE...: serves the texts of the files at /0, /1 and so on as OpenMetrics, like an exporter."""
import http.server
import sys
from pathlib import Path


class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        text = Path(sys.argv[2 + int(self.path.split("?")[0].strip("/"))]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Exporter).serve_forever()
