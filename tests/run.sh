#!/usr/bin/env bash
# Sets up .venv as run_codea1.sh does, then runs every check and test this machine can run. All parts run, also after one
# failed; the last lines say how long each took and which failed, and the exit status is then 1.
#   bash tests/run.sh                      before a commit
#   bash tests/run.sh --all                also what is marked nightly; before a release
#   bash tests/run.sh [--all] ARGUMENTS    for pytest: `-m "not e2e"` leaves out the runs that train
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# For two quiet cores, set-up not counted; that of --all is an estimate.
ORDINARY_MINUTES=14
ALL_MINUTES=60

all=()
if [ "${1:-}" = --all ]; then
    all=(--all)
    shift
    printf '%s\n' "--all is estimated at $ALL_MINUTES minutes, the ordinary command takes $ORDINARY_MINUTES. It adds a real model of" \
        "135M parameters, the SFT arm, self-play, fixed tests, the Python API and notebook, a second run with one seed, two" \
        "nodes, the stock verl job, whole corpora and public sets, long fuzzing, and four times the examples of each" \
        "property."
fi

bash run_codea1.sh setup --dev || exit
PYTHON="${CODE_A1_VENV:-.venv}/bin/python"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
unset PYTHONDONTWRITEBYTECODE  # some containers set it; hundreds of short processes would compile the same files each

failed=()
summary=()

part() {  # NAME COMMAND...
    local name="$1" start=$SECONDS result=passed
    shift
    "$@" || { result=FAILED; failed+=("$name"); }
    summary+=("$(printf '%-18s %s in %d s' "$name" "$result" $((SECONDS - start)))")
}

tests() {  # ARGUMENTS of pytest; what it prints is searched for the slowest tests at the end
    "$PYTHON" -m pytest --durations=15 "${all[@]}" "$@" 2>&1 | tee -a "$logs/tests"
}

types() {  # waits for mypy, which runs beside the tests
    wait "$mypy"
    local status=$?
    cat "$logs/types"
    return "$status"
}

logs="$(mktemp -d)"
"$PYTHON" -m mypy sandbox reward_fns code_a1_recipe >"$logs/types" 2>&1 &
mypy=$!
trap 'kill "$mypy" 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

part lint "$PYTHON" -m ruff check .
part format "$PYTHON" -m ruff format --check -q .
if [ $# -gt 0 ]; then
    part tests tests "$@"
else
    # One process more than cores: many tests wait for a time limit.
    part tests tests -m "not e2e" -n "$(($(env -u OMP_NUM_THREADS nproc) + 1))" --dist loadfile
    # Two at a time: a third of a run's time one core waits for the other, above all while it starts.
    part "runs that train" tests -m "e2e and not alone" -n 2 --dist loadgroup
    [ ${#all[@]} -eq 0 ] || part "runs alone" tests -m "e2e and alone"
fi
part types types

printf '\nslowest:\n'
grep -hE '^[0-9.]+s (call|setup|teardown) ' "$logs/tests" | sort -rn | head -15
printf '\n'
printf '%s\n' "${summary[@]}"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "$(IFS=,; printf '%s' "${failed[*]}")" >&2
    exit 1
fi
