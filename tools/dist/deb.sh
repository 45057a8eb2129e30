#!/bin/bash
# Makes the Debian package with dpkg-deb. Why not with cargo-deb: docs/dependencies.md.
# Arguments: the staged files, the architecture (amd64 or arm64), and the folder of the results.
# Environment: DEB_VERSION, another version (for the test of upgrades).
set -eu
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
stage=$1
arch=$2
deb_version=${DEB_VERSION:-$version}
root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
chmod 755 "$root"
doc=$root/usr/share/doc/lydian
put() { install -D -m "$1" "$2" "$root/$3"; }        # MODE FILE PATH
put_gz() { mkdir -p "$(dirname "$root/$2")" && gzip -9n <"$1" >"$root/$2.gz"; } # FILE PATH

glibc=0
for program in "${programs[@]}"; do
  put 755 "$stage/bin/$program" "usr/bin/$program"
  put 644 "$stage/completions/$program.bash" "usr/share/bash-completion/completions/$program"
  put 644 "$stage/completions/_$program" "usr/share/zsh/vendor-completions/_$program"
  put 644 "$stage/completions/$program.fish" "usr/share/fish/vendor_completions.d/$program.fish"
  glibc=$(printf '%s\n' "$glibc" "$(glibc_of "$stage/bin/$program")" | sort -V | tail -1)
done
for page in "$stage"/man/*.1; do put_gz "$page" "usr/share/man/man1/$(basename "$page")"; done
put 644 "$stage/lydian.service" lib/systemd/system/lydian.service
# May hold a password: the scripts give it to the group of the node.
put 640 "$stage/lydian.conf" etc/lydian/lydian.conf
put 644 "$stage/README.md" usr/share/doc/lydian/README.md
put_gz "$stage/CHANGELOG.md" usr/share/doc/lydian/CHANGELOG.md
put_gz "$stage/THIRD-PARTY.txt" usr/share/doc/lydian/THIRD-PARTY.txt
put_gz "$stage/sbom.cdx.json" usr/share/doc/lydian/sbom.cdx.json
maintainer='The Lydian developers <maintainers@lydian.invalid>'
{
  printf 'lydian (%s) unstable; urgency=medium\n\n' "$deb_version"
  printf '  * See /usr/share/doc/lydian/CHANGELOG.md.gz.\n\n'
  printf ' -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.gz"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Lydian\n'
  printf 'Comment: The works of others in the programs, with their licences: THIRD-PARTY.txt.gz.\n\n'
  printf 'Files: *\nCopyright: %s\n' "$(sed -n 's/^Copyright (c) //p' LICENSE-MIT)"
  printf 'License: Expat or Apache-2.0\n\nLicense: Expat\n'
  sed -n '/^Permission/,$p' LICENSE-MIT | sed 's/^$/./; s/^/ /'
  printf '\nLicense: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$doc/copyright"
chmod 644 "$doc"/*

mkdir "$root/DEBIAN"
size_kib=$(du -k --apparent-size -s "$root" | cut -f1)
cat >"$root/DEBIAN/control" <<CONTROL
Package: lydian
Version: $deb_version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $size_kib
Depends: libc6 (>= $glibc), libgcc-s1
Section: net
Priority: optional
Description: Bitcoin full node
 Lydian downloads the chain of Bitcoin from its peers, verifies every script of
 every block, accepts and relays transactions, and serves other nodes, wallets
 (Electrum, Esplora) and programs (JSON-RPC, REST, ZMQ). Options, RPC methods
 and block files follow Bitcoin Core.
 .
 The service is installed but neither enabled nor started: the chain of mainnet
 takes about 850 GB. Settings: /etc/lydian/lydian.conf.
CONTROL
echo /etc/lydian/lydian.conf >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "contrib/debian/$script" "$root/DEBIAN/$script"; done
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum >DEBIAN/md5sums)
chmod 644 "$root"/DEBIAN/{control,conffiles,md5sums}
find "$root" -type d -exec chmod 755 {} +
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# The bytes that several threads of xz produce depend on their number. Level 9 finds what the programs have in common, as
# its dictionary of 64 MiB holds all of them; that of the default level, 8 MiB, does not.
dpkg-deb --root-owner-group -Zxz -z9 --threads-max=1 --build "$root" "$3/lydian_${deb_version}_$arch.deb" >/dev/null
