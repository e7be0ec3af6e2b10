"""A hand-over to YARN while it is made."""

from __future__ import annotations

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.site import Beside, Site
from scheduler_advisor.handover.yarn.properties import EMPTY, Properties

CAPACITY, SITE = "capacity-scheduler.xml", "yarn-site.xml"
HEAD = "yarn.scheduler.capacity"
MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity"
    ".ProportionalCapacityPreemptionPolicy"
)
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


class YarnDraft(Draft):
    """With the two files."""

    __slots__ = ("capacity", "site_file")

    def __init__(self, change: Change, site: Site, beside: Beside) -> None:
        super().__init__(change, site, beside)
        self.capacity = Properties(site.files.get(CAPACITY, EMPTY), CAPACITY)
        self.site_file = Properties(site.files.get(SITE, EMPTY), SITE)

    def monitor(self) -> None:
        """What watches the queues and takes containers back."""
        self.site_file.set(MONITOR, "true")
        self.site_file.set(POLICIES, POLICY)
