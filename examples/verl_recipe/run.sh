#!/usr/bin/env bash
# Trains by the paper's rule. With ARM=frozen, it trains the baseline with a Test LLM that never learns.
set -euo pipefail
exec python3 -m code_a1_recipe qwen2.5-coder-1.5b arm="${ARM:-code_a1}" data.train_files=train.parquet \
    data.val_files=val.parquet "$@"
