#!/usr/bin/env bash
# Says in plain words what another verl changes for this recipe: names that it uses, tests that fail, keys of verl's YAML.
# The exit status is 1 where something changed. The environment keeps its own verl: the other one lies in a folder beside
# it for as long as this takes, without its dependencies.
#
#   bash tests/verl_main.sh              verl's main branch
#   bash tests/verl_main.sh 0.9.0        a release
#   bash tests/verl_main.sh ../verl      a checkout, or anything else that pip installs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON="${CODE_A1_VENV:-.venv}/bin/python"
[ -x "$PYTHON" ] || PYTHON="$(command -v python3)"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
source="${1:-git+https://github.com/verl-project/verl.git@main}"
[[ ! "$source" =~ ^[0-9]+\.[0-9]+[0-9a-z.]*$ ]] || source="verl==$source"

pinned="$(sed -n 's/^TAG=v//p' REQUIRED_VERL.txt)"
installed="$("$PYTHON" -c 'import importlib.metadata as m; print(m.version("verl"))' 2>/dev/null || true)"
if [ "$installed" != "$pinned" ]; then
    printf 'error: verl %s is compared with others, but %s has %s: bash run_codea1.sh setup --dev\n' \
        "$pinned" "$PYTHON" "${installed:-none}" >&2
    exit 2
fi

TESTS=(tests/unit/verl_plugin tests/unit/config/test_verl_keys.py tests/unit/training/test_trainer_step.py
    tests/unit/training/test_trajectories.py tests/unit/training/test_server_sampler.py
    tests/unit/training/test_reporting.py)
# Not what it is about: the version, which is another one, and this comparison.
LEFT_OUT=(--deselect tests/unit/verl_plugin/test_verl_contract.py::test_the_pinned_version_is_the_same_in_all_places
    --ignore tests/unit/verl_plugin/test_verl_changes.py)
CHANGES=tests/unit/verl_plugin/verl_changes.py

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

describe() { "$PYTHON" "$CHANGES" describe "$folder/$1.json" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 2; }; }

printf 'verl %s against %s\n' "$pinned" "$source"
describe old
"$PYTHON" -m pip install -q --no-deps --disable-pip-version-check --target "$folder/verl" "$source" || exit 2
# Behind the checkout: verl's package brings a folder `tests` of its own.
export PYTHONPATH="$PWD:$folder/verl${PYTHONPATH:+:$PYTHONPATH}"
describe new
"$PYTHON" -m pytest "${TESTS[@]}" "${LEFT_OUT[@]}" -q -p no:cacheprovider --continue-on-collection-errors \
    --junitxml "$folder/tests.xml" \
    >"$folder/log" 2>&1 || [ -f "$folder/tests.xml" ] || cat "$folder/log" >&2
"$PYTHON" "$CHANGES" compare "$folder/old.json" "$folder/new.json" "$folder/tests.xml"
