"""Pieces of pages: functions from figures to HTML, without Streamlit, and small Streamlit ones."""
