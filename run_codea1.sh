#!/usr/bin/env bash
# Sets up the checkout's .venv when it is missing or out of date, then runs `code-a1` in the folder of the caller.
# Without arguments it trains; --help lists all commands, `train --help` presets and keys.
# `bash run_codea1.sh setup [--cpu | --gpu] [--dev]` only sets up. Exact versions of both stacks stand in constraints/.
set -euo pipefail

CHECKOUT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
VENV="$(realpath -m "${CODE_A1_VENV:-$CHECKOUT/.venv}")"
case "${PYTHON:-}" in */*) PYTHON="$(realpath -ms "$PYTHON")" ;; esac
TORCH_CPU_INDEX="${CODE_A1_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"
# verl's own builds of flash-attn, for CPython 3.12, CUDA 13.0 and the torch of constraints/gpu.txt
FLASH_INDEX="${CODE_A1_FLASH_INDEX:-https://verl-project.github.io/verl-wheelhouse/simple/}"
FLASH_ATTN="flash-attn==2.8.3"

usage() {
    cat <<EOF
bash run_codea1.sh                                       sets up $VENV (minutes, once), then trains
bash run_codea1.sh [PRESET | FILE.yaml] [KEY=VALUE ...]  trains with a preset (by default tiny models) or a file
                                                         of yours; relative paths begin at your folder
bash run_codea1.sh setup [--cpu | --gpu] [--dev]         only sets up; --dev adds what the tests need

Once it is set up:
bash run_codea1.sh train --help                          presets and the keys that matter most
bash run_codea1.sh --help                                all commands: report, eval, score, select, attack, ...
EOF
}

fail() { printf 'error: %s\n' "$*" >&2; exit 2; }

find_python() {  # FLAVOUR
    local candidate candidates=(python3.11 python3.12 python3)
    [ "$1" = cpu ] || candidates=(python3.12 python3.11 python3)  # flash-attn is built for 3.12
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    [ -z "${PYTHON:-}" ] ||
        fail "PYTHON must name a Python 3.11 or 3.12, got $PYTHON ($("$PYTHON" -V 2>&1 || true)); name another, or none"
    fail "Python 3.11 or 3.12 is needed and was not found; install it, or name one: PYTHON=/path/to/python3.11 bash $0"
}

detect_flavour() {
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then printf gpu; else printf cpu; fi
}

# What the environment was built from: a change of dependencies, flavour or place builds it anew.
stamp_of() { printf '%s %s %s' "$1" "$(cat pyproject.toml "constraints/$1.txt" | cksum | cut -d' ' -f1)" "$CHECKOUT"; }

pip_install() { "$VENV/bin/python" -m pip install -qq "$@"; }

# What would fail after gigabytes were downloaded, or in the middle of a run.
check_gpu_machine() {  # PYTHON
    local driver capability free
    driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"
    if [ -z "$driver" ]; then
        printf 'no GPU is seen here, so neither driver nor GPUs are checked\n' >&2
    else
        [ "${driver%%.*}" -ge 580 ] || fail "the NVIDIA driver is $driver; CUDA 13 needs 580 or newer, else torch sees no GPU"
        while read -r capability; do
            [ "${capability%%.*}" -ge 8 ] || fail "a GPU has compute capability $capability; bfloat16 needs 8.0 (A100, RTX 30)"
        done < <(nvidia-smi --query-gpu=compute_cap --format=csv,noheader)
    fi
    command -v "${CC:-cc}" >/dev/null || fail "no C compiler (cc): Triton compiles its launcher when a run starts; install gcc"
    "$1" -c 'import pathlib, sys, sysconfig; sys.exit(not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").is_file())' ||
        fail "Python.h of $1 is missing, which Triton compiles with; install its development package (python3-dev)"
    "$1" -c 'import ensurepip, venv' 2>/dev/null || fail "$1 cannot make environments; install its package python3-venv"
    free="$(df -Pk "$(dirname "$VENV")" | awk 'NR == 2 { print int($4 / 1048576) }')"
    [ "$free" -ge 20 ] || fail "$free GB are free where $VENV goes, 20 are needed (4 GB to download, 11 GB installed)"
}

install_torch_cpu() {
    local torch
    torch="$(grep '^torch==' constraints/cpu.txt)"
    # The "+cpu" label keeps pip from taking a CUDA build from an index that has both.
    pip_install "$torch+cpu" 2>/dev/null ||
        pip_install "$torch" --index-url "$TORCH_CPU_INDEX" ||
        fail "no CPU build of $torch: not on the configured package index and $TORCH_CPU_INDEX is not reachable"
}

# Last and alone: without it torch's own flash attention is used, which the recipe then asks for by itself.
install_flash_attn() {
    pip_install --no-deps --only-binary :all: --index-url "$FLASH_INDEX" "$FLASH_ATTN" >/dev/null 2>&1 && return
    if [ -z "${CODE_A1_COMPILE_FLASH_ATTN:-}" ] || ! nvcc --version 2>/dev/null | grep -q 'release 13\.'; then
        printf '%s\n' "flash-attn is not installed (no wheel for this Python at $FLASH_INDEX, or no answer from there): torch's own flash attention is used." \
            'CODE_A1_COMPILE_FLASH_ATTN=1 compiles it with a CUDA 13 toolkit, which can take an hour.' >&2
        return
    fi
    step 3 "compiling flash-attn for this machine's GPUs, up to an hour"
    pip_install -c constraints/gpu.txt setuptools wheel packaging ninja psutil
    FLASH_ATTN_CUDA_ARCHS="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | tr -d . | sort -u | paste -sd ';')" \
        pip_install --no-build-isolation -c constraints/gpu.txt "$FLASH_ATTN" ||
        printf "flash-attn could not be compiled: torch's own flash attention is used\n" >&2
}

step() { printf '%s: %s\n' "$1" "$2" >&2; }

setup() (
    cd "$CHECKOUT"
    local flavour="$1" extras="$2" python
    local stamp="$VENV/.code-a1-$extras"
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(stamp_of "$flavour")" ]; then
        [ -z "${ASKED_FOR_SETUP:-}" ] || printf '%s is already set up for %s\n' "$VENV" "$flavour" >&2
        exit
    fi
    # Both flavours have packages of the same names, so one over the other leaves a mixture.
    if [ -f "$VENV/.code-a1-run" ] && [ "$(cut -d' ' -f1 "$VENV/.code-a1-run")" != "$flavour" ]; then
        fail "$VENV was set up for $(cut -d' ' -f1 "$VENV/.code-a1-run"), not for $flavour; remove it (rm -r $VENV), or name another folder: CODE_A1_VENV=.venv-$flavour"
    fi
    if [ -n "${CODE_A1_VENV:-}" ] && [ -z "${ASKED_FOR_SETUP:-}" ] && [ -d "$VENV" ]; then
        fail "CODE_A1_VENV=$VENV was not set up for this checkout; \`bash $0 setup\` installs into it, or unset the variable"
    fi
    # The scripts of a moved or copied environment would run what is left at the old place.
    if [ -f "$VENV/bin/activate" ] && ! grep -qF "$VENV" "$VENV/bin/activate"; then
        fail "$VENV was made in another place, which its scripts name; remove it (rm -r $VENV), then repeat this command"
    fi
    python="$(find_python "$flavour")"
    [ "$flavour" = cpu ] || check_gpu_machine "$python"
    printf 'setting up %s for %s in %s\n' "$extras" "$flavour" "$VENV" >&2
    [ -x "$VENV/bin/python" ] || "$python" -m venv "$VENV"
    if [ "$flavour" = cpu ]; then
        step 1 "torch for CPUs (200 MB to download)"
        install_torch_cpu
        step 2 "verl, vLLM, Ray and the recipe (400 MB to download, some minutes)"
        pip_install -c constraints/cpu.txt -e ".[cpu,eval${extras#run}]"
        "$VENV/bin/python" -m code_a1_recipe.verl_plugin.cpu.package_fixes
    else
        step 1 "torch, verl, vLLM, Ray and the recipe (4 GB to download, 11 GB installed: six minutes at 100 Mbit/s and more)"
        pip_install -c constraints/gpu.txt -e ".[gpu,eval${extras#run}]"
        step 2 "flash-attn (250 MB where there is a wheel)"
        install_flash_attn
    fi
    # EvalPlus's sanitizer and prompt; its package asks for the clients of many providers, which they do not need.
    pip_install --no-deps evalplus==0.3.1
    stamp_of "$flavour" > "$VENV/.code-a1-run"
    stamp_of "$flavour" > "$stamp"
)

main() {
    local flavour="" extras="run" kept=""
    # An environment that was set up with a flavour keeps it.
    if [ -f "$VENV/.code-a1-run" ]; then kept="$(cut -d' ' -f1 "$VENV/.code-a1-run")"; fi
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
        setup "${flavour:-${kept:-$(detect_flavour)}}" "$extras"
        return
    fi
    if [ ! -f "$VENV/.code-a1-run" ]; then
        case " $* " in *" --help "* | *" -h "*) usage; return ;; esac
    fi
    setup "${kept:-$(detect_flavour)}" run
    CODE_A1_COMMAND="bash $(printf %q "$0")"  # how hints name this command
    export CODE_A1_COMMAND
    # -P: a file of the caller's folder must not take the place of a package.
    exec "$VENV/bin/python" -P -m code_a1_recipe "${@:-train}"
}

main "$@"
