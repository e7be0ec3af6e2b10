"""Bytes through the node's fast network: InfiniBand and RoCE ports, else its own Ethernet cards."""

from __future__ import annotations

from pathlib import Path

from collector.host.kernel_file import content

# Port counters of InfiniBand count lanes of four octets.
_OCTETS = 4
_LOOK_EVERY = 20


class Network:
    """The node's ports. Looked for again every few minutes: ports come and go rarely."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._looks = 0
        self._files: list[tuple[Path, Path, int]] = []

    def counters(self) -> tuple[float | None, float | None]:
        """(received, sent) bytes so far over all ports; None where there is no port."""
        if self._looks % _LOOK_EVERY == 0:
            fast = _ports(self._sys / "class" / "infiniband")
            self._files = fast or _cards(self._sys / "class" / "net")
        self._looks += 1
        pairs = [(_number(rx), _number(tx), unit) for rx, tx, unit in self._files]
        known = [(rx * u, tx * u) for rx, tx, u in pairs if rx is not None and tx is not None]
        if not known:
            return None, None
        return float(sum(rx for rx, _ in known)), float(sum(tx for _, tx in known))


def _ports(folder: Path) -> list[tuple[Path, Path, int]]:
    ports = sorted(folder.glob("*/ports/*"))
    active = [port for port in ports if "ACTIVE" in _text(port / "state")]
    # A port that is down keeps its old count, and is left out.
    return [
        (port / "counters/port_rcv_data", port / "counters/port_xmit_data", _OCTETS)
        for port in active
    ]


def _cards(folder: Path) -> list[tuple[Path, Path, int]]:
    # Bridges, tunnels and pairs of containers have no device and count the same bytes again.
    cards = [card for card in sorted(folder.glob("*")) if (card / "device").exists()]
    return [(card / "statistics/rx_bytes", card / "statistics/tx_bytes", 1) for card in cards]


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _number(file: Path) -> int | None:
    try:
        return int(content(file, 64))
    except (OSError, ValueError):
        return None
