#!/bin/sh
# Installs the page's npm packages when they are missing or older than the lock file.  install.sh WEB_FOLDER
set -e
cd "$1"
if [ -f node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || { echo "npm is missing: bin/setup run test installs it" >&2; exit 1; }
npm ci --no-audit --no-fund
touch node_modules/.package-lock.json
