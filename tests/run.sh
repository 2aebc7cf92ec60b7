#!/usr/bin/env bash
# Sets up .venv as run_codea1.sh does, then runs every check and test this machine can run.
# Arguments go to pytest: `bash tests/run.sh -m "not e2e"` leaves out the runs that train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash run_codea1.sh setup --dev
PYTHON="${CODE_A1_VENV:-.venv}/bin/python"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

"$PYTHON" -m ruff check .
"$PYTHON" -m mypy sandbox reward_fns code_a1_recipe
if [ $# -gt 0 ]; then exec "$PYTHON" -m pytest "$@"; fi
# Runs that train take both cores of a small machine by themselves; everything else goes side by side.
"$PYTHON" -m pytest -m "not e2e" -n "$(env -u OMP_NUM_THREADS nproc)" --dist loadfile
exec "$PYTHON" -m pytest -m e2e
