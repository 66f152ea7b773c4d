#!/bin/sh
# unpack.sh SUITE FOLDER PACKAGE...: unpack Debian packages of a suite and all that they need into a folder.
# Nothing is installed: a build may neither mount nor unshare, which the tools that make whole systems do.
set -eu
suite=$1 folder=$2
shift 2
work=$(mktemp -d)
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$folder"
: >"$work/status"
apt-get update -qq # only to learn where this image gets its packages from
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
printf 'deb %s %s main\n' "$mirror" "$suite" >"$work/sources.list"
cat >"$work/apt.conf" <<END
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$work/lists";
Dir::State::Status "$work/status";
Dir::Cache "$work/cache";
Acquire::Check-Valid-Until "false"; // a mirror may be a snapshot; its signature is checked all the same
APT::Install-Recommends "false";
APT::Sandbox::User "root";
END
export APT_CONFIG="$work/apt.conf"
apt-get update -qq
apt-get install -y -qq --download-only base-files base-passwd dash coreutils "$@" >/dev/null
# The one that makes /bin and /lib links into /usr goes first.
for package in "$work"/cache/archives/base-files_*.deb "$work"/cache/archives/*.deb; do
  dpkg --fsys-tarfile "$package" | tar -C "$folder" --keep-directory-symlink -xf -
done
cp "$folder/usr/share/base-passwd/passwd.master" "$folder/etc/passwd"
cp "$folder/usr/share/base-passwd/group.master" "$folder/etc/group"
[ -e "$folder/bin/sh" ] || ln -s dash "$folder/bin/sh"
rm -rf "$work" "$folder"/usr/share/doc "$folder"/usr/share/man "$folder"/usr/share/locale
