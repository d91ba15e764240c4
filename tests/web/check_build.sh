#!/bin/sh
# The committed page is what the sources give, and the sources have no type errors.  check_build.sh WEB_FOLDER
set -e
cd "$1"
node build.mjs --check
node_modules/.bin/tsc --noEmit
size=$(wc -c <dist/page.html)
[ "$size" -lt 1500000 ] || { echo "dist/page.html has $size bytes; at most 1500000 are wanted" >&2; exit 1; }
