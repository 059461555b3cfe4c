#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=60
# Runs inside the lab's root: kernel-doc has no complaint about any comment, the site is made without
# a warning, the reference in it is complete, and pages say what is so. TAP.
# shellcheck source-path=SCRIPTDIR source=../../selftests/lib/shell.sh
. "$(dirname "$0")/../../selftests/lib/shell.sh"
kernel_doc=$(ls /usr/lib/linux-kbuild-6.12*/scripts/kernel-doc | tail -n 1)

for file in uapi/linux/rashpa.h drivers/*.[ch] drivers/*/*.[ch] tools/lib/rashpa.h tools/lib/rashpa-board.h tools/lib/rashpa-gpu.h tools/lib/rashpa-stream.h \
	tools/fabric/fabric.h tools/verbs/verbs.h tools/processing/rashpa-processing.h tools/fpga/device.h; do
	said=$(perl "$kernel_doc" -none -Wall "$file" 2>&1)
	clean=$?
	[[ $said ]] && { sed 's/^/# /' <<<"$said"; clean=1; }
	ok "$clean" "kernel-doc/${file##*/}: kernel-doc is content"
done

# print the output of a command that fails
said() { "$@" >/tmp/said 2>&1 || { tail -n 60 /tmp/said | sed 's/^/# /'; return 1; }; }

