"""Bytes through the node's fast network: InfiniBand and RoCE ports, else its own Ethernet cards."""

from __future__ import annotations

from pathlib import Path

# Port counters of InfiniBand count lanes of four octets.
_OCTETS = 4


def counters(sys: Path) -> tuple[float | None, float | None]:
    """(received, sent) bytes so far over all ports; None where there is no port."""
    ports = _ports(sys / "class" / "infiniband") or _cards(sys / "class" / "net")
    if not ports:
        return None, None
    return float(sum(rx for rx, _ in ports)), float(sum(tx for _, tx in ports))


def _ports(folder: Path) -> list[tuple[int, int]]:
    found = []
    for port in sorted(folder.glob("*/ports/*")):
        if "ACTIVE" not in _text(port / "state"):
            continue  # a port that is down keeps its old count
        rx = _number(port / "counters" / "port_rcv_data")
        tx = _number(port / "counters" / "port_xmit_data")
        if rx is not None and tx is not None:
            found.append((rx * _OCTETS, tx * _OCTETS))
    return found


def _cards(folder: Path) -> list[tuple[int, int]]:
    found = []
    for card in sorted(folder.glob("*")):
        if not (card / "device").exists():
            continue  # bridges, tunnels and pairs of containers count the same bytes again
        rx = _number(card / "statistics" / "rx_bytes")
        tx = _number(card / "statistics" / "tx_bytes")
        if rx is not None and tx is not None:
            found.append((rx, tx))
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
