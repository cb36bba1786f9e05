"""The page at /: one file without a network, and the policy that lets nothing else run in it."""

import base64
import hashlib
import re
from importlib.resources import files


class Page:
    """The page, and its Content-Security-Policy: its own script and style, and requests to its own server."""

    def __init__(self) -> None:
        self.html = files("supertopic.serve").joinpath("page.html").read_text(encoding="utf-8")
        script, style = (digests(self.html, tag) for tag in ("script", "style"))
        self.policy = (
            f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )


def digests(html: str, tag: str) -> str:
    """The hashes of all inline scripts or styles."""
    parts = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in parts)
