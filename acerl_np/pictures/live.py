"""The page that shows a service as it runs; what it shows comes from the service that it came from."""

from __future__ import annotations

from acerl_np.pictures.replay import fill_page

HEAD = '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">'


def make_live_page() -> tuple[str, str]:
    """Return the page as HTML, and its Content-Security-Policy, which goes into a header.

    The page holds nothing of a floor. It talks to the host that it came from, and to no other.
    """
    html, policy = fill_page("live", ("replay.css", "live.css"), "Dispatcher", HEAD)
    own = "connect-src 'self'; img-src data:; frame-ancestors 'none'"
    return html, f"{policy}; {own}"
