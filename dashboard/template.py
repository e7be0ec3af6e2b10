"""The house template of every chart: quiet axes, direct labels, nothing that moves by itself."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from dashboard.palette import ACCENT, INK, LINE, MUTED, PAPER

FONT = '"Source Sans", "Source Sans Pro", "Noto Sans CJK KR", system-ui, sans-serif'
_AXIS = {
    "gridcolor": LINE,
    "linecolor": LINE,
    "zeroline": False,
    "tickfont": {"color": MUTED, "size": 12},
    "title": {"font": {"color": MUTED, "size": 12}, "standoff": 8},
    "automargin": True,
}
TEMPLATE = go.layout.Template(
    layout={
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "colorway": [ACCENT],
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "hoverlabel": {"bgcolor": PAPER, "bordercolor": LINE, "font": {"color": INK}},
        "showlegend": False,
        "separators": ".,",
        "dragmode": False,
    }
)
_CONFIG = {"displayModeBar": False, "responsive": True, "scrollZoom": False}


def draw(figure: go.Figure, *, key: str, height: int) -> None:
    """Put ``figure`` on the page in the house template."""
    figure.update_layout(template=TEMPLATE, height=height)
    st.plotly_chart(figure, key=key, theme=None, config=_CONFIG)


def draw_choice(figure: go.Figure, *, key: str, height: int) -> list[float]:
    """As `draw`; returns the y of the marks that were clicked since the page was opened."""
    figure.update_layout(template=TEMPLATE, height=height)
    state = st.plotly_chart(
        figure, key=key, theme=None, config=_CONFIG, on_select="rerun", selection_mode="points"
    )
    return [point["y"] for point in state.selection.points]
