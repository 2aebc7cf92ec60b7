#!/usr/bin/env bash
# The experiment on a machine with a GPU and no network, from parts that arrive one after another. Everything before
# the first run happens as soon as its part is there; then slices run without a pause until the time is over.
#   setsid nohup bash studies/card/offline.sh PARTS MINUTES [preset] > /tmp/card.log 2>&1 &
# PARTS: the folder in which files arrive. questions.tar.xz has the folder of `python -m studies.card pack`; g.00, g.01,
#   ... are pieces of the model's GGUF file, and the empty file `whole` says that all of them are there.
# MINUTES: from now until the running run is cut. Give the machine two minutes more, in which the run ends and is packed.
# preset: also train three steps of the shipped preset first, at most seven minutes.
# CODE_A1_OUT (/tmp/out): results, tables, logs and packed rollouts. CODE_A1_WORK (/tmp/work): model, runs, weights.
# CODE_A1_REHEARSAL=1: the arms of rehearsal.yaml with the models of its preset, and no results from before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PARTS="${1:?usage: offline.sh PARTS MINUTES [preset]}" MINUTES="${2:?usage: offline.sh PARTS MINUTES [preset]}" PRESET="${3:-}"
OUT="${CODE_A1_OUT:-/tmp/out}" WORK="${CODE_A1_WORK:-/tmp/work}" PYTHON="${PYTHON:-python3}"
mkdir -p "$OUT" "$WORK"
started=$SECONDS
say() { printf '%4d s  %s\n' $((SECONDS - started)) "$*" | tee -a "$OUT/offline.log"; }
left() { awk -v minutes="$MINUTES" -v gone=$((SECONDS - started)) 'BEGIN { print minutes - gone / 60 }'; }

if [ "$PRESET" = preset ]; then
    say "the shipped preset: three steps on random weights"
    timeout -k 60 420 "$PYTHON" -m studies.card preset --output "$OUT" --work "$WORK/preset" \
        ${CODE_A1_REHEARSAL:+--rehearsal} || say "the preset ended with status $?"
fi
until [ -f "$PARTS/questions.tar.xz" ]; do sleep 1; done
mkdir -p "$WORK/questions" && tar -xJf "$PARTS/questions.tar.xz" -C "$WORK/questions"
if [ -n "${CODE_A1_REHEARSAL:-}" ]; then
    options=(--experiment studies/card/rehearsal.yaml --results /dev/null)
else
    until [ -f "$PARTS/whole" ]; do sleep 1; done
    say "all parts of the model are there"
    cat "$PARTS"/g.* > "$WORK/model.gguf"
    "$PYTHON" -m studies.real_model --gguf "$WORK/model.gguf" --output "$WORK/model"
    options=(--model "$WORK/model")
fi
say "slices, $(left) minutes"
"$PYTHON" -m studies.card run --questions "$WORK/questions" --work "$WORK/runs" --output "$OUT" --minutes "$(left)" \
    "${options[@]}" > "$OUT/tables.md"
say "done"
