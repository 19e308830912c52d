"""
Findings as JSON for scripts.

    {"valid", "findings": [{"level", "code", "summary", "place": {"file", "line", "column", "length"},
                            "detail", "advice", "address", "text"}],
     "documents": count, "files": count}

Files are relative to the tree. `valid` heeds `--strict`.
"""

from __future__ import annotations

from typing import Any

from fleetform.views import json_value
from fleetform.views.findings import Report

__all__ = ["to_json"]


def to_json(report: Report) -> dict[str, Any]:
    """Return JSON values; whoever prints chooses indentation."""
    return {
        "valid": report.is_valid,
        "findings": json_value.to_json(report.findings),
        "documents": report.documents_count,
        "files": report.files_count,
    }
