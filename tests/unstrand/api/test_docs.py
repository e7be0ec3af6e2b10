"""The documentation opens on a machine that reaches nothing."""

from __future__ import annotations

import re


def test_the_page_names_every_operation_and_loads_nothing(api):
    description = api.get("/openapi.json").json()
    page = api.get("/docs").text
    for path in description["paths"]:
        assert f"/api/v1{path}" in page
    assert not re.search(r"(src|href)=['\"]?(https?:)?//", page)
    assert "<script" not in page


def test_the_description_has_a_text_for_every_query_parameter(api):
    for path, methods in api.get("/openapi.json").json()["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            for parameter in operation.get("parameters", []):
                named = parameter["in"] == "path" or parameter.get("description")
                assert named, f"{path} {parameter['name']}"
