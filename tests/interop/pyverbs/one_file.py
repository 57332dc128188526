#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""one_file.py FOLDER MODULE SECONDS [NAME...]: runs rdma-core's Python tests of one file; with NAMEs only those whose name
contains one. Prints a line of JSON for each test. A test that takes longer than SECONDS ends the process."""

import faulthandler
import json
import sys
import unittest


class Reporter(unittest.TestResult):
    """Prints each result immediately, so that a process that crashes has reported all tests that ended before."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def startTest(self, test):
        faulthandler.dump_traceback_later(self.seconds, exit=True)
        super().startTest(test)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def say(self, test, outcome, detail=""):
        # If a class is skipped or fails as a whole, the name of the test is "setUpClass
        # (module.Class)".
        print(json.dumps({"test": test.id().removeprefix("tests."), "outcome": outcome, "detail": detail}), flush=True)

    def addSuccess(self, test):
        self.say(test, "ok")

    def addSkip(self, test, reason):
        self.say(test, "skipped", reason)

    def addFailure(self, test, err):
        self.say(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.say(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.say(test, "failed", self._exc_info_to_string(err, test))


def tests_of(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from tests_of(entry)
        else:
            yield entry


def main():
    folder, module, seconds, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    sys.argv[1:] = ["-v"]
    sys.path[:0] = [folder, f"{folder}/tests", f"{folder}/root/usr/lib/python3/dist-packages"]
    from args_parser import parser

    parser.parse_args()
    suite = unittest.TestSuite()
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromName(f"tests.{module}")):
        if not names or any(name in test.id() for name in names):
            print(json.dumps({"test": test.id().removeprefix("tests."), "outcome": "listed"}), flush=True)
            suite.addTest(test)
    suite.run(Reporter(seconds))


if __name__ == "__main__":
    main()
