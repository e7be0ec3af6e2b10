"""What somebody is refused on a page is said in the page's language."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest

import scheduler_advisor
from scheduler_advisor.engine import Cluster, Jobs, Policy, simulate
from scheduler_advisor.engine.parts import fluid_run
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.messages import Words, catalogue
from scheduler_advisor.messages.refusals import said
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.withheld import WithheldError

PACKAGE = Path(scheduler_advisor.__file__).parent
FIELD = re.compile(r"\{[^}]*\}")
PLACES = ("engine", "whatif", "readers/store.py", "crew.py", "running/runs.py", "advice/states.py")
ELSEWHERE = ("engine/packing",)  # packing is a command, no page
# Faults of the program, or of a file that only a command reads.
NOT_A_PAGES = {
    "cluster: two nodes have the same name", "cluster: {} has not one value per node",
    "cluster: {} names node {}, which is not there", "jobs: unknown columns {}; known: {}",
    "jobs: column {} is missing", "jobs: column {} has shape {}, not ({},)",
    "jobs: column {} holds fractions; round half up while reading",
    "jobs: gpu_milli above 1000; ask for whole GPUs per task instead",
    "jobs: {} is {} in row {}; must be 0 or more",
    "parts: GPU-seconds do not add up: {} by job, {} by time",
    "links: the last row must be *, for models that the table lacks",
    "links: line {}: {}; columns as in links.csv", "nobody waits for it any more",
    "the worker processes have been ended", "cancelled",
}  # fmt: skip


def sentence(node, names=None):
    """The text of a string, its fields as {} but those that ``names`` tells."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    told = names or {}
    return "".join(
        told.get(ast.unparse(part.value), "{}") if isinstance(part, ast.FormattedValue)
        else part.value
        for part in node.values
    )  # fmt: skip


def raised():
    """The sentences of every error of ours that is raised in PLACES."""
    for place in PLACES:
        path = PACKAGE / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if str(file.relative_to(PACKAGE)).startswith(ELSEWHERE):
                continue
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    name = ast.unparse(node.exc.func)
                    text = sentence(node.exc.args[0]) if node.exc.args else None
                    if text and name.endswith("Error") and not hasattr(builtins, name):
                        yield text


def known(table):
    return {FIELD.sub("{}", text) for key, text in catalogue("en").items() if key.startswith(table)}


def test_every_sentence_that_a_page_may_be_refused_with_is_known_and_no_other():
    found = set(raised())
    assert found >= NOT_A_PAGES
    of_a_function = "policy: no key {}; known keys: {}"  # made elsewhere than it is raised
    assert known("refused.") == found - NOT_A_PAGES | {of_a_function}


def test_every_part_of_what_does_not_go_together_is_known():
    names = {"TIMED": fluid_run.TIMED, "AT_ONCE": fluid_run.AT_ONCE}
    tree = ast.parse(inspect.getsource(fluid_run.check_fluid))
    [asked] = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    others = {"services", "the plain driver"}
    assert known("refused_part.") == {sentence(key, names) for key in asked.keys} | others


def tried(values=(), base="today", **more):
    """What somebody wishes, replayed on a small cluster."""
    wish = Wish(base, tuple(values), **more)
    cluster = Cluster.uniform(8, 8).with_nodes(wish.world.nodes)
    simulate(Jobs.build(submit=[0], run=[60], gpus=[1]), cluster, wish.policy(Policy()))


@pytest.mark.parametrize(
    ("wish", "korean"),
    [
        ({"values": [("colour", "red")]}, "colour라는 키가 없습니다. 아는 키: backfill"),
        ({"values": [("order", "best")]}, "order = best: 다음 중 하나여야 합니다: fifo"),
        ({"values": [("backfill.depth", "x")]}, "backfill.depth = x: 정수여야 합니다"),
        ({"values": [("backfill.depth", "-1")]}, "backfill_depth 값이 -1입니다. 0 이상"),
        ({"values": [("topology.oversubscription", "x")]}, "수여야 합니다"),
        ({"values": [("preemption.grace_s", "-5")]}, "preemption.grace_s 값이 -5입니다"),
        ({"values": [("quota.queues.a.maximum", "1"), ("quota.queues.a.guarantee", "2")]},
         "quota.queues.a: 최대(1)가 보장(2)보다 작습니다"),
        ({"values": [("gang", "maybe")]}, "gang = maybe: true나 false여야 합니다"),
        ({"base": "best"}, "프리셋 best가 없습니다"),
        ({"base": "order ="}, "TOML이 아닙니다"),
        ({"values": [("gang", "false"), ("backfill", "easy")]},
         "gang = false는 backfill none이나 greedy와만"),
        ({"values": [("backfill", "conservative"), ("placement", "fgd")]}, "배치 fgd로는 점수를"),
        ({"values": [("topology.level", "leaf")]}, "placement = topology와 함께 씁니다"),
        ({"values": [("topology.level", "shelf"), ("placement", "topology")]},
         "topology.level = shelf: 다음 중 하나여야 합니다: island"),
        ({"values": [("defrag", "pending"), ("backfill", "conservative"), ("preemption", "none"),
                     ("preemption.eligible", "all")]},
         "함께 쓸 수 없습니다: defrag = pending / backfill conservative(backfill은 다음 중"),
        ({"nodes": -8}, "클러스터: 남는 노드가 없습니다"),
        ({"load": 9.0}, "가정: 부하는 0.1~5"),
        ({"alter": "cap_everything"}, "요청 변경 cap_everything가 없습니다"),
    ],
)  # fmt: skip
def test_a_wish_is_refused_in_the_language_of_the_page(wish, korean):
    with pytest.raises(AdvisorError) as error:
        tried(**wish)
    english = str(error.value)
    assert korean in said(english, Words("ko"))
    assert said(english, Words("en")) == english


def test_why_nothing_was_replayed_is_said_in_one_language():
    error = ReaderError("no job of the window can be replayed: none of them ran")
    text = WithheldError("no_history", {"error": str(error)}).said(Words("ko"))
    assert "이 기간의 작업은 하나도 실행되지 않아" in text
    assert "no job" not in text


def test_what_nobody_foresaw_is_said_as_it_was_raised():
    assert said("KeyError: 'x'", Words("ko")) == "KeyError: 'x'"
