#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The quick checks of static.sh, on the files of the next commit: staged files, else changed ones,
# or FILE... As a hook of git: ln -s ../../selftests/static/pre-commit.sh .git/hooks/pre-commit
# Exit status 1: findings. "make check" checks all files.
set -euo pipefail

cd "$(git rev-parse --show-toplevel)"
files=$(printf '%s\n' "$@")
[[ $files ]] || files=$(git diff --cached --name-only --diff-filter=d)
[[ $files ]] || files=$(git diff HEAD --name-only --diff-filter=d)
[[ $files ]] || { echo "pre-commit: nothing has changed"; exit 0; }
mkdir -p build
echo "$files" >build/changed
selftests/lab/lab exec --full -- selftests/static/static.sh --files build/changed checkpatch codespell ids pyflakes shellcheck shown licence
