"""The script that Streamlit runs for every page view."""

from __future__ import annotations

import streamlit as st

st.title("unstrand")
