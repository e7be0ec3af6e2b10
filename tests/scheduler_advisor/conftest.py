"""What all tests of this folder may use."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("outline", Path(__file__).parents[1] / "outline.py")
_outline = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_outline)


@pytest.fixture(scope="session")
def outline():
    """``outline(html)``: words, structure and plots' data of a page as lines."""
    return _outline.outline_of
