#!/bin/bash
# Makes the image for containers, an OCI archive, without a daemon: for each architecture one layer with Debian's glibc and
# libgcc and the programs, written directly, as the format is a tar with a few files of JSON. There is no shell in it.
# Arguments: the folder of the results, and for each architecture ARCHITECTURE:STAGED_FILES, such as amd64:FOLDER.
set -euo pipefail
# Also what runs in $(...) ends with the first error.
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. tools/dist/common.sh
out=$1
shift
if ! command -v mmdebstrap >/dev/null; then
  say "LEFT OUT: the image, as mmdebstrap is missing: run 'apt-get install mmdebstrap'"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
# Without a mirror of Debian, as without mmdebstrap, the rest of the release is complete.
for one in "$@"; do
  arch=${one%%:*}
  mmdebstrap --quiet --variant=extract --architectures="$arch" --include=libc6,libgcc-s1 bookworm "$work/debian-$arch.tar" 2>"$work/log" || {
    say "LEFT OUT: the image, as mmdebstrap could not make a Debian for $arch: $(tail -2 "$work/log" | tr '\n' ' ')"
    exit 0
  }
done
mkdir -p "$work/oci/blobs/sha256"
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)
media=application/vnd.oci.image

blob() { # FILE: moves it among the blobs; prints its digest and size as fields of a descriptor
  local sum
  sum=$(sha256sum <"$1" | cut -d' ' -f1)
  printf '"digest": "sha256:%s", "size": %s' "$sum" "$(stat -c %s "$1")"
  mv -- "$1" "$work/oci/blobs/sha256/$sum"
}

layer() { # ARCHITECTURE STAGED_FILES: writes $work/layer.tar
  local arch=$1 stage=$2 root=$work/layer-$1
  mkdir "$root"
  # Only unpacked: nothing of a Debian system but these files is wanted.
  tar --extract --file "$work/debian-$arch.tar" --directory "$root" --no-same-owner
  rm -- "$work/debian-$arch.tar"
  # Documents except licences, and what only other programs need.
  find "$root/usr/share/doc" ! -type d ! -name copyright -delete
  rm -rf -- "$root"/{dev,proc,sys,run,tmp,var,boot,home,media,mnt,opt,srv,root,etc} "$root"/usr/{games,include,local,src,sbin} \
    "$root"/usr/share/{lintian,locale,man,info,base-files,common-licenses,perl5,gcc,bug} "$root"/usr/lib/*/gconv
  find "$root" -path '*/bin/*' -type f -delete
  mkdir -p "$root"/{dev,proc,sys,run,tmp,etc,data,usr/bin,usr/share/doc/lydian}
  for program in "${programs[@]}"; do install -m 755 "$stage/bin/$program" "$root/usr/bin/$program"; done
  install -m 644 "$stage"/{LICENSE-MIT,LICENSE-APACHE,THIRD-PARTY.txt,sbom.cdx.json} "$root/usr/share/doc/lydian/"
  printf 'root:x:0:0::/:/nonexistent\nlydian:x:10001:10001::/data:/nonexistent\n' >"$root/etc/passwd"
  printf 'root:x:0:\nlydian:x:10001:\n' >"$root/etc/group"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
  find "$root" -type d -empty -path "$root/usr/share/doc/*" -delete

  # The owner of /data is the user of the image: an engine gives a new volume the same one.
  tar --create --directory "$root" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
    --mode='u+rwX,go+rX,go-w' --mtime="@$SOURCE_DATE_EPOCH" --exclude=./data . >"$work/layer.tar"
  mkdir -p "$work/volume/data"
  tar --append --file "$work/layer.tar" --directory "$work/volume" --format=ustar --owner=10001 --group=10001 \
    --numeric-owner --mode=0710 --mtime="@$SOURCE_DATE_EPOCH" ./data
}

manifest() { # ARCHITECTURE: makes the manifest of the image with the layer; prints its descriptor
  local arch=$1 diff_id layer config manifest
  diff_id=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
  gzip -9n <"$work/layer.tar" >"$work/layer.tar.gz"
  layer=$(blob "$work/layer.tar.gz")
  # Healthcheck is Docker's field, which the OCI's format leaves to engines: Docker reads it, Podman needs --health-cmd.
  cat >"$work/config.json" <<JSON
{
  "created": "$created", "architecture": "$arch", "os": "linux",
  "config": {
    "User": "10001:10001", "WorkingDir": "/data", "Volumes": {"/data": {}}, "StopSignal": "SIGTERM",
    "ExposedPorts": {"8333/tcp": {}}, "Env": ["PATH=/usr/bin", "HOME=/data"],
    "Entrypoint": ["/usr/bin/lydian", "-datadir=/data"],
    "Healthcheck": {
      "Test": ["CMD", "/usr/bin/lydian-cli", "-datadir=/data", "-rpcclienttimeout=20", "getblockcount"],
      "Interval": 60000000000, "Timeout": 30000000000, "StartPeriod": 600000000000, "Retries": 5
    },
    "Labels": {
      "org.opencontainers.image.title": "lydian", "org.opencontainers.image.version": "$version",
      "org.opencontainers.image.revision": "$(git rev-parse HEAD)",
      "org.opencontainers.image.licenses": "MIT OR Apache-2.0"
    }
  },
  "rootfs": {"type": "layers", "diff_ids": ["sha256:$diff_id"]},
  "history": [{"created": "$created", "created_by": "tools/dist/image.sh"}]
}
JSON
  config=$(blob "$work/config.json")
  cat >"$work/manifest.json" <<JSON
{
  "schemaVersion": 2, "mediaType": "$media.manifest.v1+json",
  "config": {"mediaType": "$media.config.v1+json", $config},
  "layers": [{"mediaType": "$media.layer.v1.tar+gzip", $layer}]
}
JSON
  manifest=$(blob "$work/manifest.json")
  printf '{"mediaType": "%s.manifest.v1+json", %s, "platform": {"architecture": "%s", "os": "linux"}}' "$media" "$manifest" "$arch"
}

manifests=()
for staged in "$@"; do
  layer "${staged%%:*}" "${staged#*:}"
  manifests+=("$(manifest "${staged%%:*}")")
done
# The name belongs to an index of its own, from which an engine takes the manifest of its machine.
printf '{"schemaVersion": 2, "mediaType": "%s.index.v1+json", "manifests": [%s]}\n' "$media" "$(IFS=, && echo "${manifests[*]}")" >"$work/images.json"
images=$(blob "$work/images.json")
cat >"$work/oci/index.json" <<JSON
{
  "schemaVersion": 2, "mediaType": "$media.index.v1+json",
  "manifests": [{
    "mediaType": "$media.index.v1+json", $images,
    "annotations": {"org.opencontainers.image.ref.name": "$version"}
  }]
}
JSON
printf '{"imageLayoutVersion": "1.0.0"}\n' >"$work/oci/oci-layout"
tar --create --directory "$work/oci" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
  --mode='u+rwX,go+rX,go-w' --mtime="@$SOURCE_DATE_EPOCH" blobs index.json oci-layout >"$out/lydian-$version.oci.tar"
