"""Makes the tiny models that the package ships anew, in five minutes on two cores.

python tests/ship_models.py
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from code_a1_recipe.micro_world import MicroSettings, ensure_assets
from code_a1_recipe.micro_world.builder import SHIPPED


def main() -> None:
    shutil.rmtree(SHIPPED, ignore_errors=True)
    with TemporaryDirectory() as cache:
        made = ensure_assets(Path(cache)).code_model.parent
        # Questions are drawn again at the first use.
        left_out = shutil.ignore_patterns("*.log", "*.jsonl", "settings.json")
        shutil.copytree(made, SHIPPED / MicroSettings().digest(), ignore=left_out)


if __name__ == "__main__":
    main()