said Documentation/build.sh
ok $? "site-sphinx-no: the site can be made, and Sphinx has no warning"
missing=$(for file in Documentation/*.rst Documentation/*/*.rst; do
	page=build/docs/html/${file#Documentation/}
	[[ -s ${page%.rst}.html ]] || echo "$file"
done)
[[ ! $missing ]]
ok $? "page: each page is in it" || echo "# $missing"
# links that lead nowhere, or show the name of a page, are warnings: planted ones
rm -rf /tmp/planted && mkdir /tmp/planted
printf '%s\n' Planted ======= '' '`a <nowhere.rst>`__, `b <index.rst#nowhere>`__, `c <../drivers/nowhere.c>`__, `d <index.rst#planted>`__, `index.rst <index.rst>`__' \
	>/tmp/planted/index.rst
planted=$(RASHPA_TOP=$PWD sphinx-build -q -W --keep-going -c Documentation /tmp/planted /tmp/planted/html 2>&1)
(($(grep -c "WARNING: link to what is not there" <<<"$planted") == 2 && $(grep -c "WARNING: " <<<"$planted") == 4)) &&
	[[ $planted == *"no chapter \"nowhere\""* && $planted == *"shows the name of a file: index.rst"* ]]
ok $? "links-lead-nowhere: broken links are reported" || sed 's/^/# /' <<<"$planted"
mapfile -t guides < <(sed -n '/^Start$/,/^Reference$/s,.*<\(.*\.rst\)>.*,Documentation/\1,p' Documentation/index.rst)
said python3 -B Documentation/tests/tutorials.py check "${guides[@]}" && [[ ! -s /tmp/said && ${#guides[@]} -gt 15 ]]
ok $? "blocks-commands-guides: blocks of commands in Start and Guides say who runs them" || sed 's/^/# /' /tmp/said
printf '%s\n' '.. not run: tests/nothing.sh does' '' '::' '' '    ls' '' 'More::' '' '    ls' '' '.. run: any' '' '::' '' '    ls' >/tmp/planted/tutorial.rst
is_told=$(python3 -B Documentation/tests/tutorials.py check /tmp/planted/tutorial.rst)
[[ $(wc -l <<<"$is_told") == 2 && $is_told == *"there is no tests/nothing.sh"*"says not whether"* ]]
ok $? "not: and those that do not are reported" || echo "# $is_told"
reference=build/docs/source/uapi-reference.rst
while read -r name; do
	grep -qE "^\.\. c:[a-z]+:: .*\b$name\b" "$reference" || echo "$name"
done < <(sed -nE 's/^(struct|enum) (rashpa_[a-z_]+) \{$/\2/p
	s/^#define (RASHPA_[A-Z0-9_]+)\t+_BITUL.*/\1/p' uapi/linux/rashpa.h) >/tmp/missing
sed 's/^/# missing: /' /tmp/missing
[[ ! -s /tmp/missing ]]
ok $? "struct-enum-flag: it has every struct, enum and flag of the header"

missing=$(awk '/^\.\. c:/ { name = $NF } /\*\*Members\*\*/ { getline; if ((getline line) <= 0 || line !~ /``/) print name }' "$reference" build/docs/source/man/*.3.rst)
[[ ! $missing ]]
ok $? "members: each struct has its members" || echo "# $missing"

# public functions: headers, map, and symbols of the library
# functions LIBRARY FOLDER
functions() {
	local other
	sed -nE '/^static inline/!s/^[a-z][a-z0-9_ *]*[ *](rashpa_[a-z0-9_]+)\(.*/\1/p' "$2"/rashpa*.h | sort >/tmp/declared
	sed -nE 's/^\t\t(rashpa_[a-z0-9_]+);$/\1/p' "$2/lib$1.map" | sort >/tmp/mapped
	nm -D --defined-only "build/tools/lib$1.so" | sed -nE 's/^[0-9a-f]+ T ([^@]+).*/\1/p' |
		sort >/tmp/exported
	for other in mapped exported; do
		diff /tmp/declared "/tmp/$other" |
			sed -n "s/^</# not $other:/p; s/^>/# $other, and in no header:/p"
		[[ -s /tmp/declared ]] && cmp -s /tmp/declared "/tmp/$other"
		ok $? "functions/$1/$other: they are those that the headers declare"
	done
}
functions rashpa-processing tools/processing
functions rashpa tools/lib
PYTHONPATH=build/tools/python RASHPA_LIBRARY=build/tools/librashpa.so \
	RASHPA_PROCESSING_LIBRARY=build/tools/librashpa-processing.so python3 -B tools/python/tests/abi.py
ok $? "declarations-python-package: the declarations of the Python package are those of the headers"
# in C++ a type would hide a function of the same name
sed -nE 's/^(struct|union|enum) (rashpa_[a-z0-9_]+).*/\2/p' uapi/linux/rashpa.h tools/lib/rashpa*.h |
	sort -u | comm -12 - /tmp/exported >/tmp/twice
sed 's/^/# function and type: /' /tmp/twice
[[ ! -s /tmp/twice ]]
ok $? "no-function-name: no function has the name of a type"

missing=$(for folder in tools/*/ drivers/ selftests/ Documentation/; do
	grep -q "^\`\`${folder%/}\`\`" Documentation/house.rst || echo "$folder"
done)
[[ ! $missing ]]
ok $? "house-rst-folder: house.rst has each folder" || echo "# $missing"
# rows: a folder, then folders between commas, or "nothing here"
sed -n '/^folder  *knows$/,/^The driver/{s/,//g; s/  *nothing here:.*//; /^[a-z-]/{s/  */ /; p}}' Documentation/house.rst |
	grep -v "^folder\|^The" | sort >/tmp/drawn
python3 -B selftests/static/arrows.py | sort >/tmp/arrows && ! diff /tmp/drawn /tmp/arrows | sed 's/^/# /' | grep .
ok $? "knows-files-include: house.rst lists the dependencies of folders, as files include headers, and they have no cycle"

# tests that conformance.rst explains (at the start of a line), and those of the program
sed -nE 's/^``([a-z]+\/[a-z-]+)`` .*/\1/p' Documentation/conformance.rst | sort >/tmp/explained
build/tools/rashpa-fpga-conformance --list | cut -d' ' -f1 | sort >/tmp/listed
diff /tmp/explained /tmp/listed | sed -n 's/^</# there is no/p; s/^>/# not explained:/p'
[[ -s /tmp/listed ]] && cmp -s /tmp/explained /tmp/listed
ok $? "conformance-rst-explains: conformance.rst explains each test of rashpa-fpga-conformance, and no other"
# chapters of the document that it names, in both places
awk '/^test +chapter/ { from = index($0, "chapter"); to = index($0, "a failure means"); getline; next }
	from && /^=/ { exit } from { print substr($0, from, to - from) }' Documentation/conformance.rst |
	sed 's/ *$//; /^$/d' | sort -u >/tmp/chapters
while read -r name; do
	grep -h -A 1 -xF "$name" Documentation/fpga-interface.rst Documentation/fpga-options.rst | grep -qE '^[=-]+$' || echo "$name"
done </tmp/chapters >/tmp/missing
sed 's/^/# no such chapter: /' /tmp/missing
[[ -s /tmp/chapters && ! -s /tmp/missing ]]
ok $? "chapters-names-fpga-interface: the chapters that it names are in the two pages of the interface"

# macros of alternating fonts print their arguments without blanks
joined() { mandoc -T lint -W warning "$@"; grep -nE '^\.(BR|RB|BI|IB|IR|RI) [^"]* [[:alpha:]]{2,} [[:alpha:]]{2,}( |$)' "$@"; grep -nE '^\.[BIR]+ [^"]*("[^"]*"[^"]*)*"[^"]*$' "$@" | awk -F'"' 'NF % 2 == 0'; }
printf '.TH A 1 2026-01-01\n.BR a ). Default: as many as fit\n.BR "b c\n' >/tmp/planted.1
joined Documentation/man/* >/tmp/said 2>&1
[[ ! -s /tmp/said && $(joined /tmp/planted.1 | wc -l) -ge 2 ]]
ok $? "man-pages: no words run together, no quote is open, and mandoc has no warning" || sed 's/^/# /' /tmp/said
errnos() { grep -ohE '\bE[A-Z0-9]{2,}\b' "$1" | sort -u | grep -xFf <(python3 -c 'import errno; print(*errno.errorcode.values(), sep="\n")'); }
errnos uapi/linux/rashpa.h | diff - <(errnos Documentation/uapi.rst) >/tmp/errnos
ok $? "errnos: uapi.rst explains the errnos of the header" || sed 's/^/# /' /tmp/errnos
# the text and the picture name the steps in one order
sed -nE '/^The order of teardown/,/^Sleep/s/^([1-5])\. \*([A-Z][a-z]+).*/\1 \L\2/p' Documentation/translation.rst >/tmp/steps
grep -oE '>[1-5] [a-z]+' Documentation/pictures/teardown.svg | tr -d '>' | sort | diff /tmp/steps - >/tmp/said && [[ $(wc -l </tmp/steps) == 5 ]]
ok $? "teardown: its steps are those of the picture" || sed 's/^/# /' /tmp/said

# pages for users promise no interrupt that the driver refuses
! grep -nw INTx README.md Documentation/*.rst Documentation/tutorials/*.rst |
	grep -vE '^Documentation/(fpga-interface|limitations|software-fpga)\.rst:' && grep -q '^- INTx' Documentation/limitations.rst
ok $? "interrupts: INTx is only on pages that refuse it, or play it"
# header and glossary count losses in the same units
grep -qE '@lost:.*records' uapi/linux/rashpa.h && grep -A1 '^lost$' Documentation/glossary.rst | grep -q 'frames .*of events: records'
ok $? "lost: frames of streams, records of events"
grep -ohE '\b7\.[0-9]+' README.md Documentation/memory.rst Documentation/testing.rst | sort -u >/tmp/newest
[[ $(wc -l </tmp/newest) == 1 ]]
ok $? "newest: README, memory.rst and testing.rst name the same newest kernel" || sed 's/^/# /' /tmp/newest
for word in descriptor engine group lost node process ring table; do
	sed -n "/^$word\$/,/^[a-z]/p" Documentation/glossary.rst | grep -qE '\. (Elsewhere|Of|In) |; of ' || echo "# $word"
done >/tmp/words
[[ ! -s /tmp/words ]]
ok $? "glossary: words with two meanings have both" || cat /tmp/words

versions=$(sed -nE 's/^(PACKAGE_VERSION=|MODULE_VERSION\()"([^"]*)".*/\2/p' dkms.conf drivers/main.c
	sed -nE '1s/^rashpa \((.*)\) .*/\1/p' tools/packaging/debian/changelog)
[[ $(wc -l <<<"$versions") == 3 && $(uniq <<<"$versions" | wc -l) == 1 ]]
ok $? "version: DKMS, the driver and the packages have the same version"

# sentences that troubleshooting.rst explains: the pieces of each are somewhere in the sources
sed -nE 's/^``(.*)``$/\1/p' Documentation/troubleshooting.rst >/tmp/sentences
find drivers tools -name '*.[ch]' ! -path '*/tests/*' -exec cat {} + | perl -0777 -pe 's/"\s*\n\s*"//g' >/tmp/sources
while read -r sentence; do
	sed 's/ *… */\n/g' <<<"$sentence" | while read -r piece; do
		((${#piece} < 4)) || grep -qF -- "$piece" /tmp/sources || echo "# \"$piece\" of \"$sentence\""
	done
done </tmp/sentences >/tmp/missing
cat /tmp/missing
[[ $(wc -l </tmp/sentences) -gt 30 && ! -s /tmp/missing ]]
ok $? "troubleshooting-rst-sentences: troubleshooting.rst has sentences that the driver and the tools say"

# the reference of telegrams is made from their schema; settings are the options of the tools, but for those
# of daemons and of reports, and those that only the user of the machine decides
Documentation/telegrams.py --check
ok $? "telegrams-rst-telegrams: telegrams-reference.rst is what telegrams.py makes of the schema"
# settings ROLE TOOL
settings() {
	Documentation/telegrams.py --settings "$1" | sort >/tmp/settings
	{
		"build/tools/$2" --help | sed -nE 's/^ +(-., )?--([a-z-]+).*/\2/p'
		"build/tools/$2" --tune help | sed -nE 's/^([a-z-]+).*/\1/p'
	} | grep -vxE 'accept|daemon|leader|tls|trace|tune|json|progress|help|usage|version' | sort -u >/tmp/options
	diff /tmp/settings /tmp/options | sed -n 's/^</# no option/p; s/^>/# no setting/p'
	[[ -s /tmp/settings ]] && cmp -s /tmp/settings /tmp/options
	ok $? "settings/$1: they are the options of $2"
}
settings detector remu
settings receiver romulu
# a transport is known everywhere: by the schema, the page of the manager, and that of the network, or of a board
build/tools/remu --help | sed -nE 's/^ +--transport=//p' | tr '|' '\n' | sort >"$work/transports"
transports() { # NAME: those of a list, a line each
	sort | diff "$work/transports" - | sed 's/^/# /' >"$work/said"
	[[ -s $work/transports && ! -s $work/said ]]
	ok $? "$1" || cat "$work/said"
}
transports "transports/schema: the schema of telegrams has those of remu" < <(
	sed -n '/simpleType name="transport"/,/<\/xs:simpleType>/s/.*enumeration value="\([a-z]*\)".*/\1/p' tools/link/rashpa.xsd)
transports "transports/manager: manager.rst has those of remu" < <(
	sed -n '/^    transport  /,/^``/s/^    \([a-z]*\(, [a-z]*\)*\)  .*/\1/p' Documentation/manager.rst | sed 's/, /\n/g' |
		grep -vx 'transport\|')
finish
