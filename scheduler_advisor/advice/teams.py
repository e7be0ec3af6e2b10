"""Which team an account, user or project belonged to at one instant, from the org map."""

from __future__ import annotations

from datetime import datetime

from analytics.org import UNMAPPED, OrgMap
from collector.store import Work


class Teams:
    """The org map; a split goes to its largest part here, where one owner is asked."""

    def __init__(self, work: Work) -> None:
        self._map = OrgMap.load(work)

    def of(self, cluster: str, at: datetime, **names: str | None) -> str | None:
        """The team of a holder's ``project, account, user_name, queue``; None = unmapped."""
        holder = {"cluster": cluster, "project": None, "account": None, "user_name": None, **names}
        owners = self._map.owners(holder, at)
        team = max(owners, key=lambda owner: owner.ratio_ppm).team
        return None if team == UNMAPPED else team
