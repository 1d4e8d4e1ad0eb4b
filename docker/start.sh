#!/bin/sh
# numba takes a cache of compiled loops only from a folder that it can write to, and the image is read-only.
set -eu
here=$(dirname "$0")
if [ -d "$here/numba" ] && [ ! -e "$NUMBA_CACHE_DIR" ]; then
  cp -R "$here/numba" "$NUMBA_CACHE_DIR" || echo "Loops are compiled anew: $NUMBA_CACHE_DIR is not writable." >&2
fi
exec rankad "$@"
