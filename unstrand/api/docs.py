"""The documentation page at /api/v1/docs, made from the API's own description.

The usual pages load their scripts from a content network; this one must open on a machine that
reaches nothing, so it is plain HTML without a script.
"""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.responses import HTMLResponse

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b2430;background:#fff;max-width:60rem;
margin:2rem auto;padding:0 1rem}
h2{font-size:1.05rem;margin:2rem 0 .25rem;border-top:1px solid #dde3ea;padding-top:1rem}
code,.m{font:13px ui-monospace,monospace}
.m{background:#0b5c8e;color:#fff;padding:.1rem .4rem;border-radius:3px}
table{border-collapse:collapse;margin:.5rem 0}
td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}
th{font-weight:600;color:#52606f}
"""


def install(app: FastAPI) -> None:
    """Serve the page at /docs of ``app``."""

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))


def page(description: dict[str, Any]) -> str:
    """The HTML page of an OpenAPI description."""
    parts = [
        _operation(path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    title = escape(description["info"]["title"])
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title} API</title>"
        "<meta name='viewport' content='width=device-width'>"
        f"<link rel='icon' href='data:,'><style>{_STYLE}</style><h1>{title} API</h1>"
        f"<p>{escape(description['info']['description'])} For programs: "
        "<a href='openapi.json'>openapi.json</a>. Every refusal is "
        '<code>{"error": {"what", "where", "remedy"}}</code>.</p>' + "".join(parts) + "</html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = "".join(_parameter(parameter) for parameter in operation.get("parameters", []))
    table = f"<table><tr><th>parameter<th>type<th>meaning</tr>{rows}</table>" if rows else ""
    text = escape(operation.get("description", operation.get("summary", "")))
    head = f"<h2><span class='m'>{method.upper()}</span> <code>/api/v1{escape(path)}</code></h2>"
    return f"{head}<p>{text}</p>{table}"


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    kinds = [schema, *schema.get("anyOf", [])]
    kind = next((k.get("format") or k["type"] for k in kinds if "type" in k), "")
    star = "" if parameter.get("required") else " (optional)"
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code>{star}<td>{escape(kind)}"
        f"<td>{escape(parameter.get('description', ''))}</tr>"
    )
