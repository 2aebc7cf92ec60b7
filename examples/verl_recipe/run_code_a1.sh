#!/usr/bin/env bash
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
exec python3 -m code_a1_recipe "$here/qwen_1_5b.yaml" arm=code_a1 "$@"
