#!/usr/bin/env bash
# Sets up .venv when it is missing or out of date, then trains. `bash run_codea1.sh --help` lists presets and keys.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

VENV="${CODE_A1_VENV:-.venv}"
TORCH_CPU_INDEX="${CODE_A1_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"

fail() { printf 'error: %s\n' "$*" >&2; exit 2; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or 3.12 is needed and was not found; install it, or name one: PYTHON=/path/to/python3.11 bash $0"
}

detect_flavour() {
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then printf gpu; else printf cpu; fi
}

# What the environment was built from: a change of dependencies or flavour builds it anew.
stamp_of() { printf '%s %s' "$1" "$(cksum < pyproject.toml | cut -d' ' -f1)"; }

install_torch_cpu() {
    local torch="torch==2.13.0"
    # The "+cpu" label keeps pip from taking a CUDA build from an index that has both.
    "$VENV/bin/python" -m pip install -qq "$torch+cpu" 2>/dev/null ||
        "$VENV/bin/python" -m pip install -qq "$torch" --index-url "$TORCH_CPU_INDEX" ||
        fail "no CPU build of $torch: not on the configured package index and $TORCH_CPU_INDEX is not reachable"
}

setup() {
    local flavour="$1" extras="$2" python
    local stamp="$VENV/.code-a1-$extras"
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(stamp_of "$flavour")" ]; then return; fi
    if [ -n "${CODE_A1_VENV:-}" ] && [ -z "${ASKED_FOR_SETUP:-}" ] && [ -d "$VENV" ]; then
        fail "CODE_A1_VENV=$VENV was not set up for this checkout; \`bash $0 setup\` installs into it, or unset the variable"
    fi
    python="$(find_python)"
    printf 'setting up %s for %s in %s: some minutes the first time\n' "$extras" "$flavour" "$VENV" >&2
    [ -x "$VENV/bin/python" ] || "$python" -m venv "$VENV"
    if [ "$flavour" = cpu ]; then
        install_torch_cpu
        "$VENV/bin/python" -m pip install -qq -e ".[cpu,eval${extras#run}]"
        "$VENV/bin/python" -m code_a1_recipe.cpu.package_fixes
    else
        # flash-attn builds against the torch that is already there.
        "$VENV/bin/python" -m pip install -qq "verl[vllm]==0.9.1" wheel packaging ninja psutil
        "$VENV/bin/python" -m pip install -qq --no-build-isolation -e ".[gpu,eval${extras#run}]"
    fi
    # EvalPlus's own judge, to compare with; its package asks for the clients of many providers, which it does not need.
    case "$extras" in *dev*) "$VENV/bin/python" -m pip install -qq --no-deps evalplus==0.3.1 ;; esac
    stamp_of "$flavour" > "$VENV/.code-a1-run"
    stamp_of "$flavour" > "$stamp"
}

usage() {
    local presets
    presets="$(cd code_a1_recipe/config && ls | grep 'yaml$' | grep -v -e '^code_a1.yaml$' -e '^gpu.yaml$' | sed 's/.yaml$//' | paste -sd, | sed 's/,/, /g')"
    sed "s/{presets}/$presets/" code_a1_recipe/usage.txt
}

main() {
    local flavour="" extras="run" word
    for word in "$@"; do
        case "$1" in score | report | rollouts | timeline | simulate | experiment | harvest | export | micro | eval | data | select | attack | crossplay) break ;; esac # each has a --help of its own
        case "$word" in -h | --help | help) usage; return ;; esac
    done
    if [ "${1:-}" = setup ]; then
        shift
        ASKED_FOR_SETUP=1
        while [ $# -gt 0 ]; do
            case "$1" in
                --cpu) flavour=cpu ;;
                --gpu) flavour=gpu ;;
                --dev) extras="run,dev" ;;
                *) fail "unknown option of setup: $1; known: --cpu, --gpu, --dev" ;;
            esac
            shift
        done
        setup "${flavour:-$(detect_flavour)}" "$extras"
        return
    fi
    # An environment that was set up with a flavour keeps it.
    if [ -f "$VENV/.code-a1-run" ]; then flavour="$(cut -d' ' -f1 "$VENV/.code-a1-run")"; fi
    setup "${flavour:-$(detect_flavour)}" run
    exec "$VENV/bin/python" -m code_a1_recipe "$@"
}

main "$@"
