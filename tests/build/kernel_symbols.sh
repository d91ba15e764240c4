#!/usr/bin/env bash
# Files that are compiled for an instruction set must not define anything that other files define too: the linker would
# keep one copy for the whole program, perhaps the one that this machine cannot run.  kernel_symbols.sh liblimber.a
set -euo pipefail
bad=$(nm -C --defined-only "$1" 2>/dev/null | awk '
  /^kernels_.*:$/ { file = $1; next }
  /:$/ { file = ""; next }
  file ~ /avx2|avx512/ && NF >= 3 && $2 ~ /[A-Zuvw]/ {
    set = file ~ /avx512/ ? "avx512" : "avx2"
    if ($0 !~ ("pack_" set) && $0 !~ ("(sparse|tall|fem|reduction|cloth|mixed)::" set "::")) print file, $0
    seen++
  }
  END { if (!seen) print "no kernels found" }')
if [ -n "$bad" ]; then
  echo "symbols in kernels that other files could share:"
  echo "$bad"
  exit 1
fi
