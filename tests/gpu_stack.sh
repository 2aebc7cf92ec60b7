#!/usr/bin/env bash
# The GPU stack on a machine without a GPU: `bash tests/gpu_stack.sh FOLDER` installs it as a user with GPUs would, then
# runs in it the unit tests of the rooms that stand on torch, verl, vLLM and Ray, and tests/gpu_stack. At the end it
# says what passed; the exit status is 1 where something did not. FOLDER becomes an environment of 11 GB, kept and used
# again.
set -uo pipefail

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
    printf 'error: name the folder to install into, and nothing else: bash tests/gpu_stack.sh FOLDER\n' >&2
    exit 2
fi
CODE_A1_VENV="$(realpath -m "$1")" || exit
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export CODE_A1_VENV OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

failed=0
summary=()

part() {  # NAME COMMAND...
    local name="$1" result=passed log
    shift
    log="$(mktemp)"
    "$@" 2>&1 | tee "$log" || { result=FAILED; failed=1; }
    summary+=("$(printf '%-13s %s: %s' "$name" "$result" "$(grep -E '(passed|failed|skipped|error).* in [0-9.]+s' "$log" | tail -n 1)")")
    while read -r line; do summary+=("    $line"); done < <(grep '^arguments of ' "$log")
    rm -f "$log"
}

start=$SECONDS
bash run_codea1.sh setup --gpu --dev || exit
summary+=("$(printf '%-13s %s' installation "$((SECONDS - start)) s, $(du -sh "$CODE_A1_VENV" | cut -f 1)")")

pytest() { "$CODE_A1_VENV/bin/python" -m pytest -q -n 2 "$@"; }
part "unit tests" pytest --dist loadfile tests/unit/{algorithm,config,runs,training,verl_plugin}
part "GPU presets" pytest tests/gpu_stack

printf '%s\n' "${summary[@]}"
exit "$failed"
