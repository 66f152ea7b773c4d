#!/usr/bin/env bash
# Reads what is deployed with the programs that it is for: `make deploy-check`. A line for each check, and the program's
# words where it fails. A check whose program is missing is skipped, loudly; with STRICT=1 that is a failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
PATH="$PWD/.venv/bin:$PATH:/usr/sbin"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
failed=0

check() { # TITLE COMMAND...
  local title="$1"
  shift
  if "$@" >"$work/words" 2>&1 </dev/null; then
    echo "deploy-check: passed $title"
  else
    failed=1
    echo "deploy-check: FAILED $title"
    sed "s,$work/,,g; s/^/    /" "$work/words"
  fi
}

has() { # PROGRAM REMEDY
  command -v "$1" >/dev/null && return
  missing "$@"
}

missing() { # PROGRAM REMEDY
  if [ -n "${STRICT:-}" ]; then
    failed=1
    echo "deploy-check: FAILED $1: not installed ($2)"
  else
    echo "deploy-check: SKIPPED $1: not installed ($2)"
  fi
  return 1
}

images() {
  local file
  while read -r file; do
    check "hadolint $file" hadolint --no-color --failure-threshold info "$file"
  done < <(git ls-files Dockerfile 'deploy/**/Dockerfile*')
}

# The base, and each file on top of it, with and without the example's settings: a .env of who runs this must not decide.
compose() {
  local settings others
  for settings in /dev/null .env.example; do
    for others in "" docker-compose.*.yml; do
      check "compose docker-compose.yml $others with $settings" docker compose --env-file "$settings" \
        --file docker-compose.yml ${others:+--file "$others"} --profile '*' config --quiet
    done
  done
}

# A copy whose absolute paths lead into the copy.
prometheus() {
  cp -r deploy/prometheus "$work/prometheus"
  sed -i "s,/etc/prometheus/,$work/prometheus/," "$work/prometheus/prometheus.yml"
  check "promtool configuration" promtool check config --lint=all --lint-fatal "$work/prometheus/prometheus.yml"
  check "promtool rules" promtool check rules --lint=all --lint-fatal deploy/prometheus/rules/*.yml
  check "promtool tests of the rules" promtool test rules deploy/prometheus/tests/*.yml
}

# `resolve` of an upstream's server came with nginx 1.27.3: an older one reads the file without it.
proxy() {
  local version
  version="$(nginx -v 2>&1 | sed 's,.*/\([0-9.]*\).*,\1,')"
  sed "s,/tmp/,$work/," deploy/nginx/nginx.conf >"$work/nginx.conf"
  if ! printf '1.27.3\n%s\n' "$version" | sort --check --version-sort 2>/dev/null; then
    echo "deploy-check: nginx $version is older than 1.27.3 and reads nginx.conf without resolve"
    sed -i 's,server tandem:8000 resolve,server 127.0.0.1:8000,' "$work/nginx.conf"
  fi
  check "nginx" without_warning nginx -t -e stderr -p "$work" -c "$work/nginx.conf"
}

# shellcheck disable=SC2317  # called by check
without_warning() { # COMMAND...
  local said status=0
  said="$("$@" 2>&1)" || status=$?
  echo "$said"
  [ "$status" -eq 0 ] && ! grep -qE '\[(emerg|alert|crit|error|warn)\]' <<<"$said"
}

scripts() {
  local files
  mapfile -t files < <(git grep -lE '^#!.*\b(ba)?sh\b' -- .ci deploy tests/docker)
  check "shellcheck" shellcheck "${files[@]}"
}

has hadolint "make install" && images
has shellcheck "apt install shellcheck" && scripts
has promtool "apt install promtool, or prometheus" && prometheus
has helm "install Helm 3.17 or newer" && check "helm chart" helm lint --quiet --strict deploy/kubernetes
has nginx "apt install nginx-light" && proxy
if docker compose version >/dev/null 2>&1; then
  compose
else
  missing "docker compose" "install Docker's Compose plugin, 2.24 or newer"
fi
exit "$failed"
