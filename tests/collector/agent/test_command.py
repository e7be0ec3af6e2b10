"""`unstrand agent` from the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collector.agent.spool import Spool
from collector.ingest.tokens import issue

SECRET = b"a secret that is long enough for it"


@pytest.fixture
def command(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [
                sys.executable, "-m", "unstrand", "agent", "--state", str(tmp_path / "state"),
                "--listen", "127.0.0.1:0", "--interval", "1", *map(str, arguments),
            ],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def test_once_reads_delivers_and_ends(command, service, store, tmp_path, stub_library, scenario):
    service.secret = SECRET
    token = tmp_path / "token"
    token.write_text(issue(SECRET, "gpu-7") + "\n")
    answer = command(
        "--server", service.url, "--node", "gpu-7", "--once", "--token-file", token,
        "--nvml-library", stub_library,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert store.value("SELECT count(*) FROM sample WHERE node = 'gpu-7'") >= 2


def test_once_without_a_service_keeps_what_it_read_and_says_so(
    command, tmp_path, stub_library, scenario
):
    answer = command("--server", "http://127.0.0.1:9", "--once", "--nvml-library", stub_library)
    assert answer.returncode == 1
    assert "cannot be reached" in answer.stderr
    assert Spool(tmp_path / "state" / "spool").batches >= 2


def test_a_token_for_a_node_is_made_from_the_secret(tmp_path):
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    answer = subprocess.run(
        [
            sys.executable, "-m", "unstrand", "agent-token", "gpu-7",
            "--secret-file", str(tmp_path / "secret"),
        ],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert answer.stdout.strip() == issue(SECRET, "gpu-7")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "9435"), "give an address and a port"),
        (("--token-file", "/no/such/file"), "No such file"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_in_one_line(command, arguments, words):
    answer = command("--server", "http://127.0.0.1:9", *arguments)
    assert answer.returncode == 1
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
