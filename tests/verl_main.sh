#!/usr/bin/env bash
# Shows what another verl changes for this recipe: how verl's keys differ, then which of the tests that meet verl fail.
# The exit status is 1 where one does. The environment keeps its own verl: the other one lies in a folder beside it for
# as long as this takes, without its dependencies.
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
    tests/unit/verl_plugin/test_trajectories.py tests/unit/verl_plugin/test_server_sampler.py)
# Not what it is about: the version, which is another one.
LEFT_OUT=tests/unit/verl_plugin/test_verl_contract.py::test_the_pinned_version_is_the_same_in_all_places
KEYS=trainer/config/_generated_ppo_trainer.yaml

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

printf 'verl %s against %s\n' "$pinned" "$source"
own="$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("verl").submodule_search_locations[0])')"
"$PYTHON" -m pip install -q --no-deps --disable-pip-version-check --target "$folder" "$source" || exit 2
diff -U 0 "$own/$KEYS" "$folder/verl/$KEYS" || true
# Behind the checkout: verl's package brings a folder `tests` of its own.
export PYTHONPATH="$PWD:$folder${PYTHONPATH:+:$PYTHONPATH}"
"$PYTHON" -m pytest "${TESTS[@]}" --deselect "$LEFT_OUT" -q -p no:cacheprovider --tb=line --continue-on-collection-errors
