# SPDX-License-Identifier: Apache-2.0
"""The known differences between the answers of `hekla apiserver` and kube-apiserver, for same.py."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Difference:
    """Title of the requests and path in the answer, as shell patterns, and the reason."""

    title: str
    path: str
    reason: str

    def title_fits(self, title):
        return fnmatchcase(title, self.title)

    def path_fits(self, path):
        return fnmatchcase(path, self.path)


STORED = "items of a list are the stored bytes, which carry kind and apiVersion; clients accept both"
DESCRIPTIONS = "columns are described by no text; no client shows it"

DIFFERENCES = [Difference(*row) for row in (
    # ---- in every answer ----
    ("*", "body.items.[0-9]*.kind", STORED),
    ("*", "body.items.[0-9]*.apiVersion", STORED),
    ("*", "body.columnDefinitions.[0-9]*.description", DESCRIPTIONS),
)]
