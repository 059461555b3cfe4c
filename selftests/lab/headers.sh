# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
# The headers of Debian's kernels, many more than in the root: downloaded and unpacked, not
# installed. "lab exec --headers" mounts them over the root.

# Suites that carry kernels. Per release, series and flavour the newest kernel is taken; of the
# stock flavour also the oldest one in the archive.
HEADERS_SUITES="bookworm bookworm-security bookworm-backports
	trixie trixie-security trixie-backports sid"
HEADERS_FLAVOURS="amd64|rt-amd64|cloud-amd64|arm64|arm64-16k"

# headers_apt COMMAND...: apt with separate lists and settings, for two architectures
headers_apt() {
	APT_CONFIG=$CACHE/apt/apt.conf "$@"
}

headers_sources() { # main, security
	local dir=$CACHE/apt suite uri

	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	: >"$dir/status"
	for suite in $HEADERS_SUITES; do
		uri=$1
		[[ $suite != *-security ]] || uri=$2
		[[ ! $uri ]] || echo "deb [signed-by=$ROOT/usr/share/keyrings/debian-archive-keyring.gpg arch=amd64,arm64] $uri $suite main"
	done >"$dir/sources.list"
	# Other settings, such as a proxy, are those of this machine.
	cat >"$dir/apt.conf" <<-END
	Dir::State::lists "$dir/lists";
	Dir::State::status "$dir/status";
	Dir::Cache "$dir/cache";
	Dir::Cache::pkgcache "pkgcache.bin";
	Dir::Etc::sourcelist "$dir/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferences "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	APT::Architectures { "amd64"; "arm64"; };
	APT::Sandbox::User "$(id -un)";
	Acquire::Languages "none";
	END
}

# Prints "release architecture version suite", one line a kernel.
headers_choose() {
	headers_apt apt-cache search --names-only "^linux-headers-[0-9].*-($HEADERS_FLAVOURS)\$" |
		cut -d' ' -f1 | headers_apt xargs -r apt-cache madison |
		awk -F' *[|] *' '{
			sub(/^ *linux-headers-/, "", $1)
			sub(/:.*/, "", $1)
			split($3, where, " ")
			sub(/\/.*/, "", where[2])
			print $1, where[3], $2, where[2] }' |
		sort -V -k1,1 -k3,3 | awk -v flavours="^($HEADERS_FLAVOURS)\$" '
		$1 !~ /^[0-9]+\.[0-9]+(\.[0-9]+)?[-+]/ { next }
		{
			split($1, number, ".")
			flavour = $1
			sub(/^[0-9.]+(-[0-9]+|\+deb[0-9.]+)?-/, "", flavour)
			if (flavour !~ flavours)
				next
			family = $4
			sub(/-security$/, "", family)
			key = family " " number[1] "." number[2] " " flavour
			newest[key] = $0
			if (flavour == $2 && $2 == "amd64" && !(key in oldest))
				oldest[key] = $0
		}
		END {
			for (key in newest)
				print newest[key]
			for (key in oldest)
				print oldest[key]
		}' | sort -u -V -k1,1 | sort -u -V
}

# Package names for apt-get download: reads the output of headers_choose. Packages with the
# programs of a build (linux-kbuild) are always for this machine's architecture.
headers_packages() {
	awk '{ print "linux-headers-" $1 ":" $2 "=" $3 }' |
		headers_apt xargs -r apt-cache show | awk '
		/^Package: / { package = $2 }
		/^Version: / { version = $2 }
		/^Architecture: / { print package ":" $2 "=" version }
		/^Depends: / {
			n = split($0, depends, /[ ,]+/)
			for (i = 1; i <= n; i++) {
				if (depends[i] ~ /^linux-headers-.*-common/)
					print depends[i] "=" version
				else if (depends[i] ~ /^linux-kbuild-/)
					print depends[i] ":amd64"
			}
		}' | sort -u
}

unpack_headers() { # list of kernels, list of packages, final path
	local new=$3.new.$$ deb

	rm -rf "$new"
	mkdir -p "$new/debs" "$new/etc"
	(cd "$new/debs" && headers_apt xargs apt-get download <"$2")
	for deb in "$new"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x -C "$new" --exclude=./usr/share --transform='s,^\./lib/,./usr/lib/,'
		rm "$deb"
	done
	rmdir "$new/debs"
	rm -rf "${new:?}/lib"
	cp "$1" "$new/etc/lab-headers"
	mv -T "$new" "$3"
}

# Make the headers unless they exist; sets HEADERS. A machine that cannot reach its archive keeps
# its headers.
have_headers() {
	local main security work

	need apt-get=apt dpkg-deb=dpkg
	FULL=yes
	have_root
	mkdir -p "$CACHE"
	exec 8>"$CACHE/headers.lock"
	flock 8
	read -r main security < <(mirrors) || true
	[[ ${main-} ]] || die "no Debian archive in this machine's apt configuration (set RASHPA_MIRROR)"
	headers_sources "$main" "${security-}"
	STEP_LOG=$CACHE/headers.log
	: >"$STEP_LOG"
	work=$(mktemp -d)
	headers_apt apt-get update >>"$STEP_LOG" 2>&1 || say "package lists cannot be updated"
	headers_choose >"$work/kernels"
	if [[ ! -s $work/kernels ]]; then
		# shellcheck disable=SC2012 # the names are known
		HEADERS=$(ls -td "$CACHE"/headers-*/ 2>/dev/null | head -n 1)
		[[ $HEADERS ]] || die "the archive has no kernel headers (log: $STEP_LOG)"
		say "the archive cannot be reached: using headers of an earlier download"
	else
		HEADERS=$CACHE/headers-$(sha256sum <"$work/kernels" | cut -c1-12)
		if [[ ! -d $HEADERS ]]; then
			headers_packages <"$work/kernels" >"$work/packages"
			say "unpacking headers of $(wc -l <"$work/kernels") kernels in $HEADERS"
			step "headers" unpack_headers "$work/kernels" "$work/packages" "$HEADERS"
		fi
	fi
	rm -rf "$work"
	exec 8>&-
}

cmd_headers() {
	have_headers
	echo "$HEADERS"
}
