"""Compiled loops: plain functions over integer arrays, equal with the compiler off."""
