# SPDX-License-Identifier: MIT
"""What the command line's tests share: a /run of their own, so that no other serve is met."""
import os
import re
import shutil
import sys
import tempfile
import atexit

from freshet import FRESHET, freshet
from tap import equal, expect

FALLBACK = r"^freshet: {}; collecting in-process \((bpf|files: .*)\)\n$"


def private_run():
    """Goes on in a mount namespace with an empty /run; without privilege, with an empty
    XDG_RUNTIME_DIR."""
    if os.environ.get("FRESHET_PRIVATE_RUN"):
        return
    os.environ["FRESHET_PRIVATE_RUN"] = "1"
    if os.geteuid() == 0:
        os.execvp("unshare", ["unshare", "-m", "sh", "-c",
                              'mount -t tmpfs -o mode=755 none /run && exec "$@"', "sh",
                              sys.executable, *sys.argv])
    directory = tempfile.mkdtemp(prefix="freshet-test-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["XDG_RUNTIME_DIR"] = directory


def works(*arguments, stderr=r"^$", **more):
    """Standard output of a command that must succeed, with standard error as expected."""
    done = freshet(*arguments, **more)
    equal(done.returncode, 0, f"exit code of {arguments}: {done.stderr}")
    expect(re.search(stderr, done.stderr), f"stderr of {arguments}: {done.stderr!r}, not {stderr}")
    return done.stdout


def fails(code, stderr, *arguments, **more):
    """A command that must fail, with nothing on standard output."""
    done = freshet(*arguments, **more)
    equal(done.returncode, code, f"exit code of {arguments}: {done.stderr}")
    expect(re.search(stderr, done.stderr), f"stderr of {arguments}: {done.stderr!r}, not {stderr}")
    equal(done.stdout, "", f"stdout of {arguments}")


def cpu_stat(directory):
    with open(os.path.join(directory, b"cpu.stat")) as f:
        return {key: int(value) for key, value in (line.split() for line in f)}


def shown(text):
    """Output of show as a dictionary."""
    return dict(line.split(None, 1) for line in text.splitlines())


def public_copy():
    """A copy of the program that every user may run."""
    directory = tempfile.mkdtemp(prefix="freshet-test-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o755)
    path = os.path.join(directory, "freshet")
    shutil.copyfile(FRESHET, path)
    os.chmod(path, 0o755)
    return path
