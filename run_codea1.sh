#!/usr/bin/env bash
# Sets up .venv when it is missing or out of date, then runs `code-a1`: without arguments it trains; --help lists all
# commands, `train --help` presets and keys. `bash run_codea1.sh setup [--cpu | --gpu] [--dev]` only sets up.
# Exact versions of both stacks stand in constraints/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

VENV="${CODE_A1_VENV:-.venv}"
TORCH_CPU_INDEX="${CODE_A1_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"

usage() {
    cat <<EOF
bash run_codea1.sh                                       sets up $VENV (minutes, once), then trains
bash run_codea1.sh [PRESET | FILE.yaml] [KEY=VALUE ...]  trains with a preset (cpu without a GPU) or a file of yours
bash run_codea1.sh setup [--cpu | --gpu] [--dev]         only sets up; --dev adds what the tests need

Once it is set up:
bash run_codea1.sh train --help                          presets and the keys that matter most
bash run_codea1.sh --help                                all commands: report, eval, score, select, attack, ...
EOF
}

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
stamp_of() { printf '%s %s' "$1" "$(cat pyproject.toml "constraints/$1.txt" | cksum | cut -d' ' -f1)"; }

pip_install() { "$VENV/bin/python" -m pip install -qq "$@"; }

install_torch_cpu() {
    local torch
    torch="$(grep '^torch==' constraints/cpu.txt)"
    # The "+cpu" label keeps pip from taking a CUDA build from an index that has both.
    pip_install "$torch+cpu" 2>/dev/null ||
        pip_install "$torch" --index-url "$TORCH_CPU_INDEX" ||
        fail "no CPU build of $torch: not on the configured package index and $TORCH_CPU_INDEX is not reachable"
}

# It has no wheel for this torch and is compiled with the CUDA toolkit; torch's own attention does without it.
install_flash_attn() {
    pip_install -c constraints/gpu.txt setuptools wheel packaging ninja psutil
    printf 'flash-attn: compiled where nvcc is found, which can take an hour\n' >&2
    pip_install --no-build-isolation -c constraints/gpu.txt "flash-attn>=2.7" >/dev/null 2>&1 || printf '%s\n' \
        'flash-attn is not installed: no wheel for this torch, and it could not be compiled (nvcc of CUDA 13 is needed).' \
        'Train with actor_rollout_ref.model.override_config.attn_implementation=sdpa, or install it and set up again.' >&2
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
        pip_install -c constraints/cpu.txt -e ".[cpu,eval${extras#run}]"
        "$VENV/bin/python" -m code_a1_recipe.verl_plugin.cpu.package_fixes
    else
        pip_install -c constraints/gpu.txt -e ".[gpu,eval${extras#run}]"
        install_flash_attn
    fi
    # EvalPlus's sanitizer and prompt; its package asks for the clients of many providers, which they do not need.
    pip_install --no-deps evalplus==0.3.1
    stamp_of "$flavour" > "$VENV/.code-a1-run"
    stamp_of "$flavour" > "$stamp"
}

main() {
    local flavour="" extras="run"
    if [ "${1:-}" = setup ]; then
        shift
        ASKED_FOR_SETUP=1
        while [ $# -gt 0 ]; do
            case "$1" in
                --cpu) flavour=cpu ;;
                --gpu) flavour=gpu ;;
                --dev) extras="run,dev" ;;
                --help | -h) usage; return ;;
                *) fail "unknown option of setup: $1; known: --cpu, --gpu, --dev" ;;
            esac
            shift
        done
        setup "${flavour:-$(detect_flavour)}" "$extras"
        return
    fi
    if [ ! -f "$VENV/.code-a1-run" ]; then
        case " $* " in *" --help "* | *" -h "*) usage; return ;; esac
    fi
    # An environment that was set up with a flavour keeps it.
    if [ -f "$VENV/.code-a1-run" ]; then flavour="$(cut -d' ' -f1 "$VENV/.code-a1-run")"; fi
    setup "${flavour:-$(detect_flavour)}" run
    exec "$VENV/bin/python" -m code_a1_recipe "$@"
}

main "$@"
