"""Starts the whole service and the agent over and over, from one process that has loaded the code.

Loading it takes longer than a round, so each start is a fork of this process, made before any
thread, store or connection exists; from there on it is `unstrand up` and the agent as they are.
One command per line of standard input, as JSON; the answer is a line, too.
"""

import importlib
import json
import os
import random
import runpy
import signal
import sys
from pathlib import Path

import unstrand.commands.up

for name in ("unstrand.service.run", "collector.agent.run"):
    importlib.import_module(name)  # before the forks, which need them
SPEAK = str(Path(__file__).with_name("speak.py"))


def service(db, port):
    unstrand.commands.up.up(config=None, db=Path(db), host=None, port=int(port))


def agent(*arguments):
    random.seed()
    sys.argv = ["speak.py", *arguments]
    runpy.run_path(SPEAK, run_name="__main__")


def start(name, log, arguments):
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        {"service": service, "agent": agent}[name](*arguments)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except Exception:  # noqa: BLE001 - nothing may return into the launcher
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


def status_of(pid, wait):
    found, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
    return None if found == 0 else os.waitstatus_to_exitcode(status)


for line in sys.stdin:
    asked = json.loads(line)
    if "start" in asked:
        answer = start(asked["start"], asked["log"], asked["arguments"])
    else:
        answer = status_of(asked["status"], asked["wait"])
    print(json.dumps(answer), flush=True)
