#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: makes the documentation as a site of the pages here, the README files of
# the tests, man pages, and what kernel-doc makes of the comments in the headers. Any warning of Sphinx
# is an error. build.sh [FOLDER]: the site is FOLDER/html (default: build/docs), the man pages of headers
# are FOLDER/man.
set -euo pipefail

cd "$(dirname "$0")/.."
out=${1:-build/docs}
pages=$out/source
# the last ones in Perl, which know this output
kernel_doc=$(printf '%s\n' /usr/lib/linux-kbuild-6.1*/scripts/kernel-doc | sort -V | tail -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

underlined() { printf '%s\n%s\n\n' "$1" "${1//?/$2}"; } # TITLE CHARACTER

# chapters HEADER: one for each section; its name is the first line of a part. kernel-doc sees a comment
# of one line only as that of a struct's member: macros, functions and what is opaque get three. The
# comment of a macro may follow it.
chapters() {
	rm -f "$work"/[0-9]*
	awk -v work="$work" '
		BEGIN { part = sprintf("%s/%02d", work, 0); print "Rules" >part }
		/^\/\* -+ .* -+ \*\/$/ {
			close(part)
			part = sprintf("%s/%02d", work, ++n)
			gsub(/^\/\* -+ | -+ \*\/$/, "")
			print toupper(substr($0, 1, 1)) substr($0, 2) >part
			next
		}
		{ print >part }' "$1"
	sed -Ei 's,^/\*\* ([A-Za-z0-9_]+(\(\))? - .*) \*/$,/**\n * \1\n */,
		s,^(#define (RASHPA_[A-Z0-9_]+)\s+\S+)\s+/\* (.*) \*/$,/**\n * \2 - \3\n */\n\1,' "$work"/[0-9]*
	for part in "$work"/[0-9]*; do
		grep -q '^/\*\*' "$part" || continue
		title=$(head -n 1 "$part")
		# the first line is not C: hide it
		sed '1s,.*,,' "$part" >"$part.h"
		[[ $title == Rules && $1 != uapi/* ]] || underlined "$title" "$2"
		# kernel-doc skips structs and enums whose members have comments themselves, after a comment of
		# one line; after a longer one it prints no member. docs.sh reports other omissions.
		perl -0777 -ne 'while (m,^/\*\*(?: |\n \* )(struct|enum) (\w+) - ([^\n]*?)(?:\n((?: \*[^/\n]?[^\n]*\n)*?))? \*/\n(\1 \2(?: \{.*?\n\})?;),msg) {
			my ($kind, $name, $text, $more, $all) = ($1, $2, $3, $4 // "", $5);
			next if $more =~ /^ \* @\w+:/m;
			$more =~ s/^ \*\n//;
			$more =~ s/^ \* ?/   /mg;
			$more =~ s/@(\w+)/**$1**/g;
			$more =~ s/&struct /struct /g;
			# Sphinx refuses two items of one name
			print /\b$name\(/ ? "**$kind $name**\n\n   $text\n\n" : ".. c:${kind}:: $name\n\n   $text\n\n";
			print "$more\n" if $more;
			next if $all !~ /\{/;
			$all =~ s/^/      /mg;
			print "   ::\n\n$all\n\n";
		}' "$part"
		perl -0777 -pi -e 's,^/\*\*(\n \* (?:struct|enum) \w+ - [^\n]*\n(?:(?! \*/| \* @\w+:) \*[^\n]*\n)* \*/\n(?:struct|enum)),/*$1,msg' "$part.h"
		perl "$kernel_doc" -rst -sphinx-version 3.0.0 "$part.h" 2>"$work/said" || { cat "$work/said" >&2; return 1; }
	done
}

rm -rf "$out"
mkdir -p "$pages/man"
cp -r Documentation/. "$pages"
rm -r "$pages"/man/* "$pages"/{patches,tests,pictures/*.{dot,sh,py},build.sh,custom.css,telegrams.py}
find selftests -name README.rst -exec cp --parents {} "$pages" \;

{
	printf '.. Made of uapi/linux/rashpa.h by Documentation/build.sh.\n\n'
	printf '================\nioctl reference\n================\n\n'
	chapters uapi/linux/rashpa.h =
	printf 'Numbers\n=======\n\n::\n\n'
	sed -n '/^\/\* -* numbers -/,/^#endif/{/numbers -\|^#endif/d;s/^/  /;p}' uapi/linux/rashpa.h
} >"$pages/uapi-reference.rst"

{
	printf '===================\nLibraries reference\n===================\n\n.. toctree::\n   :maxdepth: 2\n\n'
	for header in lib/rashpa{,-stream,-stream-format,-board,-fpga,-gpu}.h processing/rashpa-processing.h; do
		name=${header#*/}
		{
			printf '.. Made of %s by Documentation/build.sh.\n\n' "$name"
			underlined "$name(3)" '#'
			chapters "tools/$header" =
		} >"$pages/man/$name.3.rst"
		printf '   man/%s\n' "$name.3"
	done
} >"$pages/libraries-reference.rst"

for manual in Documentation/man/*; do
	name=$(basename "$manual")
	{
		underlined "${name%.*}(${name##*.})" =
		printf '.. raw:: html\n\n'
		# headings below the page's title; the names of other pages are links
		mandoc -T html -O fragment "$manual" | sed -E 's,(</?)h2\b,\1h3,g; s,(</?)h1\b,\1h2,g
			s,<b>([a-z-]*rashpa[a-z-]*|remu|romulu)</b>\(([1-8])\),<a href="\1.\2.html">\1(\2)</a>,g; s/^/   /'
	} >"$pages/man/$name.rst"
done

# plots of benchmarks that ran on this machine
{
	underlined "Measured here" =
	printf 'Pictures that ``make bench`` and ``make demo`` have left in ``build`` when this site was made. '
	printf 'What they mean: `rashpa-bench(1) <man/rashpa-bench.1>`__.\n\n'
	none=1
	for picture in build/bench/*.svg build/bench/*/*.svg build/demo-process.svg; do
		[[ -e $picture ]] || continue
		none=
		name=${picture#build/}
		cp "$picture" "$pages/${name//\//-}"
		printf '``%s``:\n\n.. image:: %s\n   :alt: plot of %s\n\n' "$name" "${name//\//-}" "${name%.svg}"
	done
	[[ ! $none ]] || printf 'There are none.\n'
} >"$pages/measured.rst"

for builder in html man; do
	RASHPA_TOP=$PWD sphinx-build -q -E -a -n -W --keep-going -j "$(nproc)" -b $builder -d "$out/doctrees" -c Documentation \
		"$pages" "$out/$builder"
done
echo "docs: $out/html/index.html ($(find "$out/html" -name '*.html' | wc -l) pages," \
	"$(grep -ch '^\.\. c:' "$pages"/uapi-reference.rst "$pages"/man/*.3.rst | paste -sd+ | bc) entries of headers)"
