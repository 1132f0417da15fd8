"""The full-screen cockpit: the Textual application, its screens and its controllers."""

from __future__ import annotations

import os

# Textual reads on import how often it may paint. At its 60 times a second, what a key changed would wait for
# up to 33 ms behind any other paint. The cockpit's frames come no more often for it.
os.environ.setdefault("TEXTUAL_FPS", "200")
