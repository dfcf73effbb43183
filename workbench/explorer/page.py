"""The page as one file: stylesheet, script and data inlined, nothing fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from workbench import __version__
from workbench.explorer.figures import plain

__all__ = ["asset", "page", "policy", "script"]

_PACKED = 1 << 20  # characters of data from where they are compressed
_SCRIPTS = ("charts.js", "parts.js", "explorer.js")  # one module, in this order, and a host after them


@cache
def asset(name: str) -> str:
    """A file of the page."""
    return resources.files("workbench.explorer").joinpath("assets", name).read_text("utf-8")


@cache
def script(host: str = "page.js") -> str:
    """The drawing module with its host, as one module: of a page, or of a notebook's widget ("widget.js")."""
    return "\n".join(map(asset, (*_SCRIPTS, host)))


def policy(*, live: bool) -> str:
    """The content security policy: this script alone, pictures from the file itself, no connection but a live page's
    to its own server."""
    mark = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src 'sha256-{mark}'; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page(title: str, data: Mapping[str, Any]) -> str:
    """The page. data: what it shows, JSON-ready; its mode is "live" (asks the server) or "document".

    In the JSON every "<" is escaped, so that no text in it can end the element it stands in; a long one is compressed.
    """
    content = json.dumps(plain({"version": __version__, **data}), allow_nan=False, ensure_ascii=False)
    packed = len(content) > _PACKED
    if packed:  # base64 has no "<" either
        content = base64.b64encode(zlib.compress(content.encode(), 9)).decode()
    content = content.replace("<", "\\u003c")
    live = data.get("mode") == "live"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(live=live))}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>
{asset("explorer.css")}</style>
</head>
<body>
<div id="app"><noscript>This page draws its figures with JavaScript.</noscript></div>
<script type="application/json" id="data"{" data-packed" if packed else ""}>{content}</script>
<script type="module">{script()}</script>
</body>
</html>
"""
