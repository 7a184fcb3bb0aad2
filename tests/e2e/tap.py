# SPDX-License-Identifier: MIT
"""A small TAP producer, the Python twin of tests/tap.h.

    from tap import test, expect, equal, skip, run

    @test
    def what_is_shown():
        equal(1 + 1, 2)

    run()

One TAP line a test. A failed expect() ends its test and says where. skip("why") ends a test that
this machine cannot run; with FRESHET_NO_SKIP set that is a failure.
"""
import os
import sys
import traceback

_tests = []


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def test(function):
    _tests.append(function)
    return function


def skip(why):
    raise Skipped(why)


def note(text):
    for line in str(text).splitlines():
        print("#", line.encode("ascii", "backslashreplace").decode(), flush=True)


def expect(condition, what="expected something else"):
    if not condition:
        raise Failed(what)


def equal(got, wanted, what=""):
    if got != wanted:
        raise Failed(f"{what + ': ' if what else ''}got {got!r}, wanted {wanted!r}")


def run(teardown=None):
    """Runs the tests (those named as arguments, else all), then teardown(), and exits."""
    only = sys.argv[1:]
    failed = 0
    print(f"1..{len(_tests)}", flush=True)
    for number, function in enumerate(_tests, 1):
        name, ok, end = function.__name__, True, ""
        try:
            if only and name not in only:
                end = " # SKIP not asked for"
            else:
                function()
        except Skipped as why:
            end = f" # SKIP {why}"
            ok = not os.environ.get("FRESHET_NO_SKIP")
        except Failed as why:
            ok = False
            for frame in traceback.extract_tb(sys.exc_info()[2])[1:-1]:
                note(f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}")
            note(why)
        except Exception:  # a test must not keep the others from running
            ok = False
            note(traceback.format_exc())
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {number} {name}{end}", flush=True)
    if teardown:
        teardown()
    sys.exit(1 if failed else 0)
