#!/bin/bash
# Installs the clients in Python and builds the one in Go that tests drive, into the cache folder: a virtual environment
# with the packages of tools/clients/requirements.txt, and the program in tools/clients. What cannot be installed is
# left out, which is printed; its tests then print that they did not run.
set -eu
cd "$(dirname "$0")/clients"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lydian/clients
mkdir -p "$folder"

# A folder of its own for each list of packages.
python=$folder/python-$(cksum <requirements.txt | cut -d' ' -f1)
install_python() {
  rm -rf -- "$python.new" && python3 -m venv "$python.new" &&
    "$python.new/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt &&
    rm -rf -- "$python" && mv "$python.new" "$python" && ln -sfn "$python" "$folder/python"
}
if [ -d "$python" ] || install_python; then
  ln -sfn "$python" "$folder/python"
  echo "clients: Python: $(tr '\n' ' ' <requirements.txt)"
else
  rm -f -- "$folder/python"
  echo "clients: python3 cannot install the clients: their tests are skipped"
fi

# From 1.21 on, go fetches the toolchain that go.mod asks for.
minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ "${minor:-0}" -ge 21 ] && go build -o "$folder/rpcclient" .; then
  echo "clients: Go: $(go list -m github.com/btcsuite/btcd)"
else
  rm -f -- "$folder/rpcclient"
  echo "clients: go cannot build btcd's rpcclient: its test is skipped"
fi
