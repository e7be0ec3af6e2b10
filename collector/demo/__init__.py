"""A synthetic cluster with known faults, so that every page has something true to show."""

from collector.demo.fleet import CLUSTER, SINCE, UNTIL
from collector.demo.generate import DEFAULT_SEED, DemoFacts, generate, simulate
from collector.demo.planted import PLANTED, Fault
from collector.demo.teams import MEMBERSHIPS, Membership
from collector.demo.write import holds_demo, write_demo

__all__ = [
    "CLUSTER",
    "DEFAULT_SEED",
    "MEMBERSHIPS",
    "PLANTED",
    "SINCE",
    "UNTIL",
    "DemoFacts",
    "Fault",
    "Membership",
    "generate",
    "holds_demo",
    "simulate",
    "write_demo",
]
