#!/usr/bin/env bash
# Sets up .venv as run_codea1.sh does, then runs every check and test this machine can run. All parts run, also after one
# failed; the last lines say which failed, and the exit status is then 1.
# Arguments go to pytest: `bash tests/run.sh -m "not e2e"` leaves out the runs that train.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

bash run_codea1.sh setup --dev || exit
PYTHON="${CODE_A1_VENV:-.venv}/bin/python"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

failed=()
summary=()

part() {  # NAME COMMAND...
    local name="$1" start=$SECONDS result=passed
    shift
    "$@" || { result=FAILED; failed+=("$name"); }
    summary+=("$(printf '%-18s %s in %d s' "$name" "$result" $((SECONDS - start)))")
}

types() {  # waits for mypy, which runs beside the tests
    wait "$mypy"
    local status=$?
    cat "$types_log"
    return "$status"
}

types_log="$(mktemp)"
"$PYTHON" -m mypy sandbox reward_fns code_a1_recipe >"$types_log" 2>&1 &
mypy=$!
trap 'kill "$mypy" 2>/dev/null; rm -f "$types_log"' EXIT
trap 'exit 130' INT TERM

part lint "$PYTHON" -m ruff check .
part format "$PYTHON" -m ruff format --check -q .
if [ $# -gt 0 ]; then
    part tests "$PYTHON" -m pytest "$@"
else
    part tests "$PYTHON" -m pytest -m "not e2e" -n "$(env -u OMP_NUM_THREADS nproc)" --dist loadfile
    # Two at a time: a third of a run's time one core waits for the other, above all while it starts.
    part "runs that train" "$PYTHON" -m pytest -m "e2e and not alone" -n 2 --dist loadgroup
    part "runs alone" "$PYTHON" -m pytest -m "e2e and alone"
fi
part types types

printf '%s\n' "${summary[@]}"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "$(IFS=,; printf '%s' "${failed[*]}")" >&2
    exit 1
fi
