"""``sacctmgr -P show assoc``: what accounts and users may hold, as settings of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collector.slurm.refusal import refusal

FORMAT = "cluster,account,user,partition,parentname,fairshare,grpjobs,grptres,maxjobs"
COMMAND = ("sacctmgr", "-P", "show", "assoc", f"format={FORMAT}")
REMEDY = f"Write the file with `{' '.join(COMMAND)}`"
LIMITS = ("GrpTRES", "GrpJobs", "MaxJobs", "Share")
# Headings as the versions of Slurm spell them, without spaces and in lower case.
_NAMES = {
    "cluster": "Cluster", "account": "Account", "user": "User", "partition": "Partition",
    "parname": "Parent", "parentname": "Parent", "share": "Share", "shares": "Share",
    "fairshare": "Share", "rawshares": "Share", "grpjobs": "GrpJobs", "grptres": "GrpTRES",
    "maxjobs": "MaxJobs",
}  # fmt: skip
_UNSET = {"Share": ("", "1", "parent")}


def associations(text: str, cluster: str = "") -> dict[str, str]:
    """Settings ``account.NAME.KEY`` and ``user.ACCOUNT/USER.KEY``; what says nothing is left out.

    ``cluster``: whose rows count where the text holds several clusters'. A user's limit that is its
    account's own is the account's; an association that is bound to a partition is named
    ``user.ACCOUNT/USER@PARTITION``. Empty where the text shows no such table.
    """
    rows = list(_rows(text))
    several = len({row.get("Cluster", "") for row in rows}) > 1
    found: dict[str, str] = {}
    for row in rows:
        if several and row.get("Cluster") != cluster:
            continue
        found |= _settings(row)
    return {key: value for key, value in found.items() if not _inherited(key, value, found)}


def checked(source: str, text: str, cluster: str) -> dict[str, str]:
    """`associations` of a file. Raises ImportRefusedError where it is no such table."""
    heading = _heading(text)
    missing = [name for name in ("Account", "User", "GrpTRES") if name not in heading]
    if missing:
        raise refusal(source, 1, f"no column {', '.join(missing)}", REMEDY)
    return associations(text, cluster)


def _rows(text: str) -> Iterator[dict[str, str]]:
    names = _heading(text)
    if "Account" not in names:
        return
    for line in [line for line in text.splitlines() if line.strip()][1:]:
        yield {name: value.strip() for name, value in zip(names, line.split("|"), strict=False)}


def _heading(text: str) -> list[str]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return [_NAMES.get(name.strip().replace(" ", "").lower(), name) for name in first.split("|")]


def _settings(row: Mapping[str, str]) -> dict[str, str]:
    account, user, part = (row.get(name, "") for name in ("Account", "User", "Partition"))
    if not account:
        return {}
    head = f"user.{account}/{user}" if user else f"account.{account}"
    head += f"@{part}" if part else ""
    found = {
        f"{head}.{name}": row[name]
        for name in LIMITS
        if name in row and row[name] not in _UNSET.get(name, ("",))
    }
    if not user and row.get("Parent"):
        found[f"{head}.Parent"] = row["Parent"]
    return found


def _inherited(key: str, value: str, found: Mapping[str, str]) -> bool:
    """Whether a user's limit is only what its account hands down."""
    if not key.startswith("user."):
        return False
    owner, _, column = key[len("user.") :].rpartition(".")
    above = found.get(f"account.{owner.partition('/')[0]}.{column}")
    return column == "MaxJobs" and above == value
