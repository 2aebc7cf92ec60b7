#!/usr/bin/env bash
# verl's own trainer (verl.trainer.main_ppo) with this project's judge as the reward, here on a CPU:
#   bash examples/stock_verl_grpo/run.sh [key=value ...]
# Writes data, model and metrics.jsonl to $EXAMPLE_DIR (default outputs/stock_verl_grpo).
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PYTHON="${PYTHON:-$HERE/../../.venv/bin/python}"
export EXAMPLE_DIR="${EXAMPLE_DIR:-$PWD/outputs/stock_verl_grpo}"

# verl's "file" logger writes one JSON object for each step into this file.
export VERL_FILE_LOGGER_PATH="$EXAMPLE_DIR/metrics.jsonl"

# The CPU platform for verl, and settings of vLLM, Ray and torch for a CPU. A GPU job needs none of them.
eval "$("$PYTHON" - <<'PY'
import shlex
from code_a1_recipe.verl_plugin.cpu.environment import cpu_environment
for name, value in cpu_environment(threads=1).items():
    print(f"export {name}={shlex.quote(value)}")
PY
)"
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 RAY_USAGE_STATS_ENABLED=0
export RAY_ADDRESS="${RAY_ADDRESS:-local}"  # starts a new Ray cluster instead of using that of an earlier program
export VERL_LOGGING_LEVEL="${VERL_LOGGING_LEVEL:-WARN}" VLLM_LOGGING_LEVEL="${VLLM_LOGGING_LEVEL:-ERROR}"

"$PYTHON" "$HERE/make_data.py" "$EXAMPLE_DIR/data"
"$PYTHON" -m verl.trainer.main_ppo --config-dir "$HERE" --config-name cpu hydra.run.dir="$EXAMPLE_DIR/hydra" "$@"
"$PYTHON" "$HERE/curve.py" "$VERL_FILE_LOGGER_PATH"
